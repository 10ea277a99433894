// SPDX-License-Identifier: Apache-2.0
#include "fs/crypt/container_inspect.h"

#include <fmt/format.h>

#include <algorithm>

#include "fs/crypt/container_keys.h"

namespace nacre::fs {

namespace {

constexpr std::size_t window_size_bytes = 4u << 20;
static_assert(window_size_bytes > engine::record_size_bytes_max);

}  // namespace

Result<ContainerInspection> inspect_container(const ReadContainer& read) {
  ContainerInspection found;
  Bytes keyring_text;
  NACRE_ASSIGN(found.header, read_container_start(read, keyring_text));
  NACRE_ASSIGN(auto keyring, parse_container_keyring(keyring_text));
  found.keyring = std::move(keyring.claims);
  found.stored_bytes = container_header_size_bytes + keyring_text.size();

  RecordSequence sequence(found.keyring.epochs.front().suite);
  Bytes window(window_size_bytes);
  std::size_t rest = 0;
  for (bool at_end = false; !at_end;) {
    const MutableByteView room = MutableByteView(window).subspan(rest);
    NACRE_ASSIGN(const std::size_t got, read(room));
    at_end = got < room.size();
    ByteView bytes = ByteView(window).first(rest + got);
    while (!bytes.empty()) {
      NACRE_ASSIGN(const std::size_t size, sequence.next_record_size(bytes));
      if (size == 0) break;
      if (const auto crc = engine::check_record_crc(bytes.first(size)); !crc) {
        return fail(crc.error().code,
                    fmt::format("record {}: {}", sequence.count() + 1, crc.error().text));
      }
      sequence.take();
      found.stored_bytes += size;
      bytes = bytes.subspan(size);
    }
    rest = bytes.size();
    std::copy(bytes.begin(), bytes.end(), window.begin());
  }
  found.record_count = sequence.count();
  if (rest > 0 || found.record_count == 0) {
    return fail(ErrorCode::corrupt, cut_off_text(found.record_count));
  }
  return found;
}

}  // namespace nacre::fs
