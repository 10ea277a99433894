// SPDX-License-Identifier: Apache-2.0
// Any bytes as the stream of a checkpoint, under a root that fits its size. Input: the rows of each
// section that the root tells of (7 bytes), how many parts there are, then the stream.
#include <algorithm>
#include <cstdlib>

#include "metadata/format/checkpoint_stream.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nacre;
  using namespace nacre::metadata;
  if (size < checkpoint_section_count + 1) return 0;
  CheckpointRoot root;
  for (std::size_t i = 0; i < checkpoint_section_count; ++i)
    root.row_counts[i] = data[i];
  const ByteView stream(data + checkpoint_section_count + 1, size - checkpoint_section_count - 1);
  const std::size_t part_size = std::max<std::size_t>(1, stream.size() / (1 + data[7] % 3));
  root.stream_size = stream.size();
  for (std::size_t at = 0; at < stream.size(); at += part_size) {
    root.parts.push_back(
        {.version = {root.parts.size() + 1},
         .plain_size = static_cast<std::uint32_t>(std::min(part_size, stream.size() - at))});
  }
  std::array<std::uint64_t, checkpoint_section_count> found = {};
  const auto read = read_checkpoint(
      root,
      [&](std::size_t part) -> Result<Bytes> {
        const auto bytes = stream.subspan(part * part_size, root.parts[part].plain_size);
        return Bytes(bytes.begin(), bytes.end());
      },
      [&](CheckpointSection section, std::string_view key, std::string_view) -> Result<> {
        if (key.empty()) std::abort();
        ++found.at(static_cast<std::size_t>(section) - 1);
        return {};
      });
  if (read && found != root.row_counts) std::abort();
  return 0;
}
