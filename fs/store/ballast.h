// SPDX-License-Identifier: Apache-2.0
// The ballast: a file that only takes up room in the volume directory, so that work can go on when
// the disk is full. The class also decides whether new data may be taken.
//
//   held      New data is taken while the disk has room for it and for all unwritten data.
//   halved    Data that had been taken met a full disk (or a quota): half of the file is given up
//             for that data. The other half stays for rows, those of deletes, truncates and
//             renames. It stays as a file because data could use up free space, and under a quota
//             the count of free bytes does not show that. New data is refused with no_space.
//   released  Rows met a full disk: the file is gone. New names are refused once half of its room
//             is used up.
//
// The file is made anew once the disk has room for it; that it can be made proves the room. So data
// that was taken can be written, unless another program fills the disk faster than commits are
// made. Besides the ballast, some room is kept free for compaction, which must write before it
// frees: otherwise a disk full of dead records could never be used again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "gpu_engine/base/check.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/backing/backing.h"

namespace nacre::fs {

inline constexpr std::string_view ballast_file = "ballast";

// Thread-safe.
class Ballast {
 public:
  // move_bytes is the room that data leaves free for compaction.
  explicit Ballast(std::shared_ptr<metadata::BackingDirectory> directory, std::uint64_t move_bytes)
      : directory_(std::move(directory)), move_bytes_(move_bytes) {}

  // A sixteenth of the disk, and at most 64 MiB. That is enough for a write-ahead log, the flush of
  // the memory tables and one compaction of them.
  static std::uint64_t size_for(std::uint64_t total_bytes);

  // Removes the ballast if the disk is so full that the database could not even be opened. A mount
  // calls it before anything else is written.
  static void make_way(metadata::BackingDirectory& directory);
  // Makes the ballast, or gives it its size, if the disk has room. Returns whether it is held then.
  bool restore() NACRE_EXCLUDES(mutex_);
  // Called when a commit met no_space with data or with rows. Returns true if something was given
  // up for them, so that the step can be tried again.
  bool release_for_data() NACRE_EXCLUDES(mutex_);
  bool release_for_rows() NACRE_EXCLUDES(mutex_);
  // Whether the ballast has its whole size.
  bool is_held() const { return state_.load(std::memory_order_acquire) == State::held; }

  // Bytes that were admitted. They are counted as such until this object is destroyed; by then they
  // are dirty.
  class Admission {
   public:
    Admission() = default;
    Admission(std::atomic<std::uint64_t>& count, std::uint64_t bytes)
        : count_(&count), bytes_(bytes) {
      count += bytes;
    }
    Admission(Admission&& other) noexcept
        : count_(std::exchange(other.count_, nullptr)), bytes_(other.bytes_) {}
    Admission& operator=(Admission&& other) noexcept {
      std::swap(count_, other.count_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Admission() {
      if (count_ == nullptr) return;
      const std::uint64_t before = count_->fetch_sub(bytes_);
      NACRE_CHECK(before >= bytes_, "{} bytes of {} that were admitted are taken back", bytes_,
                  before);
    }

   private:
    std::atomic<std::uint64_t>* count_ = nullptr;
    std::uint64_t bytes_ = 0;
  };
  // In the four calls that follow, and in room(), bytes are the room that data takes on disk once
  // it is flushed, with all that is written for its sake. dirty_bytes() tells the room that dirty
  // bytes will take.

  // Admits new file data while dirty_bytes() wait to be written. Error: no_space.
  Result<Admission> admit_data(std::uint64_t bytes,
                               const std::function<std::uint64_t()>& dirty_bytes);
  // Takes data although admit_data() refused it. It counts like admitted data, and waits until
  // there is room.
  Admission take_data(std::uint64_t bytes);
  // Admits a new name of a file whose data waits to be written. No commit is made until the data of
  // such files is written, and deletes need commits. Error: no_space.
  Result<> admit_name_of_dirty_file(const std::function<std::uint64_t()>& dirty_bytes)
      NACRE_EXCLUDES(mutex_);
  // All that is admitted and may not be dirty yet. Callers ask for them before they ask for
  // the dirty bytes.
  std::uint64_t admitted_bytes() const { return admitted_bytes_; }
  // Admits the writing of data that was taken. Error: no_space if it would use up what deletes
  // need.
  Result<> admit_flush(std::uint64_t bytes);
  // Admits a new name, inode or attribute. Error: no_space.
  Result<> admit_row();
  // Admits bytes that compaction writes before it frees more. If that helps, the ballast is given
  // up for them: the space that compaction frees makes room for it again. Error: no_space if the
  // bytes would use up what deletes need.
  Result<> admit_move(std::uint64_t bytes) NACRE_EXCLUDES(mutex_);

  // The part of that space that new data may still use; statfs shows it. unwritten_bytes is the
  // room for data that is admitted or dirty. It is counted before the space is looked at.
  std::uint64_t room(const metadata::BackingSpace& space, std::uint64_t unwritten_bytes) const;

 private:
  Result<Admission> admit_data_slowly(std::uint64_t bytes,
                                      const std::function<std::uint64_t()>& dirty_bytes)
      NACRE_EXCLUDES(mutex_);
  // Whether rows keep what they need if this many bytes of data are written.
  bool can_flush(const metadata::BackingSpace& space, std::uint64_t bytes) const;
  bool release_locked() NACRE_REQUIRES(mutex_);
  // Shrinks the file to the part that is kept for rows.
  bool shrink(std::uint64_t size) NACRE_REQUIRES(mutex_);
  // The bytes that the file takes up now, if a whole ballast has this size.
  std::uint64_t kept_bytes(std::uint64_t size) const;

  enum class State : std::uint8_t { held, halved, released };

  const std::shared_ptr<metadata::BackingDirectory> directory_;
  const std::uint64_t move_bytes_;
  Mutex mutex_;  // held while a thread changes the file or asks for the free space
  std::atomic<State> state_{State::released};
  // The bytes that may be taken before the disk is looked at again.
  std::atomic<std::int64_t> granted_bytes_{0};
  std::atomic<std::uint64_t> admitted_bytes_{0};
  // Whether data was taken, and it has not been seen since then that all of it has room.
  std::atomic<bool> has_taken_data_{false};
};

}  // namespace nacre::fs
