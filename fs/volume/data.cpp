// SPDX-License-Identifier: Apache-2.0
// Reading and writing files: the rules around FileData, which does the work.
#include <algorithm>
#include <future>
#include <limits>

#include "fs/volume/files.h"
#include "fs/volume/kernel_clock.h"

namespace nacre::fs {

namespace {

constexpr std::uint64_t file_size_max = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t copy_piece_bytes_max = 1u << 20;
// One request copies at most this much data. The caller asks again for the rest.
constexpr std::uint64_t copy_data_bytes_max = 64u << 20;
// A write to a full disk waits at most this long for a commit. If nothing has changed, the next
// wait begins after the pause at the earliest.
constexpr std::chrono::milliseconds reclaim_wait{1000};
constexpr std::chrono::milliseconds reclaim_pause{1000};

// One more file costs at least this much. The count of inodes that statfs shows is derived from it.
constexpr std::uint64_t inode_cost_bytes = 512;
// The highest count of inodes that is shown, in use and free together.
constexpr std::uint64_t inode_count_max = 0xffff'ffff;

}  // namespace

Result<InodeRef> Files::acquire_regular(InodeNumber number) {
  NACRE_ASSIGN(InodeRef inode, inodes_.acquire(number));
  if (inode->is_directory()) return fail(ErrorCode::is_directory);
  if (!inode->is_regular()) return fail(ErrorCode::invalid_argument);
  return inode;
}

Result<std::size_t> Files::read(InodeNumber number, std::uint64_t offset, MutableByteView out) {
  NACRE_ASSIGN(const InodeRef inode, acquire_regular(number));
  auto count = data_of(*inode)->read(offset, out);
  if (!count) return tl::unexpected(with_path(std::move(count).error(), number));
  note_access(*inode);
  return count;
}

Result<FileBytes> Files::view(InodeNumber number, std::uint64_t offset, MutableByteView buffer) {
  NACRE_ASSIGN(const InodeRef inode, acquire_regular(number));
  auto bytes = data_of(*inode)->view(offset, buffer);
  if (!bytes) return tl::unexpected(with_path(std::move(bytes).error(), number));
  note_access(*inode);
  return bytes;
}

std::uint64_t Files::unwritten_bytes() const {
  const std::uint64_t admitted_bytes = ballast_.admitted_bytes();
  return admitted_bytes + cache_.flush_room_bytes();
}

Result<Ballast::Admission> Files::admit_at_once(std::uint64_t bytes) {
  return ballast_.admit_data(bytes, [this] { return cache_.flush_room_bytes(); });
}

Result<Ballast::Admission> Files::admit_data(std::uint64_t bytes) {
  if (auto admitted = admit_at_once(bytes)) return admitted;
  Ballast::Admission admission;
  NACRE_TRY(admission_.admit_after_freeing([&]() -> Result<> {
    NACRE_ASSIGN(admission, admit_after_commit(bytes));
    return {};
  }));
  return admission;
}

Result<Ballast::Admission> Files::admit_write(InodeNumber number, std::uint64_t bytes,
                                              WriteFlags flags) {
  if (!flags.is_taken) return admit_data(bytes);
  if (auto admitted = admit_at_once(bytes)) return admitted;
  // No commit is made before the data of a file with a new name is written, not even one that
  // deletes. And if the ballast was given up, the rest of it is for rows: data could use that up
  // under a quota without being seen in the count of free bytes.
  if (staging_.is_moved(number) || !ballast_.is_held()) return admit_data(bytes);
  return ballast_.take_data(bytes);
}

// A commit may free the space of deleted files, and a file is often deleted to make room for the
// next one. The wait has a bound, since the commit may need a request that this thread has to
// serve.
Result<Ballast::Admission> Files::admit_after_commit(std::uint64_t bytes) {
  if (!reclaim_mutex_.try_lock_for(reclaim_wait)) return admit_at_once(bytes);
  const LockGuard turn(reclaim_mutex_, std::adopt_lock);
  auto admitted = admit_at_once(bytes);
  const bool too_soon = std::chrono::steady_clock::now() < next_reclaim_;
  if (admitted || (too_soon && !committer_.has_changes())) return admitted;
  const auto committed = std::make_shared<std::promise<void>>();
  auto done = committed->get_future();
  committer_.request(CommitScope{.everything = true},
                     [committed](const Result<>&) { committed->set_value(); });
  static_cast<void>(done.wait_for(reclaim_wait));
  next_reclaim_ = std::chrono::steady_clock::now() + reclaim_pause;
  return admit_at_once(bytes);
}

// Makes the changes of the inode that come with any change of a file's content. They come before
// the content changes, so no reader sees new content with old privileges.
Result<> Files::begin_change(Inode& inode, WriteFlags flags) {
  const auto operation = committer_.begin_operation();
  auto locked = inode.lock();
  if (locked->row.flags & metadata::inode_flag_immutable) return fail(ErrorCode::not_permitted);
  NACRE_TRY(attributes_.drop_capability(inode, locked));
  InodeAttributes::clear_set_id(locked->row, flags.clear_set_id);
  if (!kernel_cache_.is_set()) locked->row.modified = locked->row.changed = kernel_now();
  mark_dirty(inode, locked);
  return {};
}

// The kernel writes back whole pages, so an append comes with bytes in front of it. Such bytes may
// be written over an append-only file if they change nothing.
Result<> Files::check_append_only(FileData& data, std::uint64_t offset, ByteView bytes) {
  const std::uint64_t size = data.size();
  if (offset > size) return fail(ErrorCode::not_permitted);
  Bytes old(std::min<std::uint64_t>(bytes.size(), size - offset));
  NACRE_ASSIGN(const std::size_t count, data.read(offset, old));
  if (count != old.size() || !std::equal(old.begin(), old.end(), bytes.begin())) {
    return fail(ErrorCode::not_permitted);
  }
  return {};
}

Result<> Files::write(InodeNumber number, std::uint64_t offset, ByteView bytes, WriteFlags flags) {
  NACRE_TRY(check_writable());
  NACRE_ASSIGN(const InodeRef inode, acquire_regular(number));
  if (bytes.empty()) return {};
  const auto data = data_of(*inode);
  const auto write_data = [&]() -> Result<> {
    if (inode->lock()->row.flags & metadata::inode_flag_append) {
      NACRE_TRY(check_append_only(*data, offset, bytes));
    }
    NACRE_ASSIGN(const auto admission,
                 admit_write(number, data->cost_of_write(offset, bytes.size()), flags));
    NACRE_TRY(begin_change(*inode, flags));
    return data->write(offset, bytes);
  };
  auto written = write_data();
  if (!written) return tl::unexpected(with_path(std::move(written).error(), number));
  return {};
}

Result<std::uint64_t> Files::check_write(InodeNumber number, std::uint64_t bytes,
                                         std::uint64_t kept_bytes) {
  NACRE_TRY(check_writable());
  NACRE_ASSIGN(const InodeRef inode, acquire_regular(number));
  if (inode->lock()->row.flags & metadata::inode_flag_immutable) {
    return fail(ErrorCode::not_permitted);
  }
  const std::uint64_t cost = cache_.flush_cost().of_write_anywhere(bytes);
  NACRE_ASSIGN(const auto admission, admit_data(kept_bytes + cost));
  return cost;
}

Result<> Files::admit_allocation(std::uint64_t bytes) {
  std::uint64_t missing_bytes = 0;
  const auto admit = [&]() -> Result<> {
    const std::uint64_t unwritten = unwritten_bytes();
    NACRE_ASSIGN(const auto space, directory_.space());
    const std::uint64_t room = ballast_.room(space, unwritten);
    missing_bytes = bytes - std::min(bytes, room);
    return missing_bytes == 0 ? Result<>() : fail(ErrorCode::no_space);
  };
  const auto admitted = admit();
  if (admitted || admitted.error().code != ErrorCode::no_space) return admitted;
  return admission_.admit_after_freeing(admit, missing_bytes);
}

Result<> Files::allocate(InodeNumber number, AllocateMode mode, std::uint64_t offset,
                         std::uint64_t length) {
  NACRE_TRY(check_writable());
  NACRE_ASSIGN(const InodeRef inode, acquire_regular(number));
  if (length == 0) return fail(ErrorCode::invalid_argument);
  if (offset > file_size_max || length > file_size_max - offset) return fail(ErrorCode::too_big);
  const bool zeroes = mode == AllocateMode::punch_hole || mode == AllocateMode::zero ||
                      mode == AllocateMode::zero_keep_size;
  const bool extends = mode == AllocateMode::allocate || mode == AllocateMode::zero;
  if (zeroes && (inode->lock()->row.flags & metadata::inode_flag_append)) {
    return fail(ErrorCode::not_permitted);
  }
  const auto data = data_of(*inode);
  const std::uint64_t end = offset + length;
  if (!zeroes && end > data->size()) {
    NACRE_TRY(admit_allocation(std::min(length, end - data->size())));
  }
  NACRE_TRY(begin_change(*inode, {}));
  const auto change = [&]() -> Result<> {
    if (zeroes) NACRE_TRY(data->punch(offset, length));
    if (extends) NACRE_TRY(data->extend(end));
    return {};
  };
  auto changed = change();
  if (!changed) return tl::unexpected(with_path(std::move(changed).error(), number));
  return {};
}

Result<std::uint64_t> Files::seek(InodeNumber number, std::uint64_t offset, SeekWhat what) {
  NACRE_ASSIGN(const InodeRef inode, acquire_regular(number));
  auto place = data_of(*inode)->seek(offset, what);
  if (!place) return tl::unexpected(with_path(std::move(place).error(), number));
  return place;
}

Result<std::uint64_t> Files::copy_range(InodeNumber from, std::uint64_t from_offset, InodeNumber to,
                                        std::uint64_t to_offset, std::uint64_t length) {
  NACRE_TRY(check_writable());
  NACRE_ASSIGN(const InodeRef source, acquire_regular(from));
  NACRE_ASSIGN(const InodeRef target, acquire_regular(to));
  const auto source_data = data_of(*source);
  const auto target_data = data_of(*target);
  const std::uint64_t size = source_data->size();
  if (from_offset >= size) return 0;
  length = std::min(length, size - from_offset);
  if (length == 0) return 0;
  if (to_offset > file_size_max || length > file_size_max - to_offset) {
    return fail(ErrorCode::too_big);
  }
  if (from == to && from_offset < to_offset + length && to_offset < from_offset + length) {
    return fail(ErrorCode::invalid_argument);
  }
  if ((target->lock()->row.flags & metadata::inode_flag_append) &&
      to_offset != target_data->size()) {
    return fail(ErrorCode::not_permitted);
  }
  NACRE_TRY(begin_change(*target, {}));
  note_access(*source);
  Bytes buffer(std::min<std::uint64_t>(length, copy_piece_bytes_max));
  std::uint64_t done = 0;
  std::uint64_t data_bytes = 0;
  while (done < length && data_bytes < copy_data_bytes_max) {
    const auto piece_bytes = std::min<std::uint64_t>(length - done, buffer.size());
    const auto admitted = admit_data(target_data->cost_of_write(to_offset + done, piece_bytes));
    if (!admitted) {
      if (done > 0) return done;
      return tl::unexpected(admitted.error());
    }
    const auto copied = copy_piece(*source_data, from_offset + done, *target_data, to_offset + done,
                                   length - done, buffer);
    if (!copied) {
      // The part that is done counts. If the caller goes on, it gets the error again.
      if (done > 0) return done;
      return tl::unexpected(with_path(copied.error(), from));
    }
    if (copied->size == 0) break;
    done += copied->size;
    if (!copied->is_hole) data_bytes += copied->size;
  }
  return done;
}

Result<Files::CopiedPiece> Files::copy_piece(FileData& from, std::uint64_t from_offset,
                                             FileData& to, std::uint64_t to_offset,
                                             std::uint64_t length, MutableByteView buffer) {
  const auto data_start = from.seek(from_offset, SeekWhat::data);
  if (!data_start && data_start.error().code != ErrorCode::no_position) {
    return tl::unexpected(data_start.error());
  }
  const std::uint64_t size = from.size();
  if (from_offset >= size) return CopiedPiece{};
  const std::uint64_t hole = std::min(length, (data_start ? *data_start : size) - from_offset);
  if (hole > 0) {
    NACRE_TRY(to.punch(to_offset, hole));
    NACRE_TRY(to.extend(to_offset + hole));
    return CopiedPiece{hole, true};
  }
  const auto data_end = from.seek(from_offset, SeekWhat::hole);
  if (!data_end && data_end.error().code == ErrorCode::no_position)
    // The file was cut off in the meantime.
    return CopiedPiece{};
  if (!data_end) return tl::unexpected(data_end.error());
  buffer = buffer.first(std::min({buffer.size(), length, *data_end - from_offset}));
  NACRE_ASSIGN(const std::size_t count, from.read(from_offset, buffer));
  NACRE_TRY(to.write(to_offset, buffer.first(count)));
  return CopiedPiece{count, false};
}

Result<VolumeSpace> Files::space() {
  const std::uint64_t unwritten = unwritten_bytes();
  NACRE_ASSIGN(const auto backing, directory_.space());
  const auto count = staging_.inode_count();
  const std::uint64_t available = ballast_.room(backing, unwritten);
  // 32-bit programs get EOVERFLOW for larger numbers.
  const std::uint64_t free_inodes =
      std::min(available / inode_cost_bytes, inode_count_max - std::min(count, inode_count_max));
  const std::uint64_t for_root = backing.free_bytes - backing.available_bytes;
  return VolumeSpace{.total_bytes = backing.total_bytes,
                     .free_bytes = available + for_root,
                     .available_bytes = available,
                     .inode_count = count + free_inodes,
                     .free_inodes = free_inodes};
}

}  // namespace nacre::fs
