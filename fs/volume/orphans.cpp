// SPDX-License-Identifier: Apache-2.0
// The end of inodes without a name. While such an inode lives on because a program has it open, its
// inode row has no links, and a row in the table orphans names it. stage() puts both rows, so the
// next mount finds the inode there if this mount ends too early. The other rows of the inode are
// erased in pieces; its own row and the orphan row go with the last piece. An inode that no commit
// has seen has neither row, and leaves nothing behind.
#include <spdlog/spdlog.h>

#include "fs/volume/namespace.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::Table;

Result<> Namespace::find_orphans() {
  std::vector<InodeNumber> orphans;
  Result<> bad;
  NACRE_TRY(database_.scan(Table::orphans, {}, {}, [&](std::string_view key, std::string_view) {
    const auto number = metadata::decode_inode_key(key);
    if (!number) {
      bad = add_context(number.error(), "the table of orphans");
      return false;
    }
    orphans.push_back(*number);
    return true;
  }));
  NACRE_TRY(bad);
  for (const InodeNumber number : orphans) {
    // Releasing the inode retires it.
    const auto inode = inodes_.acquire(number);
    if (!inode) {
      spdlog::warn("inode {} is listed as an orphan but cannot be read: {}; run fsck.nacre",
                   number.value, inode.error().message);
    }
  }
  reaper_.erase_small();
  return {};
}

bool Namespace::erase_orphan(InodeRef& inode, std::size_t row_count_max) {
  {
    const auto locked = inode->lock();
    // A file that was made without a name may have got one.
    if (locked->row.link_count > 0 || inode->is_gone()) return true;
    locked->reaped = true;
  }
  if (!check_writable()) return true;
  // data_of() is called even if the content was not asked for yet, since compaction may be about to
  // ask.
  const bool may_have_chunks = inode->is_regular() && data_of(*inode)->discard();
  const auto done = erase_rows(*inode, may_have_chunks, row_count_max);
  if (!done) {
    spdlog::error("cannot erase the deleted file {}: {}; the next mount tries again",
                  shown_name(inode->number()), done.error().message);
    return true;
  }
  return *done;
}

Result<bool> Namespace::erase_rows(Inode& inode, bool may_have_chunks, std::size_t row_count_max) {
  const InodeNumber number = inode.number();
  const auto operation = committer_.begin_operation();
  if (may_have_chunks) {
    const metadata::ChunkIndex from = inode.lock()->next_chunk_to_erase;
    NACRE_ASSIGN(const auto next, cache_.map().erase(number, from, row_count_max));
    committer_.note_change();
    if (next) {
      inode.lock()->next_chunk_to_erase = *next;
      return false;
    }
  }
  const auto locked = inode.lock();
  if (locked->xattrs != Presence::none) {
    NACRE_ASSIGN(const auto names, xattrs_.names(number));
    for (const std::string& name : names)
      xattrs_.remove(number, name);
  }
  if (locked->has_row) database_.erase(Table::inodes, metadata::inode_key(number));
  if (locked->has_orphan_row) database_.erase(Table::orphans, metadata::orphan_key(number));
  NACRE_CHECK(!inode.is_gone(), "the rows of inode {} are erased twice", number.value);
  staging_.remove_inode(*locked);
  inode.set_gone();
  committer_.note_change();
  return true;
}

}  // namespace nacre::fs
