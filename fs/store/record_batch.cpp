// SPDX-License-Identifier: Apache-2.0
#include "fs/store/record_batch.h"

#include <algorithm>
#include <utility>

#include "gpu_engine/base/limits.h"

namespace nacre::fs {

using metadata::RecordName;

namespace {

// One payload learns the names of as many records as have plain bytes that fit into this.
constexpr std::size_t naming_size_bytes = 2u << 20;
static_assert(naming_size_bytes >= chunk_size_bytes_max);

engine::Message message_of(engine::Operation operation, const RecordRoom& room) {
  return {.operation = operation,
          .input_offset = room.input_offset,
          .input_size = room.input_size,
          .output_offset = room.output_offset,
          .output_capacity = room.output_capacity};
}

void sign(engine::Message& message, const RecordSeal& seal, std::uint64_t index) {
  message.padding = seal.padding;
  message.epoch = seal.session.epoch;
  message.counter = static_cast<std::uint32_t>(seal.first_counter + index);
  message.salt = seal.session.salt;
}

std::size_t size_of(std::span<const ByteView> records) {
  std::size_t size = 0;
  for (const ByteView& record : records)
    size += record.size();
  return size;
}

// Opens the records within input and output, which have room for them: each gets `room` bytes of
// output. names and plain have an element for each record.
void open_in(engine::Engine& engine, const RecordKeys& keys, std::size_t room,
             std::span<const ByteView> records, engine::Arena& input, engine::Arena& output,
             std::span<Result<RecordName>> names, std::span<ByteView> plain) {
  engine::Payload payload;
  payload.input = input.data();
  payload.input_size = input.size();
  payload.output = output.data();
  payload.output_size = output.size();
  payload.volume_id = keys.volume_id();
  std::vector<std::size_t> sent;
  std::size_t input_at = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto header = engine::parse_record_header(records[i]);
    const auto key = header ? keys.find(*header, records[i]) : tl::unexpected(header.error());
    if (!key) {
      names[i] = tl::unexpected(key.error());
      continue;
    }
    std::copy(records[i].begin(), records[i].end(), input.data() + input_at);
    add_unseal(payload, **key,
               {.input_offset = input_at,
                .input_size = records[i].size(),
                .output_offset = i * room,
                .output_capacity = room});
    input_at += records[i].size();
    sent.push_back(i);
  }
  payload.check_bounds();
  if (!sent.empty()) engine.run(payload);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const engine::MessageResult& result = payload.results[i];
    names[sent[i]] = name_in(result);
    if (result.ok) plain[sent[i]] = {output.data() + sent[i] * room, result.output_size};
  }
}

}  // namespace

std::size_t add_unseal(engine::Payload& payload, const SessionKey& key, const RecordRoom& room,
                       const std::optional<RecordName>& name) {
  engine::Message message = message_of(engine::Operation::unseal, room);
  message.key_index = payload.add_key(key.suite, key.key.view());
  message.check_identity = name.has_value();
  if (name) message.identity = metadata::encode(*name);
  return payload.add(message);
}

std::size_t add_seal(engine::Payload& payload, const RecordSeal& seal, std::uint64_t index,
                     const RecordRoom& room, const metadata::InodeCodec& codec,
                     const RecordName& name) {
  engine::Message message = message_of(engine::Operation::seal, room);
  sign(message, seal, index);
  const SessionKey& key = *seal.session.key;
  message.key_index = payload.add_key(key.suite, key.key.view());
  message.codec = codec.codec;
  message.level = static_cast<std::int8_t>(codec.level);
  message.identity = metadata::encode(name);
  return payload.add(message);
}

std::size_t add_reseal(engine::Payload& payload, const SessionKey& old_key, const RecordSeal& seal,
                       std::uint64_t index, const RecordRoom& room) {
  engine::Message message = message_of(engine::Operation::reseal, room);
  sign(message, seal, index);
  const SessionKey& key = *seal.session.key;
  message.new_key_index = payload.add_key(key.suite, key.key.view());
  message.key_index = payload.add_key(old_key.suite, old_key.key.view());
  return payload.add(message);
}

Result<RecordName> name_in(const engine::MessageResult& result) {
  if (!result.ok) return fail(result.error, result.detail);
  return metadata::decode_record_name(result.identity);
}

Result<OpenedRecords> open_records(engine::Engine& engine, const RecordKeys& keys,
                                   std::uint32_t plain_size_bytes_max,
                                   std::span<const ByteView> records) {
  OpenedRecords opened{.names = std::vector<Result<RecordName>>(records.size(), RecordName{}),
                       .plain = std::vector<ByteView>(records.size()),
                       .memory = {}};
  NACRE_ASSIGN(auto input, engine.allocate(size_of(records)));
  NACRE_ASSIGN(opened.memory, engine.allocate(records.size() * plain_size_bytes_max));
  open_in(engine, keys, plain_size_bytes_max, records, input, opened.memory, opened.names,
          opened.plain);
  return opened;
}

std::vector<Result<RecordName>> names_of_records(engine::Engine& engine, const RecordKeys& keys,
                                                 std::uint32_t chunk_size_bytes,
                                                 std::span<const ByteView> records) {
  std::vector<Result<RecordName>> names(records.size());
  auto output = engine.allocate(naming_size_bytes);
  if (!output) {
    for (auto& name : names)
      name = tl::unexpected(output.error());
    return names;
  }
  const std::size_t at_once = naming_size_bytes / chunk_size_bytes;
  std::vector<ByteView> plain(at_once);
  for (std::size_t first = 0; first < records.size(); first += at_once) {
    const std::size_t count = std::min(at_once, records.size() - first);
    const auto some = records.subspan(first, count);
    const auto some_names = std::span(names).subspan(first, count);
    auto input = engine.allocate(size_of(some));
    if (!input) {
      for (auto& name : some_names)
        name = tl::unexpected(input.error());
      continue;
    }
    open_in(engine, keys, chunk_size_bytes, some, *input, *output, some_names, plain);
  }
  return names;
}

}  // namespace nacre::fs
