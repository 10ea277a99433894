// SPDX-License-Identifier: Apache-2.0
// The ballast: a file without meaning that takes up room in the volume directory, so that a full
// disk can still be worked on. And the judge of whether new data may be taken on.
//
//   held      new data is taken while the disk has room for it and for all that waits to be written
//   halved    data that was taken met a full disk (or a quota): half of the file is given up for
//             it. The other half is for rows, those of deletes, truncates and renames: what data
//             could take of it no count of free bytes would show under a quota. New data is refused
//             with no_space.
//   released  rows met a full disk: the file is gone. New names are refused once half of its room
//             is used up.
//
// The file is made anew once the disk has room for it: that it can be made is the proof.
// So what was taken can be written, unless somebody else fills the disk faster than commits come.
// Beside it some room is kept free for compaction, which must write before it frees: else a disk
// full of dead records could never be used again.
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
  // move_bytes: what data leaves free for compaction.
  explicit Ballast(std::shared_ptr<metadata::BackingDirectory> directory, std::uint64_t move_bytes)
      : directory_(std::move(directory)), move_bytes_(move_bytes) {}

  // A sixteenth of the disk, 64 MiB at the most: a write-ahead log, the flush of the memory tables
  // and one compaction of them.
  static std::uint64_t size_for(std::uint64_t total_bytes);

  // For a mount, before anything else is written: removes it when the disk is so full that the
  // database could not even be opened.
  static void make_way(metadata::BackingDirectory& directory);
  // Makes it, or gives it its size, if the disk has room. True when it is held then.
  bool restore() NACRE_EXCLUDES(mutex_);
  // A commit met no_space with data or with rows. True when there was something to give up for
  // them: it can be tried again.
  bool release_for_data() NACRE_EXCLUDES(mutex_);
  bool release_for_rows() NACRE_EXCLUDES(mutex_);
  // Whole.
  bool is_held() const { return state_.load(std::memory_order_acquire) == State::held; }

  // Bytes that were admitted, until it goes: by then they are dirty.
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
  // May bytes of new file data be taken, while dirty_bytes() wait to be written? no_space.
  Result<Admission> admit_data(std::uint64_t bytes,
                               const std::function<std::uint64_t()>& dirty_bytes);
  // Bytes that are taken although admit_data() refused them. They count like admitted ones, and
  // wait until there is room.
  Admission take_data(std::uint64_t bytes);
  // May a file whose data waits to be written get another name? No commit is made until the data of
  // such files is written, and deletes need commits. no_space.
  Result<> admit_name_of_dirty_file(const std::function<std::uint64_t()>& dirty_bytes)
      NACRE_EXCLUDES(mutex_);
  // All that is admitted and may not be dirty yet: to be asked for before dirty bytes are.
  std::uint64_t admitted_bytes() const { return admitted_bytes_; }
  // May a name, an inode or an attribute be added? no_space.
  Result<> admit_row();
  // May bytes that were taken be written now? no_space when they would use up what deletes need.
  Result<> admit_flush(std::uint64_t bytes);
  // May compaction write bytes before it frees more? Where that helps the ballast is given up for
  // it: what is freed makes room for it again. no_space when it would use up what deletes need.
  Result<> admit_move(std::uint64_t bytes) NACRE_EXCLUDES(mutex_);

  // What new data may still use of that space, looked at after unwritten bytes were counted, which
  // are admitted or dirty: for statfs.
  std::uint64_t room(const metadata::BackingSpace& space, std::uint64_t unwritten_bytes) const;

 private:
  Result<Admission> admit_data_slowly(std::uint64_t bytes,
                                      const std::function<std::uint64_t()>& dirty_bytes)
      NACRE_EXCLUDES(mutex_);
  // Whether rows keep what they need when this many bytes of data are written.
  bool can_flush(const metadata::BackingSpace& space, std::uint64_t bytes) const;
  bool release_locked() NACRE_REQUIRES(mutex_);
  // To what is kept for rows.
  bool shrink(std::uint64_t size) NACRE_REQUIRES(mutex_);
  // Of a ballast of size: what the file takes up now.
  std::uint64_t kept_bytes(std::uint64_t size) const;

  enum class State : std::uint8_t { held, halved, released };

  const std::shared_ptr<metadata::BackingDirectory> directory_;
  const std::uint64_t move_bytes_;
  Mutex mutex_;  // one at a time changes the file or looks at the disk
  std::atomic<State> state_{State::released};
  // What may be taken before the disk is looked at again.
  std::atomic<std::int64_t> granted_bytes_{0};
  std::atomic<std::uint64_t> admitted_bytes_{0};
  std::atomic<bool> has_taken_data_{false};  // and it was not seen since that all of it has room
};

}  // namespace nacre::fs
