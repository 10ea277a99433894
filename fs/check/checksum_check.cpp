// SPDX-License-Identifier: Apache-2.0
#include "fs/check/checksum_check.h"

#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "fs/check/damage_owners.h"
#include "fs/check/segment_scrub.h"
#include "fs/store/segment_table.h"
#include "metadata/sealed_fs/database_scrub.h"

namespace nacre::fs {

using metadata::SegmentNumber;
using metadata::SegmentRow;
using metadata::Table;

namespace {

// Turns the results of one segment's scrub into counts, findings and progress.
class Counting final : public SegmentScrubVisitor {
 public:
  Counting(std::string path, ScrubCounts& counts, FindingList& findings, Progress& state,
           const ScrubOptions& options)
      : path_(std::move(path)),
        counts_(counts),
        findings_(findings),
        state_(state),
        options_(options) {}

  Result<> verified(std::uint64_t, std::uint64_t size, std::uint64_t record_count) override {
    counts_.record_count += record_count;
    counts_.segment_bytes += size;
    state_.done += size;
    if (options_.progress) options_.progress(state_);
    return options_.passed ? options_.passed(size) : Result<>();
  }
  void damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    counts_.segment_bytes -= size;  // only good bytes are counted
    damaged_.push_back({offset, size});
    findings_.add({.verdict = verdict_of(error.code),
                   .what = fmt::format("{} bytes are damaged: {}", size, error.message),
                   .file = path_,
                   .offset = offset});
  }
  struct Damaged {
    std::uint64_t offset, size;
  };
  const std::vector<Damaged>& damaged() const { return damaged_; }

 private:
  std::string path_;
  ScrubCounts& counts_;
  FindingList& findings_;
  Progress& state_;
  const ScrubOptions& options_;
  std::vector<Damaged> damaged_;
};

enum class Need {
  needed,    // the database depends on the file, or only damage explains its state
  unknown,   // it is not known whether the manifest names the file
  unneeded,  // nothing depends on it
};

Need need_of(std::string_view name, const std::optional<std::set<std::string>>& needed) {
  if (needed) return needed->contains(std::string(name)) ? Need::needed : Need::unneeded;
  if (name.ends_with(".dbtmp") || name.starts_with("LOG") || name.starts_with("OPTIONS-") ||
      name.find(".log.new") != std::string_view::npos) {
    return Need::unneeded;
  }
  const bool is_named = name.ends_with(".sst") || name.starts_with("MANIFEST-");
  return is_named ? Need::unknown : Need::needed;
}

void add_damage(Error error, const std::string& path, Need need, FindingList& findings) {
  auto severity = Severity::error;
  if (verdict_of(error.code) == Verdict::unreadable)
    need = Need::needed;  // no unclean stop leaves an unreadable file
  switch (need) {
    case Need::needed:
      break;
    case Need::unknown:
      error.message +=
          "; an unclean stop can leave such a file: then a mount removes it, and a check with the "
          "key that can open the database says that nothing depends on it";
      break;
    case Need::unneeded:
      severity = Severity::note;
      error.message +=
          "; nothing depends on it: an unclean stop may have left it, and a mount removes or "
          "replaces it";
      break;
  }
  findings.add_error(error, path, {}, severity);
}

// The segments that have rows in the database, and the files whose data is damaged.
class KnownSegments {
 public:
  KnownSegments(metadata::BackingDirectory& directory, engine::Engine& engine,
                const metadata::Database& database, const engine::VolumeId& volume_id,
                ScrubCounts& counts, FindingList& findings, const ScrubOptions& options)
      : directory_(directory),
        engine_(engine),
        database_(database),
        volume_id_(volume_id),
        counts_(counts),
        findings_(findings),
        options_(options) {}

  Result<> run() {
    NACRE_ASSIGN(scrub_, SegmentScrub::create(engine_));
    std::map<SegmentNumber, SegmentRow> rows;
    NACRE_TRY(
        database_.scan(Table::segments, "", "", [&](std::string_view key, std::string_view value) {
          const auto number = metadata::decode_segment_key(key);
          const auto row = metadata::decode_segment_row(value);
          if (number && row) {
            rows.emplace(*number, *row);
            state_.total += row->committed_size;
          } else {
            findings_.add_error(number ? row.error() : number.error());
          }
          return true;
        }));
    for (const auto& [number, row] : rows)
      NACRE_TRY(scrub(number, row));
    return name_owners();
  }

 private:
  Result<> scrub(SegmentNumber number, const SegmentRow& row) {
    std::string path = segment_path(number);
    if (const auto found = find_segment(directory_, number, row)) path = *found;
    const auto file = directory_.open(path, metadata::OpenMode::read);
    const auto size = file ? (*file)->size() : tl::unexpected(file.error());
    if (!size) {
      hit(number, path, 0, UINT64_MAX, size.error());
      return {};
    }
    ++counts_.segment_count;
    const auto header = read_segment_header(**file, volume_id_, number);
    if (!header) {
      findings_.add_error(header.error(), path, 0);
    } else if (header->salt != row.salt || header->epoch != row.epoch) {
      findings_.add_error(
          {ErrorCode::rolled_back, "the file was made in another write session than its row says"},
          path, 0);
    }
    Counting counting(path, counts_, findings_, state_, options_);
    const SegmentBounds bounds{.file_size = *size, .committed_size = row.committed_size};
    const std::size_t before = findings_.findings().size();
    NACRE_TRY(scrub_->run(**file, bounds, counting));
    for (std::size_t i = 0; i < counting.damaged().size(); ++i) {
      const auto& damaged = counting.damaged()[i];
      // A finding that a full list did not take was only counted.
      if (before + i >= findings_.findings().size()) break;
      stretches_.push_back(
          {.segment = number, .offset = damaged.offset, .size = damaged.size, .paths = {}});
      finding_of_.push_back(before + i);
    }
    if (*size < row.committed_size) {
      hit(number, path, *size, row.committed_size - *size,
          {ErrorCode::missing,
           fmt::format("the file has {} of {} committed bytes", *size, row.committed_size)});
    }
    return {};
  }

  void hit(SegmentNumber number, const std::string& path, std::uint64_t offset, std::uint64_t size,
           const Error& error) {
    const std::size_t index = findings_.findings().size();
    findings_.add_error(error, path, offset);
    if (index == findings_.findings().size()) return;  // as above
    stretches_.push_back({.segment = number, .offset = offset, .size = size, .paths = {}});
    finding_of_.push_back(index);
  }

  Result<> name_owners() {
    NACRE_TRY(find_owners(database_, stretches_));
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      Finding& finding = findings_.findings()[finding_of_[i]];
      finding.paths = std::move(stretches_[i].paths);
      if (const auto more = stretches_[i].more_path_count; more != 0) {
        finding.paths.push_back(words_for_more_paths(more));
      }
      if (finding.paths.empty()) finding.what += "; no file uses it";
    }
    return {};
  }

  metadata::BackingDirectory& directory_;
  engine::Engine& engine_;
  const metadata::Database& database_;
  const engine::VolumeId& volume_id_;
  ScrubCounts& counts_;
  FindingList& findings_;
  const ScrubOptions& options_;
  std::unique_ptr<SegmentScrub> scrub_;
  Progress state_{.stage = "segments"};
  std::vector<DamagedStretch> stretches_;
  std::vector<std::size_t> finding_of_;  // for each stretch, the index of its finding
};

}  // namespace

Result<> scrub_segments(metadata::BackingDirectory& directory, engine::Engine& engine,
                        const std::optional<engine::VolumeId>& volume_id, ScrubCounts& counts,
                        FindingList& findings, const ScrubOptions& options) {
  const auto names = directory.list("segments");
  if (!names) {
    findings.add_error(names.error(), "segments");
    return {};
  }
  NACRE_ASSIGN(const auto scrub, SegmentScrub::create(engine));
  Progress state{.stage = "segments"};
  for (const auto& name : *names) {
    const auto size = directory.file_size("segments/" + name);
    if (size) state.total += *size;
  }
  for (const auto& name : *names) {
    const std::string path = "segments/" + name;
    const auto number = segment_number_of(name);
    if (!number) {
      findings.add(
          {.severity = Severity::note, .what = "this file is no part of the volume", .file = path});
      continue;
    }
    const auto file = directory.open(path, metadata::OpenMode::read);
    const auto size = file ? (*file)->size() : tl::unexpected(file.error());
    if (!size) {
      findings.add_error(size.error(), path);
      continue;
    }
    ++counts.segment_count;
    if (const auto header = read_segment_header(**file, volume_id, *number); !header) {
      findings.add_error(header.error(), path, 0);
    }
    Counting counting(path, counts, findings, state, options);
    NACRE_ASSIGN(const auto end, scrub->run(**file, {.file_size = *size}, counting));
    if (end < *size) {
      counts.unverified_bytes += *size - end;
      findings.add({.severity = Severity::note,
                    .verdict = Verdict::rot,
                    .what = fmt::format("unverified tail of {} bytes: what an unclean stop leaves, "
                                        "or damage; only a check with the key can tell",
                                        *size - end),
                    .file = path,
                    .offset = end});
    }
  }
  return {};
}

Result<> scrub_known_segments(metadata::BackingDirectory& directory, engine::Engine& engine,
                              const metadata::Database& database, const engine::VolumeId& volume_id,
                              ScrubCounts& counts, FindingList& findings,
                              const ScrubOptions& options) {
  return KnownSegments(directory, engine, database, volume_id, counts, findings, options).run();
}

Result<> scrub_database(metadata::BackingDirectory& directory,
                        const std::optional<std::set<std::string>>& needed, ScrubCounts& counts,
                        FindingList& findings, const ScrubOptions& options) {
  const auto names = directory.list("db");
  if (!names) {
    findings.add_error(names.error(), "db");
    return {};
  }
  Progress state{.stage = "database"};
  for (const auto& name : *names) {
    if (const auto size = directory.file_size("db/" + name)) state.total += *size;
  }
  for (const auto& name : *names) {
    const std::string path = "db/" + name;
    Result<> passed;
    const auto checked = metadata::scrub_database_file(directory, path, [&](std::uint64_t bytes) {
      if (options.passed) passed = options.passed(bytes);
      return passed;
    });
    NACRE_TRY(passed);
    if (checked) {
      ++counts.database_file_count;
      counts.database_bytes += *checked;
    } else {
      add_damage(checked.error(), path, need_of(name, needed), findings);
    }
    if (const auto size = directory.file_size(path)) state.done += *size;
    if (options.progress) options.progress(state);
  }
  return {};
}

}  // namespace nacre::fs
