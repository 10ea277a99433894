// SPDX-License-Identifier: Apache-2.0
#include "fs/store/record_names.h"

#include <algorithm>

#include "gpu_engine/base/limits.h"

namespace nacre::fs {

using metadata::RecordName;

namespace {

// One payload opens as many records as have plain bytes that fit into an arena of this size.
constexpr std::size_t plain_size_bytes = 2u << 20;
static_assert(plain_size_bytes >= chunk_size_bytes_max);

void name_batch(engine::Engine& engine, const RecordKeys& keys, std::uint32_t chunk_size_bytes,
                std::span<const ByteView> records, engine::Arena& plain,
                std::span<Result<RecordName>> names) {
  std::size_t stored = 0;
  for (const ByteView& record : records)
    stored += record.size();
  auto input = engine.allocate(stored);
  if (!input) {
    for (auto& name : names)
      name = tl::unexpected(input.error());
    return;
  }
  engine::Payload payload;
  payload.input = input->data();
  payload.input_size = input->size();
  payload.output = plain.data();
  payload.output_size = plain.size();
  payload.volume_id = keys.volume_id();
  std::vector<std::size_t> sent;
  std::size_t input_offset = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto header = engine::parse_record_header(records[i]);
    const auto key = header ? keys.find(*header, records[i]) : tl::unexpected(header.error());
    if (!key) {
      names[i] = tl::unexpected(key.error());
      continue;
    }
    std::copy(records[i].begin(), records[i].end(), input->data() + input_offset);
    payload.messages.push_back(
        engine::Message{.operation = engine::Operation::unseal,
                        .key_index = payload.add_key((*key)->suite, (*key)->key.view()),
                        .input_offset = input_offset,
                        .input_size = records[i].size(),
                        .output_offset = sent.size() * chunk_size_bytes,
                        .output_capacity = chunk_size_bytes});
    input_offset += records[i].size();
    sent.push_back(i);
  }
  if (!sent.empty()) engine.run(payload);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const bool ran = i < payload.results.size();  // there may be no memory even for results
    if (ran && payload.results[i].ok) {
      names[sent[i]] = metadata::decode_record_name(payload.results[i].identity);
    } else {
      names[sent[i]] = ran ? fail(payload.results[i].error, payload.results[i].detail)
                           : fail(ErrorCode::out_of_memory);
    }
  }
}

}  // namespace

std::vector<Result<RecordName>> names_of_records(engine::Engine& engine, const RecordKeys& keys,
                                                 std::uint32_t chunk_size_bytes,
                                                 std::span<const ByteView> records) {
  std::vector<Result<RecordName>> names(records.size());
  auto plain = engine.allocate(plain_size_bytes);
  if (!plain) {
    for (auto& name : names)
      name = tl::unexpected(plain.error());
    return names;
  }
  const std::size_t at_once = plain_size_bytes / chunk_size_bytes;
  for (std::size_t first = 0; first < records.size(); first += at_once) {
    const std::size_t count = std::min(at_once, records.size() - first);
    name_batch(engine, keys, chunk_size_bytes, records.subspan(first, count), *plain,
               std::span(names).subspan(first, count));
  }
  return names;
}

}  // namespace nacre::fs
