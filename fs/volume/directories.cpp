// SPDX-License-Identifier: Apache-2.0
// Reads directories, and finds the way from an inode back to its path.
//
// Entries come in the order of their names' hashes. To go on after an entry means to go on with the
// next greater hash, whatever entries came or went in between. An entry's cookie is a shorter
// number for its hash (directory_offsets.h). If names share a hash, all but the last of them carry
// the cookie of the entry before: a reader that stopped among them sees some of them twice, but
// misses none.
#include <algorithm>
#include <new>

#include <dirent.h>
#include <fmt/format.h>

#include "fs/volume/namespace.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

namespace {

constexpr std::uint64_t cookie_dot = 1;
constexpr std::uint64_t cookie_dot_dot = DirectoryOffsets::offset_dot_dot;
constexpr std::size_t lost_place_batch_count = 4096;
constexpr std::size_t first_batch_count = 32;
constexpr std::size_t batch_count_max = 256;
bool is_last_of_hash(const std::vector<NameTable::Entry>& entries, std::size_t index) {
  return index + 1 == entries.size() || entries[index + 1].hash != entries[index].hash;
}

// The place behind an entry that is the last of its hash. ends says that the directory ends with
// these entries.
std::uint64_t place_behind(const std::vector<NameTable::Entry>& entries, std::size_t index,
                           bool ends) {
  std::optional<std::uint64_t> next;
  if (index + 1 < entries.size()) {
    next = entries[index + 1].hash;
  } else if (ends) {
    next = DirectoryOffsets::past_all_hashes;
  }
  return DirectoryOffsets::place_behind(entries[index].hash, next);
}

}  // namespace

Result<std::uint64_t> Namespace::place_of_offset(InodeNumber directory, std::uint64_t offset) {
  if (const auto place = directory_offsets_.place_of(directory, offset)) return *place;
  return find_lost_place(directory, offset);
}

// Finds a place that is not in the table. An NFS client, or a program that sought back, may pass a
// cookie from an earlier mount, or a very old one.
Result<std::uint64_t> Namespace::find_lost_place(InodeNumber directory, std::uint64_t ticket) {
  std::optional<std::uint64_t> found;
  for (std::uint64_t from = cookie_dot_dot + 1;;) {
    SharedLock names(namespace_lock_);
    NACRE_ASSIGN(const auto entries, names_.list(directory, from, lost_place_batch_count));
    for (const NameTable::Entry& entry : entries) {
      if (!DirectoryOffsets::has_ticket(entry.hash, ticket) || found == entry.hash) continue;
      if (found) return fail(ErrorCode::stale);
      found = entry.hash;
    }
    if (entries.size() < lost_place_batch_count) break;
    from = entries.back().hash + 1;
  }
  if (!found) return fail(ErrorCode::stale);
  return *found;
}

Result<> Namespace::read_directory(InodeNumber number, std::uint64_t cookie, bool with_attributes,
                                   const std::function<bool(const DirectoryEntry&)>& take) {
  NACRE_ASSIGN(const InodeRef directory, acquire_directory(number));
  if (cookie == 0) note_access(*directory);
  if (cookie < cookie_dot) {
    if (!take({.name = ".", .inode = number, .type = DT_DIR, .cookie = cookie_dot})) return {};
  }
  if (cookie < cookie_dot_dot) {
    const InodeNumber parent = directory->lock()->row.parent;
    if (!take({.name = "..", .inode = parent, .type = DT_DIR, .cookie = cookie_dot_dot})) return {};
    cookie = cookie_dot_dot;
  }
  NACRE_ASSIGN(std::uint64_t place, place_of_offset(number, cookie));
  if (with_attributes) return list_inodes(number, place, cookie, take);
  for (std::size_t count = first_batch_count;; count = std::min(2 * count, batch_count_max)) {
    SharedLock names(namespace_lock_);
    NACRE_ASSIGN(const auto entries, names_.list(number, place + 1, count));
    const bool ends = entries.size() < count;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const NameTable::Entry& found = entries[i];
      if (is_last_of_hash(entries, i)) {
        place = place_behind(entries, i, ends);
        cookie = directory_offsets_.offset_of(number, place, cookie);
      }
      if (!take({.name = found.name,
                 .inode = found.row.inode,
                 .type = found.row.type,
                 .cookie = cookie})) {
        return {};
      }
    }
    if (ends) return {};
  }
}

// The same with inodes, one piece after the other. After the second reply the pieces are there when
// they are asked for (list_ahead.h).
Result<> Namespace::list_inodes(InodeNumber number, std::uint64_t place, std::uint64_t offset,
                                const std::function<bool(const DirectoryEntry&)>& take) {
  for (std::size_t count = first_batch_count;;) {
    list_ahead_.wait_for(number, place);
    ListPiece piece;
    SharedLock names(namespace_lock_);
    auto ready = list_ahead_.take(number, place);
    // A reader that changes the directory while it lists it finds no piece, and none is read ahead
    // in vain.
    const bool is_undisturbed = ready.has_value();
    if (ready) {
      piece = std::move(*ready);
    } else {
      NACRE_ASSIGN(piece, read_piece(number, place, count));
    }
    count = std::min(2 * std::max(count, piece.entries.size()), ListAhead::entry_count_max);
    const bool is_large = piece.entries.size() >= ListAhead::entry_count_min;
    if (is_large && is_undisturbed && !piece.is_last) {
      list_ahead_.want(number, piece.entries.back().hash, count);
    }
    for (; piece.next < piece.entries.size(); ++piece.next) {
      const NameTable::Entry& found = piece.entries[piece.next];
      if (is_last_of_hash(piece.entries, piece.next)) {
        place = place_behind(piece.entries, piece.next, piece.is_last);
        offset = directory_offsets_.offset_of(number, place, offset);
      }
      DirectoryEntry entry{
          .name = found.name, .inode = found.row.inode, .type = found.row.type, .cookie = offset};
      // An entry whose inode is damaged is listed, too.
      const InodeRef inode = is_large ? std::move(piece.inodes[piece.next])
                                      : inodes_.acquire(found.row.inode).value_or(InodeRef());
      Attributes attributes;
      if (inode) {
        remember_name(*inode, number, found.name);
        attributes = attributes_of(*inode);
        entry.attributes = &attributes;
      }
      if (!take(entry)) {
        if (is_large) {
          piece.inodes[piece.next] = inode;
          keep_rest(std::move(piece));
        }
        return {};
      }
      if (inode) inodes_.add_lookup(inode);
    }
    if (piece.is_last) return {};
  }
}

// The caller holds the namespace lock. Inodes of a small piece are loaded one by one as they are
// listed, which costs less for a few of them.
Result<ListPiece> Namespace::read_piece(InodeNumber directory, std::uint64_t from,
                                        std::size_t count) {
  ListPiece piece{.directory = directory, .from = from};
  NACRE_ASSIGN(piece.entries, names_.list(directory, from + 1, count));
  piece.is_last = piece.entries.size() < count;
  if (piece.entries.size() < ListAhead::entry_count_min) return piece;
  std::vector<InodeNumber> numbers;
  numbers.reserve(piece.entries.size());
  for (const NameTable::Entry& entry : piece.entries)
    numbers.push_back(entry.row.inode);
  piece.inodes = inodes_.acquire_all(numbers);
  return piece;
}

// The caller holds the namespace lock. A reader that stopped among names of one hash comes back to
// the first of them.
void Namespace::keep_rest(ListPiece piece) {
  if (piece.next > 0) {
    if (!is_last_of_hash(piece.entries, piece.next - 1)) return;
    piece.from = place_behind(piece.entries, piece.next - 1, piece.is_last);
  }
  list_ahead_.keep(std::move(piece));
}

void Namespace::read_ahead(InodeNumber directory, std::uint64_t from, std::size_t count) noexcept {
  try {
    SharedLock names(namespace_lock_);
    // A reader that asks for the piece gets the error.
    auto piece = read_piece(directory, from, count);
    if (piece && !piece->entries.empty()) list_ahead_.keep(std::move(*piece));
  } catch (const std::bad_alloc&) {
    return;
  }
}

}  // namespace nacre::fs
