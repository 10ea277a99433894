// SPDX-License-Identifier: Apache-2.0
// Encryption of containers: cuts files into chunks and adds the end record.
#include <algorithm>

#include "fs/crypt/container_run.h"
#include "fs/crypt/task_writer.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::fs {

namespace {

// Each file begins at a multiple of this in the input, because devices copy aligned bytes faster.
constexpr std::size_t file_alignment_bytes = 64;
constexpr std::size_t plain_input_size_bytes_min = 2u << 20;

class Encryption {
 public:
  Encryption(const ContainerKeys& keys, const ContainerPacking& packing,
             const NextContainerTask& next)
      : keys_(keys),
        packing_(packing),
        next_(next),
        suite_(keys.tree->current_epoch().suite),
        chunk_size_(std::size_t{1} << keys.chunk_bits),
        chunk_room_(room_of(chunk_size_)) {}

  BatchSizes sizes(const engine::Engine& engine) const {
    const std::size_t input =
        round_up(std::max<std::uint64_t>(engine.payload_size_bytes(), plain_input_size_bytes_min),
                 chunk_size_);
    // Records of small files are longer than their content, and each file has an end record.
    const std::size_t output =
        input / chunk_size_ * chunk_room_ + input / 4 + room_of(container_end_size_bytes_max);
    return {.input_bytes = input + container_end_size_bytes_max, .output_bytes = output};
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
    if (!result.ok) return message_failure(result, "sealing a chunk");
    ++state.chunk_count;
    return ByteView(batch.output.data() + batch.payload.messages[index].output_offset,
                    result.output_size);
  }

  static Result<ContainerEnd> end_task(TaskState& state, const std::optional<Error>& error) {
    if (error) return tl::unexpected(*error);
    return state.read_end;
  }

 private:
  // The key of the records that are being added.
  struct Key {
    engine::SessionSalt first_salt = {}, salt = {};
    std::uint64_t session = 0;
    std::shared_ptr<const metadata::KeyTree::SessionKey> key;
    std::uint64_t batch_number = 0;  // the batch in which the key has this index
    std::uint32_t index = 0;
  };

  std::size_t room_of(std::size_t plain_size) const {
    return engine::record_size_bound(suite_, packing_.padding, plain_size);
  }

  // Returns why the task failed, if it did. An error ends the run.
  Result<std::optional<Error>> read_task(BatchFiller& filler,
                                         const std::shared_ptr<TaskState>& state) {
    ContainerTask& task = *state->task;
    if (const auto opened = task.open(); !opened) return opened.error();
    NACRE_TRY(filler.add_bytes(state, keys_.preamble));
    Key key;
    engine::random_bytes(key.first_salt);
    std::uint64_t index = 0;
    for (bool at_end = false; !at_end;) {
      NACRE_ASSIGN(Batch * batch, filler.reserve(chunk_size_, chunk_room_));
      if (state->is_over) return std::nullopt;
      const std::size_t count =
          std::min(batch->input_room() / chunk_size_, batch->output_room() / chunk_room_);
      const MutableByteView room(batch->input.data() + batch->input_used, count * chunk_size_);
      const auto got = task.read(room);
      if (!got) return got.error();
      at_end = *got < room.size();
      for (std::size_t at = 0; at < *got; at += chunk_size_) {
        const std::size_t size = std::min(chunk_size_, *got - at);
        const auto added = add_record(
            *batch, state, key, {.index = index, .kind = ContainerRecordKind::chunk}, size, filler);
        if (!added) return added.error();
        ++index;
      }
      state->read_end.size_bytes += *got;
    }
    return add_end_record(filler, state, key, index);
  }

  Result<std::optional<Error>> add_end_record(BatchFiller& filler,
                                              const std::shared_ptr<TaskState>& state, Key& key,
                                              std::uint64_t index) {
    state->read_end.chunk_count = index;
    state->read_end.chunk_bits = keys_.chunk_bits;
    state->read_end.attributes = state->task->attributes();
    const Bytes end = encode(state->read_end);
    NACRE_ASSIGN(Batch * batch, filler.reserve(end.size(), room_of(end.size())));
    std::copy(end.begin(), end.end(), batch->input.data() + batch->input_used);
    const auto added = add_record(
        *batch, state, key, {.index = index, .kind = ContainerRecordKind::end}, end.size(), filler);
    if (!added) return added.error();
    batch->input_used = std::min<std::size_t>(round_up(batch->input_used, file_alignment_bytes),
                                              batch->input.size());
    return std::nullopt;
  }

  // Adds the next size bytes of the batch's input as the record of this name.
  Result<> add_record(Batch& batch, const std::shared_ptr<TaskState>& state, Key& key,
                      const ContainerRecordName& name, std::size_t size, BatchFiller& filler) {
    // The counter of the end record follows that of the last chunk.
    const ContainerPlace place = container_place(suite_, name.index);
    if (!key.key || key.session != place.session) {
      key.session = place.session;
      key.salt = container_salt(key.first_salt, place.session);
      NACRE_ASSIGN(key.key, keys_.tree->session_key(container_epoch, key.salt));
      key.batch_number = 0;
    }
    if (key.batch_number != batch.number) {
      key.batch_number = batch.number;
      key.index = batch.payload.add_key(suite_, key.key->key.view());
      batch.payload.volume_id = keys_.tree->volume_id();
    }
    const std::size_t room = room_of(size);
    const bool is_chunk = name.kind == ContainerRecordKind::chunk;
    filler.add_message(
        state, engine::Message{.operation = engine::Operation::seal,
                               .codec = is_chunk ? packing_.codec : engine::Codec::none,
                               .level = static_cast<std::int8_t>(is_chunk ? packing_.level : 0),
                               .padding = packing_.padding,
                               .key_index = key.index,
                               .input_offset = batch.input_used,
                               .input_size = size,
                               .output_offset = batch.output_used,
                               .output_capacity = room,
                               .epoch = container_epoch,
                               .counter = place.counter,
                               .salt = key.salt,
                               .identity = encode(name)});
    batch.input_used += size;
    batch.output_used += room;
    return {};
  }

  const ContainerKeys& keys_;
  const ContainerPacking packing_;
  const NextContainerTask& next_;
  const engine::CipherSuite suite_;
  const std::size_t chunk_size_, chunk_room_;
};

}  // namespace

Result<> encrypt_containers(engine::Engine& engine, const ContainerKeys& keys,
                            const ContainerPacking& packing, const NextContainerTask& next,
                            const ContainerProgress& progress) {
  Encryption encryption(keys, packing, next);
  return run_parts(engine, encryption.sizes(engine),
                   {.read_all = [&](BatchFiller& filler) { return encryption.read_all(filler); },
                    .take_result = Encryption::take_result,
                    .end_task = Encryption::end_task,
                    .progress = progress});
}

}  // namespace nacre::fs
