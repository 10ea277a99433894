// SPDX-License-Identifier: Apache-2.0
// See scrub.h.
#include "fs/maintenance/scrub.h"

#include <fmt/format.h>

#include "fs/store/segment_walk.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

namespace {

class Scrubber final : public SegmentVisitor {
 public:
  Scrubber(std::string path, ScrubCounts& counts, FindingList& findings, Progress& state,
           const ProgressFunction& progress)
      : path_(std::move(path)),
        counts_(counts),
        findings_(findings),
        state_(state),
        progress_(progress) {}

  Result<> record(std::uint64_t, const engine::RecordHeader&, ByteView bytes) override {
    ++counts_.record_count;
    counts_.segment_bytes += bytes.size();
    return {};
  }
  Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    findings_.add({.verdict = verdict_of(error.code),
                   .what = fmt::format("{} bytes are damaged: {}", size, error.message),
                   .file = path_,
                   .offset = offset});
    return {};
  }
  void passed(std::uint64_t size) override {
    state_.done += size;
    if (progress_) progress_(state_);
  }

 private:
  std::string path_;
  ScrubCounts& counts_;
  FindingList& findings_;
  Progress& state_;
  const ProgressFunction& progress_;
};

enum class Need {
  needed,    // or only damage explains what is wrong
  unknown,   // the manifest may name it or not
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
  if (verdict_of(error.code) == Verdict::unreadable) need = Need::needed;  // no stop leaves that
  switch (need) {
    case Need::needed:
      break;
    case Need::unknown:
      error.message +=
          "; an unclean stop can leave such a file: then a mount removes it, and a check with the "
          "key says that nothing depends on it";
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

}  // namespace

Result<> scrub_segments(metadata::BackingDirectory& directory,
                        const std::optional<engine::VolumeId>& volume_id, ScrubCounts& counts,
                        FindingList& findings, const ProgressFunction& progress) {
  const auto names = directory.list("segments");
  if (!names) {
    findings.add_error(names.error(), "segments");
    return {};
  }
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
    Scrubber scrubber(path, counts, findings, state, progress);
    NACRE_ASSIGN(const auto end, walk_segment(**file, {.file_size = *size}, scrubber));
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

Result<> scrub_database(metadata::BackingDirectory& directory,
                        const std::optional<std::set<std::string>>& needed, ScrubCounts& counts,
                        FindingList& findings, const ProgressFunction& progress) {
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
    const auto checked = metadata::scrub_database_file(directory, path);
    if (checked) {
      ++counts.database_file_count;
      counts.database_bytes += *checked;
    } else {
      add_damage(checked.error(), path, need_of(name, needed), findings);
    }
    if (const auto size = directory.file_size(path)) state.done += *size;
    if (progress) progress(state);
  }
  return {};
}

}  // namespace nacre::fs
