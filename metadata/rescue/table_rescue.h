// SPDX-License-Identifier: Apache-2.0
// A table file of which pages may be damaged: every block of rows that lies in good pages.
//
// Blocks are found by the index at the file's end. Where that cannot be read they are followed from
// the start, each to its end, up to the first bad page: beyond that nothing says where a block
// begins, and what looks like one may be part of somebody's value.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metadata/backing/backing.h"
#include "metadata/rescue/table_block.h"
#include "metadata/sealed_fs/file_seal.h"

namespace nacre::metadata {

class TableRescue {
 public:
  // Errors: not_found; those of the header and of reading it.
  static Result<std::unique_ptr<TableRescue>> open(BackingDirectory& directory,
                                                   const std::string& path, const KeyTree& keys);

  // Reads every page and tells each bad one.
  Result<void> check_pages(const std::function<void(const Error&)>& bad_page);
  // Blocks of rows, in order of their keys.
  std::size_t block_count() const { return blocks_.size(); }
  Result<VersionedRows> read_block(std::size_t index) const;
  // The blocks are all that there are; else those up to some bad page.
  bool knows_all_blocks() const { return knows_all_blocks_; }
  // The family that RocksDB noted; empty when that cannot be read.
  const std::string& family() const { return family_; }
  // Two blocks may hold rows of one key. Of most files RocksDB noted that none do.
  bool may_split_keys() const { return may_split_keys_; }
  const std::string& path() const { return seal_.path(); }

 private:
  TableRescue(std::unique_ptr<BackingFile> file, FileSeal seal, std::uint64_t stored_size);
  Result<Bytes> read_page(std::uint64_t page) const;
  Result<Bytes> read(std::uint64_t offset, std::uint64_t size) const;
  std::optional<Bytes> read_content(const BlockHandle& handle) const;
  // Bytes from here to the next bad page, at most so many.
  Bytes read_good(std::uint64_t offset, std::uint64_t size_max) const;
  void take_padded_size();
  void find_blocks();
  void follow_blocks();

  std::unique_ptr<BackingFile> file_;
  FileSeal seal_;
  std::uint64_t stored_size_;
  std::uint64_t sealed_size_ = 0;  // of what the pages hold
  std::uint64_t plain_size_ = 0;   // of the content, as far as that is known
  std::vector<BlockHandle> blocks_;
  bool knows_all_blocks_ = false;
  std::string family_;
  bool may_split_keys_ = true;
};

}  // namespace nacre::metadata
