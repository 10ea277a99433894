// SPDX-License-Identifier: Apache-2.0
#include "fs/volume/admission.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "metadata/tables/database.h"

namespace nacre::fs {

namespace {

// If backups keep fewer bytes than this, they are not given up, and no change waits for fewer.
constexpr std::uint64_t held_bytes_min = 1u << 20;
// A change waits at most this long for bytes that are dead and not free yet. It looks this often.
constexpr std::chrono::milliseconds freeing_wait{5000};
constexpr std::chrono::milliseconds freeing_pause{20};

}  // namespace

Result<> Admission::check_writable() const {
  if (rules_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  const auto health = parts_.committer.health();
  if (!health) {
    return fail(ErrorCode::read_only,
                "the volume refuses changes since a commit failed: " + health.error().message);
  }
  return {};
}

Result<> Admission::check_may_grow() {
  NACRE_TRY(check_writable());
  return admit_after_freeing([&] { return parts_.ballast.admit_row(); });
}

bool Admission::give_up_backups(std::uint64_t bytes_min) {
  if (parts_.backups.count() == 0) return false;
  const std::uint64_t held_bytes =
      parts_.store.stats().held_bytes + parts_.database.stats().held_bytes;
  if (held_bytes < std::max(bytes_min, held_bytes_min) || !parts_.backups.give_up()) return false;
  spdlog::warn(
      "{}: the disk is full: {} deleted bytes that only a backup still needs are freed now; the "
      "backup fails, so run it again when there is more free space",
      parts_.directory.description(), held_bytes);
  freeing_until_ = std::chrono::steady_clock::now() + freeing_wait;
  parts_.committer.request(CommitScope{.everything = true}, [](const Result<>&) {});
  return true;
}

void Admission::expect_room(std::uint64_t bytes_min) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_freeing_.load()) return;
  // Bytes that are being erased are not known to be dead yet.
  const std::uint64_t wanted_bytes = std::max(bytes_min, held_bytes_min);
  if (!parts_.is_erasing() && parts_.store.stats().reclaimable_bytes < wanted_bytes) return;
  next_freeing_ = now + 2 * freeing_wait;
  freeing_until_ = now + freeing_wait;
  parts_.committer.request(CommitScope{.everything = true}, [](const Result<>&) {});
  parts_.compactor.wake();
}

Result<> Admission::admit_after_freeing(const std::function<Result<>()>& admit,
                                        std::uint64_t missing_bytes) {
  auto admitted = admit();
  if (admitted) return admitted;
  if (!give_up_backups(missing_bytes)) expect_room(missing_bytes);
  // A commit frees whole segments. Compaction frees the dead bytes between live records.
  while (!admitted && std::chrono::steady_clock::now() < freeing_until_.load()) {
    std::this_thread::sleep_for(freeing_pause);
    admitted = admit();
    if (admitted) next_freeing_ = std::chrono::steady_clock::time_point{};
  }
  return admitted;
}

}  // namespace nacre::fs
