// SPDX-License-Identifier: Apache-2.0
// Any bytes as a row of each table, a key, a record's identity. Input: which decoder, then the
// bytes. A value has only one encoding, so accepted bytes must be encoded to the same bytes again.
#include <cstdlib>
#include <string_view>

#include "metadata/format/checkpoint.h"
#include "metadata/format/rows.h"
#include "metadata/format/scrub_row.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace nacre;
using namespace nacre::metadata;

template <typename Decode>
void expect_same(std::string_view value, const Decode& decode) {
  const auto row = decode(value);
  if (row && encode(*row) != value) std::abort();
}

std::string encode_map_row(const ChunkMapRow& row) {
  if (row.hole) return encode(*row.hole);
  if (row.lost) return encode(*row.lost);
  if (row.chunk) return encode(*row.chunk);
  std::abort();
}

void decode_keys(std::string_view key) {
  if (const auto k = decode_inode_key(key); k && inode_key(*k) != key) std::abort();
  if (const auto k = decode_dentry_key(key);
      k && dentry_key(k->parent, k->name_hash, k->name) != key) {
    std::abort();
  }
  if (const auto k = decode_chunk_key(key); k && chunk_key(k->inode, k->index) != key) std::abort();
  if (const auto k = decode_inlined_key(key);
      k && inlined_key(k->inode, k->index, k->version, k->offset) != key) {
    std::abort();
  }
  if (const auto k = decode_segment_key(key); k && segment_key(*k) != key) std::abort();
  if (const auto k = decode_checkpoint_key(key); k && checkpoint_key(*k) != key) std::abort();
}

void decode_identity(std::string_view bytes) {
  engine::RecordIdentity identity;
  if (bytes.size() != identity.size()) return;
  std::copy(bytes.begin(), bytes.end(), identity.begin());
  if (const auto name = decode_record_name(identity); name && encode(*name) != identity) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view value(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 12) {
    case 0:
      expect_same(value, decode_inode_row);
      break;
    case 1:
      expect_same(value, decode_dentry_row);
      break;
    case 2:
      if (const auto row = decode_chunk_map_row(value); row && encode_map_row(*row) != value) {
        std::abort();
      }
      break;
    case 3:
      expect_same(value, decode_segment_row);
      break;
    case 4:
      expect_same(value, decode_session_row);
      break;
    case 5:
      expect_same(value, decode_rotation_row);
      break;
    case 6:
      if (const auto number = decode_u64(value); number && encode_u64(*number) != value) {
        std::abort();
      }
      break;
    case 7:
      expect_same(value, decode_scrub_row);
      break;
    case 8:
      expect_same(value, decode_checkpoint_row);
      break;
    case 9:
      expect_same(value, decode_checkpoint_root);
      break;
    case 10:
      decode_keys(value);
      break;
    default:
      decode_identity(value);
  }
  return 0;
}
