// SPDX-License-Identifier: Apache-2.0
// fallocate(2) sets room aside, and writes into it find it (fs/space/room.h).
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "fs/volume/admission.h"
#include "fs/volume/files.h"

namespace nacre::fs {

namespace {

// How often a write that waits for what was promised to it looks, how often it has a commit made,
// and how long it waits while nothing is given back at all: then there is nothing to give.
constexpr std::chrono::milliseconds promise_look_pause{10};
constexpr std::chrono::milliseconds promise_commit_pause{100};
constexpr std::chrono::milliseconds promise_patience{20'000};

}  // namespace

// What is dirty is written, what is dead is emptied, and what is empty goes: for as long as there
// is any of that, there is room for what was promised.
Result<Ballast::Admission> Admission::admit_promised(
    std::uint64_t bytes, const std::function<std::uint64_t()>& dirty_bytes) {
  auto admitted = parts_.ballast.admit_promised(bytes, dirty_bytes);
  if (admitted || admitted.error().code != ErrorCode::no_space) return admitted;
  const Compactor::Pressed pressed(parts_.compactor);
  give_up_backups(bytes);
  using Clock = std::chrono::steady_clock;
  const auto given_back = [this] {
    const SegmentStats stats = parts_.store.stats();
    return std::pair(stats.moved_bytes, stats.stored_bytes);
  };
  auto seen = given_back();
  auto end = Clock::now() + promise_patience;
  auto next_commit = Clock::now();
  const auto is_committing = std::make_shared<std::atomic<bool>>(false);
  while (Clock::now() < end) {
    if (Clock::now() >= next_commit && !is_committing->exchange(true)) {
      next_commit = Clock::now() + promise_commit_pause;
      parts_.committer.request(CommitScope{.everything = true},
                               [is_committing](const Result<>&) { *is_committing = false; });
    }
    std::this_thread::sleep_for(promise_look_pause);
    admitted = parts_.ballast.admit_promised(bytes, dirty_bytes);
    if (admitted) break;
    if (const auto now = given_back(); now != seen) {
      seen = now;
      end = Clock::now() + promise_patience;
    }
  }
  return admitted;
}

Result<> Files::reserve(Inode& inode, std::uint64_t offset, std::uint64_t length) {
  if (inode.lock()->row.flags & metadata::inode_flag_immutable) {
    return fail(ErrorCode::not_permitted);
  }
  // What is longer than the disk can never be there: no sum below overflows.
  NACRE_ASSIGN(const auto disk, directory_.space());
  if (length > disk.total_bytes) return fail(ErrorCode::no_space);
  return data_of(inode)->reserve(
      offset, length, [this](std::uint64_t held_bytes, std::uint64_t chunk_count) -> Result<> {
        const auto claim = [&] {
          return room_.claim(held_bytes, chunk_count, [this] { return cache_.dirty_bytes(); });
        };
        const auto claimed = claim();
        if (claimed || claimed.error().code != ErrorCode::no_space) return claimed;
        NACRE_ASSIGN(const auto space, directory_.space());
        const std::uint64_t room = ballast_.room(space, unwritten_bytes());
        return admission_.admit_after_freeing(claim, held_bytes - std::min(held_bytes, room));
      });
}

// In whole chunks, so that what was reckoned for them suffices, and at once: what waited in memory
// would need room later.
Result<> Files::write_promised(Inode& inode, FileData& data, std::uint64_t offset, ByteView bytes,
                               WriteFlags flags) {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  const std::uint64_t first = offset / chunk_size;
  const std::uint64_t end = cache_.map().chunk_count(offset + bytes.size());
  NACRE_ASSIGN(const auto admission,
               admission_.admit_promised(room_.worst_case_bytes(end - first),
                                         [this] { return cache_.dirty_bytes(); }));
  NACRE_TRY(begin_change(inode, flags));
  NACRE_TRY(data.write_promised(offset, bytes));
  // Where this fails the bytes stay dirty, as others do, and fsync tells of it.
  static_cast<void>(cache_.flush_chunks(data.shared_from_this(), first, end - 1));
  return {};
}

}  // namespace nacre::fs
