// SPDX-License-Identifier: Apache-2.0
// Reads a table file whose pages may be damaged: every block of rows in good pages.
//
// The index at the file's end tells where blocks are. If the index cannot be read, blocks are
// followed from the start, each to its end, up to the first bad page. Past that page nothing says
// where a block begins, and what looks like a block may be part of a value that a user wrote.
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
  // Errors: not_found; the errors of the header and of reading it.
  static Result<std::unique_ptr<TableRescue>> open(BackingDirectory& directory,
                                                   const std::string& path, const KeyTree& keys);

  // Reads every page and calls bad_page for each bad one.
  Result<void> check_pages(const std::function<void(const Error&)>& bad_page);
  // The number of blocks of rows. Blocks are in order of their keys.
  std::size_t block_count() const { return blocks_.size(); }
  Result<VersionedRows> read_block(std::size_t index) const;
  // Whether the blocks are all that there are. Otherwise they are those up to some bad page.
  bool knows_all_blocks() const { return knows_all_blocks_; }
  // The family that RocksDB noted. Empty if that cannot be read.
  const std::string& family() const { return family_; }
  // Whether two blocks may hold rows of one key. For most files RocksDB noted that none do.
  bool may_split_keys() const { return may_split_keys_; }
  const std::string& path() const { return seal_.path(); }
  const FileSalt& salt() const { return seal_.header().salt; }

 private:
  TableRescue(std::unique_ptr<BackingFile> file, FileSeal seal, std::uint64_t stored_size);
  Result<Bytes> read_page(std::uint64_t page) const;
  Result<Bytes> read(std::uint64_t offset, std::uint64_t size) const;
  std::optional<Bytes> read_content(const BlockHandle& handle) const;
  // Returns the bytes from offset to the next bad page, at most size_max of them.
  Bytes read_good(std::uint64_t offset, std::uint64_t size_max) const;
  void take_padded_size();
  void find_blocks();
  void follow_blocks();

  std::unique_ptr<BackingFile> file_;
  FileSeal seal_;
  std::uint64_t stored_size_;
  std::uint64_t sealed_size_ = 0;  // bytes in the pages
  std::uint64_t plain_size_ = 0;   // bytes of content, as far as that is known
  std::vector<BlockHandle> blocks_;
  bool knows_all_blocks_ = false;
  std::string family_;
  bool may_split_keys_ = true;
};

}  // namespace nacre::metadata
