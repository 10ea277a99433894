// SPDX-License-Identifier: Apache-2.0
// See epoch_walk.h.
#include "fs/rotation/epoch_walk.h"

#include <array>

#include <fmt/format.h>

#include "fs/store/segment_walk.h"
#include "gpu_engine/base/limits.h"
#include "gpu_engine/record/record.h"
#include "metadata/tables/database.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

namespace {

using Passed = std::function<Result<>(std::uint64_t)>;

class Walk final : private SegmentVisitor {
 public:
  Walk(metadata::BackingDirectory& directory, std::uint32_t epoch, WalkDepth depth,
       const Passed& passed)
      : directory_(directory), epoch_(epoch), depth_(depth), passed_(passed) {}

  Result<EpochCounts> run() {
    NACRE_TRY(each_file(metadata::database_folder, [&](const std::string& path) -> Result<> {
      NACRE_ASSIGN(const auto found, metadata::database_file_epoch(directory_, path));
      note_file(path, found);
      return {};
    }));
    NACRE_TRY(
        each_file(metadata::segment_folder, [&](const std::string& path) { return walk(path); }));
    return counts_;
  }

 private:
  template <typename Visit>
  Result<> each_file(std::string_view folder, Visit visit) {
    NACRE_ASSIGN(const auto names, directory_.list(folder));
    for (const std::string& name : names) {
      const auto visited = visit(fmt::format("{}/{}", folder, name));
      if (!visited && visited.error().code != ErrorCode::not_found) return visited;
    }
    return {};
  }

  void note_file(const std::string& path, std::optional<std::uint32_t> found) {
    ++counts_.file_count;
    if (!found || *found == epoch_) return;
    ++counts_.other_file_count;
    if (counts_.first_other.empty()) {
      counts_.first_other = fmt::format("{} is of epoch {}", path, *found);
    }
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

  Result<> walk(const std::string& path) {
    path_ = path;
    NACRE_ASSIGN(auto file, directory_.open(path, metadata::OpenMode::read));
    NACRE_ASSIGN(const std::uint64_t size, file->size());
    std::array<Byte, metadata::segment_header_size_bytes> bytes{};
    NACRE_ASSIGN(const std::size_t got, file->read(0, bytes));
    const auto header = metadata::decode_segment_header(ByteView(bytes).first(got));
    note_file(path, header ? std::optional(header->epoch) : std::nullopt);
    if (!header) return {};
    const EpochCounts before = counts_;
    NACRE_ASSIGN(const bool whole,
                 depth_ == WalkDepth::headers ? hop(*file, size) : Result<bool>(false));
    if (whole) return {};
    counts_ = before;
    NACRE_TRY(walk_segment(*file, {.file_size = size}, *this));
    return {};
  }

  // From header to header. False when what stands there is none.
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
      NACRE_TRY(passed_(header.stored_size));
      at += header.stored_size;
    }
    return true;
  }

  Result<> record(std::uint64_t offset, const engine::RecordHeader& header, ByteView) override {
    note_record(offset, header);
    return passed_(header.stored_size);
  }
  Result<> damage(std::uint64_t, std::uint64_t, const Error&) override {
    ++counts_.damaged_place_count;
    return {};
  }
  void passed(std::uint64_t) override {}

  metadata::BackingDirectory& directory_;
  const std::uint32_t epoch_;
  const WalkDepth depth_;
  const Passed& passed_;
  std::string path_;
  EpochCounts counts_;
};

}  // namespace

Result<EpochCounts> count_epochs(metadata::BackingDirectory& directory, std::uint32_t epoch,
                                 WalkDepth depth, const Passed& passed) {
  return Walk(directory, epoch, depth, passed).run();
}

}  // namespace nacre::fs
