// SPDX-License-Identifier: Apache-2.0
#include "fs/rotation/epoch_walk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fs/store/segment_walk.h"
#include "gpu_engine/base/limits.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/record/record.h"
#include "metadata/sealed_fs/database_scrub.h"
#include "metadata/sealed_fs/file_header.h"
#include "metadata/tables/database.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

namespace {

using metadata::BackingDirectory;
using Passed = std::function<Result<>(std::uint64_t)>;

// Reading more segments than this in parallel is no faster on any disk or memory.
constexpr unsigned walker_count_max = 8;
// Progress is reported after this many bytes of a segment, since only one thread at a time reports.
constexpr std::uint64_t passed_step_bytes = 1u << 20;

void note_file(EpochCounts& counts, const std::string& path, std::uint32_t epoch,
               std::optional<std::uint32_t> found) {
  ++counts.file_count;
  if (!found || *found == epoch) return;
  ++counts.other_file_count;
  if (counts.first_other.empty())
    counts.first_other = fmt::format("{} is of epoch {}", path, *found);
}

void add(EpochCounts& sum, EpochCounts counts) {
  sum.file_count += counts.file_count;
  sum.record_count += counts.record_count;
  sum.record_bytes += counts.record_bytes;
  sum.other_file_count += counts.other_file_count;
  sum.other_record_count += counts.other_record_count;
  sum.damaged_place_count += counts.damaged_place_count;
  if (sum.first_other.empty()) sum.first_other = std::move(counts.first_other);
}

class SegmentEpochs final : private SegmentVisitor {
 public:
  SegmentEpochs(std::string path, std::uint32_t epoch, WalkDepth depth, const Passed& passed)
      : path_(std::move(path)), epoch_(epoch), depth_(depth), passed_(passed) {}

  // is_vouched covers everything but the segment's own header.
  Result<EpochCounts> count(BackingDirectory& directory, bool is_vouched) {
    NACRE_ASSIGN(auto file, directory.open(path_, metadata::OpenMode::read));
    NACRE_ASSIGN(const std::uint64_t size, file->size());
    std::array<Byte, metadata::segment_header_size_bytes> bytes{};
    NACRE_ASSIGN(const std::size_t got, file->read(0, bytes));
    const auto header = metadata::decode_segment_header(ByteView(bytes).first(got));
    note_file(counts_, path_, epoch_, header ? std::optional(header->epoch) : std::nullopt);
    if (is_vouched || (!header && depth_ == WalkDepth::headers)) return counts_;
    if (!header) note_missing_header(bytes);
    const EpochCounts before = counts_;
    NACRE_ASSIGN(const bool whole,
                 depth_ == WalkDepth::headers ? hop(*file, size) : Result<bool>(false));
    if (!whole) {
      counts_ = before;
      NACRE_TRY(walk_segment(*file, {.file_size = size}, *this));
    }
    NACRE_TRY(passed_(std::exchange(passed_bytes_, 0)));
    return counts_;
  }

 private:
  // The header is not written yet, or is damaged. In the second case its records still tell their
  // epoch.
  void note_missing_header(ByteView bytes) {
    const bool is_written =
        std::any_of(bytes.begin(), bytes.end(), [](Byte byte) { return byte != Byte{0}; });
    if (is_written) ++counts_.damaged_place_count;
  }
  Result<> note_passed(std::uint64_t bytes) {
    passed_bytes_ += bytes;
    return passed_bytes_ < passed_step_bytes ? Result<>()
                                             : passed_(std::exchange(passed_bytes_, 0));
  }

  // Goes from header to header. Returns false at a place that is not a header.
  Result<bool> hop(metadata::BackingFile& file, std::uint64_t size) {
    std::array<Byte, engine::record_header_size_bytes> bytes{};
    for (std::uint64_t at = metadata::segment_header_size_bytes; at < size;) {
      NACRE_ASSIGN(const std::size_t got, file.read(at, bytes));
      if (got < bytes.size()) return false;
      const auto header = load_le<engine::RecordHeader>(bytes.data());
      if (header.magic != engine::record_magic || header.version != engine::record_version ||
          header.stored_size < engine::record_size_bytes_min || header.stored_size > size - at) {
        return false;
      }
      note_record(at, header);
      NACRE_TRY(note_passed(header.stored_size));
      at += header.stored_size;
    }
    return true;
  }
  void note_record(std::uint64_t offset, const engine::RecordHeader& header) {
    ++counts_.record_count;
    counts_.record_bytes += header.stored_size;
    if (header.epoch == epoch_) return;
    ++counts_.other_record_count;
    if (counts_.first_other.empty()) {
      counts_.first_other =
          fmt::format("{} offset {}: a record of epoch {}", path_, offset, header.epoch);
    }
  }

  Result<> record(std::uint64_t offset, const engine::RecordHeader& header, ByteView) override {
    note_record(offset, header);
    return note_passed(header.stored_size);
  }
  Result<> damage(std::uint64_t, std::uint64_t, const Error&) override {
    ++counts_.damaged_place_count;
    return {};
  }
  void passed(std::uint64_t) override {}

  const std::string path_;
  const std::uint32_t epoch_;
  const WalkDepth depth_;
  const Passed& passed_;
  std::uint64_t passed_bytes_ = 0;
  EpochCounts counts_;
};

Result<std::vector<std::string>> list_in_order(BackingDirectory& directory,
                                               std::string_view folder) {
  NACRE_ASSIGN(auto names, directory.list(folder));
  std::sort(names.begin(), names.end());
  for (std::string& name : names)
    name = fmt::format("{}/{}", folder, name);
  return names;
}

// Whether a file of db/ that names no epoch is damaged. A new file without a header is not.
Result<bool> is_damaged(BackingDirectory& directory, const std::string& path) {
  const auto whole = metadata::scrub_database_file(directory, path);
  if (whole) return false;
  if (whole.error().code != ErrorCode::corrupt) return tl::unexpected(whole.error());
  NACRE_ASSIGN(auto file, directory.open(path, metadata::OpenMode::read));
  NACRE_ASSIGN(const std::uint64_t size, file->size());
  return size > 0;
}

Result<EpochCounts> count_database(BackingDirectory& directory, std::uint32_t epoch,
                                   WalkDepth depth) {
  EpochCounts counts;
  NACRE_ASSIGN(const auto paths, list_in_order(directory, metadata::database_folder));
  for (const std::string& path : paths) {
    if (!metadata::is_database_file_name(path.substr(path.rfind('/') + 1))) continue;
    const auto found = metadata::database_file_epoch(directory, path);
    if (!found && found.error().code == ErrorCode::not_found) continue;
    if (!found) return tl::unexpected(found.error());
    note_file(counts, path, epoch, *found);
    if (*found || depth == WalkDepth::headers) continue;
    const auto damaged = is_damaged(directory, path);
    if (!damaged && damaged.error().code != ErrorCode::not_found)
      return tl::unexpected(damaged.error());
    if (damaged && *damaged) ++counts.damaged_place_count;
  }
  return counts;
}

}  // namespace

Result<EpochCounts> count_epochs(BackingDirectory& directory, std::uint32_t epoch, WalkDepth depth,
                                 const Passed& passed,
                                 const std::function<bool(metadata::SegmentNumber)>& vouched) {
  NACRE_ASSIGN(EpochCounts sum, count_database(directory, epoch, depth));
  NACRE_ASSIGN(auto paths, list_in_order(directory, metadata::segment_folder));
  // A file of another name is a stranger's: nothing reads it, and no mount removes it.
  std::erase_if(paths, [](const std::string& path) {
    return !segment_number_of(path.substr(path.rfind('/') + 1));
  });

  Mutex mutex;
  std::atomic<bool> failed = false;
  const Passed one_at_a_time = [&](std::uint64_t bytes) -> Result<> {
    if (failed) return fail(ErrorCode::cancelled, "another segment could not be read");
    const LockGuard lock(mutex);
    return passed(bytes);
  };
  std::vector<Result<EpochCounts>> found(paths.size(), EpochCounts{});
  std::atomic<std::size_t> next = 0;
  // The first failure in time. It makes the other threads end.
  Result<> first_failure;
  const auto walk = [&] {
    for (std::size_t i; (i = next++) < paths.size() && !failed;) {
      const auto number = segment_number_of(paths[i].substr(paths[i].rfind('/') + 1));
      auto counts = SegmentEpochs(paths[i], epoch, depth, one_at_a_time)
                        .count(directory, vouched && number && vouched(*number));
      if (counts) {
        found[i] = std::move(counts);
      } else if (counts.error().code != ErrorCode::not_found) {
        const LockGuard lock(mutex);
        if (!failed.exchange(true)) first_failure = tl::unexpected(counts.error());
      }
    }
  };
  {
    const std::size_t count = std::min<std::size_t>(
        paths.size(), std::clamp(std::thread::hardware_concurrency(), 1u, walker_count_max));
    std::vector<std::jthread> walkers;
    for (std::size_t i = 1; i < count; ++i)
      walkers.emplace_back(walk);
    walk();
  }
  NACRE_TRY(first_failure);
  for (auto& counts : found)
    add(sum, std::move(*counts));
  return sum;
}

}  // namespace nacre::fs
