// SPDX-License-Identifier: Apache-2.0
#include "fs/backup/backup_copier.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "fs/store/segment_walk.h"
#include "metadata/sealed_fs/database_scrub.h"
#include "metadata/tables/database.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

namespace {

constexpr std::size_t piece_size_bytes = 1u << 20;
constexpr std::uint64_t writeback_step_bytes = 8u << 20;
constexpr std::size_t damage_count_max = 100;
constexpr int check_count_max = 3;

// Collects the damaged places of a segment.
class DamageNotes final : public SegmentVisitor {
 public:
  DamageNotes(std::string where, BackupReport& report)
      : where_(std::move(where)), report_(report) {}
  Result<> record(std::uint64_t, const engine::RecordHeader&, ByteView) override { return {}; }
  Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    if (report_.damage_count++ < damage_count_max) {
      report_.damage.push_back({error.code, fmt::format("{} offset {}: {} bytes are damaged: {}",
                                                        where_, offset, size, error.message)});
    }
    return {};
  }
  void passed(std::uint64_t) override {}

 private:
  const std::string where_;
  BackupReport& report_;
};

}  // namespace

BackupCopier::BackupCopier(metadata::BackingDirectory& source, metadata::BackingDirectory& target,
                           const BackupOptions& options, const ProgressFunction& progress,
                           BackupReport& report)
    : source_(source),
      target_(target),
      options_(options),
      progress_(progress),
      report_(report),
      buffer_(piece_size_bytes) {}

Result<> BackupCopier::check(const BackupFile& file, metadata::BackingFile& from) {
  if (!file.path.starts_with(metadata::segment_folder)) {
    // A read of a log that is being appended to may return a frame, but not yet the one before it.
    Result<std::uint64_t> checked;
    for (int turn = 0; turn < check_count_max; ++turn) {
      checked = metadata::scrub_database_file(source_, file.path);
      if (checked || checked.error().code == ErrorCode::io) break;
    }
    NACRE_TRY(checked);
    return {};
  }
  DamageNotes notes(fmt::format("{}/{}", source_.description(), file.path), report_);
  // Bytes that were not committed when the volume was left may be torn. Only a holder of the key
  // can tell.
  NACRE_TRY(walk_segment(from, {.file_size = file.size}, notes));
  return {};
}

Result<> BackupCopier::copy_bytes(const BackupFile& file, metadata::BackingFile& from,
                                  metadata::BackingFile& to) {
  std::uint64_t written_back = 0;
  for (std::uint64_t offset = 0; offset < file.size;) {
    const auto piece =
        MutableByteView(buffer_).first(std::min<std::uint64_t>(buffer_.size(), file.size - offset));
    NACRE_ASSIGN(const std::size_t count, from.read(offset, piece));
    if (count < piece.size()) {
      return fail(ErrorCode::stale,
                  fmt::format("{}/{} became shorter while it was copied; run nacre backup again",
                              source_.description(), file.path));
    }
    NACRE_TRY(check_hold({}));
    NACRE_TRY(to.write(offset, piece));
    offset += count;
    if (offset - written_back >= writeback_step_bytes) {
      to.start_writeback(written_back, offset - written_back);
      written_back = offset;
    }
    report_.copied_bytes += count;
    state_.done += count;
    if (progress_) progress_(state_);
    pace();
  }
  return {};
}

void BackupCopier::pace() {
  if (options_.rate_bytes_per_second == 0) return;
  const std::chrono::duration<double> due(static_cast<double>(report_.copied_bytes) /
                                          static_cast<double>(options_.rate_bytes_per_second));
  std::this_thread::sleep_until(
      start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(due));
}

Result<> BackupCopier::check_hold(std::chrono::milliseconds patience) const {
  return options_.check_hold ? options_.check_hold(patience) : Result<>();
}

Result<> BackupCopier::copy(const BackupFile& file, const std::string& unfinished,
                            const std::string& to) {
  auto copied = copy_whole(file, unfinished, to);
  // The reason why a file is gone is the better error.
  if (!copied) NACRE_TRY(check_hold(hold_patience));
  return copied;
}

Result<> BackupCopier::copy_whole(const BackupFile& file, const std::string& unfinished,
                                  const std::string& to) {
  auto from = source_.open(file.path, metadata::OpenMode::read);
  if (!from && from.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::stale,
                fmt::format("{}/{} went away: the volume was unmounted, or its daemon ended, while "
                            "the backup ran; run nacre backup again",
                            source_.description(), file.path));
  }
  if (!from) return tl::unexpected(from.error());
  NACRE_TRY(check(file, **from));
  const auto copied = [&]() -> Result<> {
    NACRE_ASSIGN(const auto file_there,
                 target_.open(unfinished, metadata::OpenMode::create_or_empty));
    NACRE_TRY(copy_bytes(file, **from, *file_there));
    NACRE_TRY(file_there->sync());
    return target_.rename(unfinished, to);
  }();
  if (!copied) {
    static_cast<void>(target_.remove(unfinished));  // the first error is the one that counts
    return copied;
  }
  ++report_.copied_file_count;
  return {};
}

Result<> BackupCopier::write(ByteView content, const std::string& unfinished,
                             const std::string& to) {
  const auto written = [&]() -> Result<> {
    NACRE_ASSIGN(const auto file, target_.open(unfinished, metadata::OpenMode::create_or_empty));
    NACRE_TRY(file->write(0, content));
    NACRE_TRY(file->sync());
    return target_.rename(unfinished, to);
  }();
  if (!written) static_cast<void>(target_.remove(unfinished));
  return written;
}

}  // namespace nacre::fs
