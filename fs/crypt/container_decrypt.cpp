// SPDX-License-Identifier: Apache-2.0
// Decryption of containers: cuts a container into records, and checks and passes on their results.
#include <fmt/format.h>

#include <algorithm>

#include "fs/crypt/container_run.h"
#include "fs/crypt/record_sequence.h"
#include "fs/crypt/task_writer.h"

namespace nacre::fs {

namespace {

constexpr std::size_t input_size_bytes_min = 2u << 20;
// A record does not tell its plain size, so each gets the room of a whole chunk, also in small
// files.
constexpr std::size_t output_size_bytes_min = 16u << 20;
// A batch with less room than this takes no more bytes.
constexpr std::size_t read_size_bytes_min = 16u << 10;

class Decryption {
 public:
  Decryption(const UnlockContainer& unlock, const NextContainerTask& next)
      : unlock_(unlock), next_(next) {}

  static BatchSizes sizes(const engine::Engine& engine) {
    const std::size_t input =
        std::max<std::uint64_t>(engine.payload_size_bytes(), input_size_bytes_min);
    // The rest of a batch is shorter than a record, so the next batch has room for it and for more.
    static_assert(input_size_bytes_min >= engine::record_size_bytes_max + read_size_bytes_min);
    return {.input_bytes = input,
            .output_bytes = std::max(input + chunk_size_bytes_max, output_size_bytes_min)};
  }

  Result<> read_all(BatchFiller& filler) {
    while (auto task = next_()) {
      auto state = std::make_shared<TaskState>();
      state->task = std::move(task);
      auto error = read_task(filler, state);
      if (!error) return tl::unexpected(error.error());
      NACRE_TRY(filler.add_end(state, std::move(*error)));
    }
    return {};
  }

  static Result<ByteView> take_result(TaskState& state, Batch& batch, std::size_t index) {
    const engine::MessageResult& result = batch.payload.results[index];
    if (state.end) return something_follows();
    if (!result.ok) return message_failure(result, record_text(state.chunk_count));
    const ByteView plain(batch.output.data() + batch.payload.messages[index].output_offset,
                         result.output_size);
    NACRE_ASSIGN(const auto name, decode_container_record_name(result.identity));
    if (name.index != state.chunk_count) {
      return fail(ErrorCode::tampered, fmt::format("{} belongs to another place in this container",
                                                   record_text(name.index)));
    }
    if (name.kind == ContainerRecordKind::chunk) return take_chunk(state, plain);
    NACRE_TRY(take_end(state, plain));
    return ByteView();
  }

  static Result<ContainerEnd> end_task(TaskState& state, const std::optional<Error>& error) {
    const bool is_verdict =
        error && (error->code == ErrorCode::corrupt || error->code == ErrorCode::tampered);
    if (is_verdict && state.end) return something_follows();
    if (error) return tl::unexpected(*error);
    if (state.end) return *state.end;
    return fail(ErrorCode::corrupt, cut_off_text(state.chunk_count));
  }

 private:
  // The key of a container, and its index in the current batch.
  struct Key {
    std::shared_ptr<const metadata::KeyTree> tree;
    engine::CipherSuite suite = engine::CipherSuite::aes_256_gcm;
    RecordSequence sequence;
    std::shared_ptr<const metadata::KeyTree::SessionKey> key;
    std::uint64_t batch_number = 0;
    std::uint32_t index = 0;
  };

  static tl::unexpected<Error> something_follows() {
    return fail(ErrorCode::tampered, "something follows the end of the container");
  }

  static std::string record_text(std::uint64_t index) {
    return fmt::format("record {}", index + 1);
  }

  static Result<ByteView> take_chunk(TaskState& state, ByteView plain) {
    if (plain.empty() || state.has_short_chunk || plain.size() > state.header.chunk_size_bytes()) {
      return fail(ErrorCode::corrupt,
                  fmt::format("{} has a size that no record can have at its place",
                              record_text(state.chunk_count)));
    }
    state.has_short_chunk = plain.size() < state.header.chunk_size_bytes();
    state.size_bytes += plain.size();
    ++state.chunk_count;
    return plain;
  }

  static Result<> take_end(TaskState& state, ByteView plain) {
    NACRE_ASSIGN(auto end, parse_container_end(plain));
    if (end.chunk_bits != state.header.chunk_bits) {
      return fail(ErrorCode::tampered, "the chunk size in the header was changed");
    }
    if (end.chunk_count != state.chunk_count || end.size_bytes != state.size_bytes) {
      return fail(ErrorCode::corrupt, "the end record contradicts what comes before it");
    }
    state.end = std::move(end);
    return {};
  }

  // Reads and checks the header and the keyring.
  Result<> begin(TaskState& state, Key& key) {
    ContainerTask& task = *state.task;
    NACRE_TRY(task.open());
    NACRE_ASSIGN(state.header, read_container_start(
                                   [&](MutableByteView out) { return task.read(out); }, keyring_));
    NACRE_ASSIGN(key.tree, unlock_(keyring_));
    key.suite = key.tree->current_epoch().suite;
    key.sequence = RecordSequence(key.suite);
    return {};
  }

  Result<std::optional<Error>> read_task(BatchFiller& filler,
                                         const std::shared_ptr<TaskState>& state) {
    Key key;
    if (const auto begun = begin(*state, key); !begun) return begun.error();
    // A payload has the records of one keyring only.
    if (filler.has_batch() && !filler.batch().payload.messages.empty() &&
        filler.batch().payload.volume_id != key.tree->volume_id()) {
      filler.send();
    }
    std::size_t rest = 0;  // bytes at the end of the input that are no whole record yet
    for (bool at_end = false; !at_end;) {
      NACRE_TRY(make_room(filler, rest));
      if (state->is_over) return std::nullopt;
      Batch& batch = filler.batch();
      const MutableByteView room(batch.input.data() + batch.input_used, batch.input_room());
      const auto got = state->task->read(room);
      if (!got) return got.error();
      at_end = *got < room.size();
      batch.input_used += *got;
      rest += *got;
      NACRE_ASSIGN(const auto error, add_records(filler, state, key, rest));
      if (error) return error;
    }
    if (rest == 0) return std::nullopt;
    return Error{ErrorCode::corrupt, cut_off_text(key.sequence.count())};
  }

  // Makes room for bytes behind the rest. If a new batch is begun, the rest is copied to it.
  Result<> make_room(BatchFiller& filler, std::size_t rest) {
    if (filler.has_batch() && filler.batch().input_room() >= read_size_bytes_min) return {};
    return move_rest(filler, rest);
  }

  Result<> move_rest(BatchFiller& filler, std::size_t rest) {
    carried_.clear();
    if (filler.has_batch()) {
      Batch& full = filler.batch();
      const Byte* const begin = full.input.data() + full.input_used - rest;
      carried_.assign(begin, begin + rest);
      filler.send();
    }
    NACRE_ASSIGN(Batch * batch, filler.reserve(rest + 1, 0));
    std::copy(carried_.begin(), carried_.end(), batch->input.data());
    batch->input_used = rest;
    return {};
  }

  // Turns the whole records in the rest into messages, and removes them from it. Returns the error
  // that ends the container, if there is one.
  Result<std::optional<Error>> add_records(BatchFiller& filler,
                                           const std::shared_ptr<TaskState>& state, Key& key,
                                           std::size_t& rest) {
    const std::size_t room = state->header.chunk_size_bytes();
    while (rest > 0) {
      const Batch& read = filler.batch();
      const ByteView bytes(read.input.data() + read.input_used - rest, rest);
      const auto size = key.sequence.next_record_size(bytes);
      if (!size) return size.error();
      if (*size == 0) return std::nullopt;
      if (read.output_room() < room || read.pieces.size() >= piece_count_max) {
        NACRE_TRY(move_rest(filler, rest));
        continue;
      }
      Batch& batch = filler.batch();
      const bool is_other_key = key.sequence.take();
      if (!key.key || is_other_key) {
        auto session = key.tree->session_key(container_epoch, key.sequence.salt());
        if (!session) return session.error();
        key.key = std::move(*session);
        key.batch_number = 0;
      }
      if (key.batch_number != batch.number) {
        key.batch_number = batch.number;
        key.index = batch.payload.add_key(key.suite, key.key->key.view());
        batch.payload.volume_id = key.tree->volume_id();
      }
      filler.add_message(state, engine::Message{.operation = engine::Operation::unseal,
                                                .key_index = key.index,
                                                .input_offset = batch.input_used - rest,
                                                .input_size = *size,
                                                .output_offset = batch.output_used,
                                                .output_capacity = room});
      batch.output_used += room;
      rest -= *size;
    }
    return std::nullopt;
  }

  static constexpr std::size_t piece_count_max = 4096;

  const UnlockContainer& unlock_;
  const NextContainerTask& next_;
  Bytes keyring_, carried_;
};

}  // namespace

Result<> decrypt_containers(engine::Engine& engine, const UnlockContainer& unlock,
                            const NextContainerTask& next, const ContainerProgress& progress) {
  Decryption decryption(unlock, next);
  return run_parts(engine, Decryption::sizes(engine),
                   {.read_all = [&](BatchFiller& filler) { return decryption.read_all(filler); },
                    .take_result = Decryption::take_result,
                    .end_task = Decryption::end_task,
                    .progress = progress});
}

}  // namespace nacre::fs
