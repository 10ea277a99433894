// SPDX-License-Identifier: Apache-2.0
// The records in RocksDB's logs and manifests: a stream of blocks of 32 KiB, in which each record
// lies whole or in fragments.
//
//   fragment:  checksum u32 | size u16 | kind u8 (1 whole, 2 first, 3 middle, 4 last) | bytes
// No fragment crosses a block's end. If no header fits into the rest of a block, the rest is zeros.
// Checksums are not verified: every byte comes from a frame whose tag was right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nacre::metadata {

// Takes the stream piece by piece. Not thread-safe.
class LogRecords {
 public:
  void add(std::string_view piece);
  // Skips this many unknown bytes. They end the record that was under way, and a record begins
  // after them.
  void skip(std::uint64_t size);
  // Returns the whole records, in order.
  std::vector<std::string> take() { return std::move(records_); }

 private:
  void parse();

  std::string bytes_;           // not yet parsed
  std::uint64_t position_ = 0;  // of the first of these bytes
  std::string record_;          // the fragments of the current record so far
  bool is_within_ = false;
  std::vector<std::string> records_;
};

}  // namespace nacre::metadata
