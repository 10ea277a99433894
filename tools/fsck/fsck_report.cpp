// SPDX-License-Identifier: Apache-2.0
#include "tools/fsck/fsck_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "metadata/text/exact_bytes.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

// A record is never empty, so size 0 means that there is no size.
double ratio_of(const fs::CodecStats& codec) {
  return static_cast<double>(codec.plain_bytes) / static_cast<double>(codec.stored_bytes);
}

std::string place_of(const fs::Finding& finding) {
  if (finding.file.empty()) return {};
  if (!finding.offset) return finding.file + ": ";
  return fmt::format("{} offset {}: ", finding.file, *finding.offset);
}

void print_finding(const fs::Finding& finding) {
  const std::string kind = finding.severity == fs::Severity::note
                               ? "note"
                               : fmt::format("{}", to_string(finding.verdict));
  print_safely("{}: {}{}\n", kind, printable(place_of(finding)), printable(finding.what));
  for (const auto& path : finding.paths)
    print_safely("    {}\n", printable(path));
  if (finding.inode && finding.paths.empty()) {
    print_safely("    inode {}, which no name leads to\n", finding.inode->value);
  }
}

nlohmann::json finding_json(const fs::Finding& finding) {
  nlohmann::json json = {{"severity", to_string(finding.severity)},
                         {"verdict", to_string(finding.verdict)},
                         {"what", finding.what},
                         {"file", finding.file}};
  metadata::put_bytes(json, "paths", finding.paths);
  if (finding.offset) json["offset"] = *finding.offset;
  if (finding.inode) json["inode"] = finding.inode->value;
  return json;
}

// Prints how well each codec packed the records that were opened.
void print_codecs(const fs::DeepCheckCounts& records) {
  for (std::size_t i = 0; i < records.codecs.size(); ++i) {
    const fs::CodecStats& codec = records.codecs[i];
    if (codec.record_count == 0) continue;
    print_safely("  {}: {} records, {} in {}, ratio {:.2f}\n",
                 engine::to_string(static_cast<engine::Codec>(i)), codec.record_count,
                 format_bytes(codec.plain_bytes), format_bytes(codec.stored_bytes),
                 ratio_of(codec));
  }
}

nlohmann::json codecs_json(const fs::DeepCheckCounts& records) {
  auto json = nlohmann::json::object();
  for (std::size_t i = 0; i < records.codecs.size(); ++i) {
    const fs::CodecStats& codec = records.codecs[i];
    if (codec.record_count == 0) continue;
    json[std::string(engine::to_string(static_cast<engine::Codec>(i)))] = {
        {"record_count", codec.record_count},
        {"plain_bytes", codec.plain_bytes},
        {"stored_bytes", codec.stored_bytes},
        {"ratio", ratio_of(codec)}};
  }
  return json;
}

}  // namespace

void print_findings(const fs::FindingList& findings) {
  for (const auto& finding : findings.findings())
    print_finding(finding);
  if (const auto dropped = findings.dropped_count(); dropped != 0) {
    print_safely("… and {} more\n", dropped);
  }
}

nlohmann::json to_json(const fs::FindingList& findings) {
  auto json = nlohmann::json::array();
  for (const auto& finding : findings.findings())
    json.push_back(finding_json(finding));
  return json;
}

void print_report(const std::string& volume, const fs::CheckReport& report) {
  print_findings(report.findings);
  if (const auto& structure = report.structure) {
    print_safely("structure: {} files and directories, {} names, {} rows, {} of data\n",
                 structure->inode_count, structure->name_count, structure->row_count,
                 format_bytes(structure->data_bytes));
  }
  if (const auto& records = report.records) {
    print_safely("records: {} in {} segments, {}", records->record_count, records->segment_count,
                 format_bytes(records->stored_bytes));
    if (records->opened_count != 0) {
      print_safely("; {} of them opened, {}", records->opened_count,
                   format_bytes(records->plain_bytes));
    }
    print_safely("\n");
    print_codecs(*records);
  }
  if (const auto& scrub = report.scrub) {
    if (scrub->segment_count != 0) {
      print_safely("records: {} in {} segments, {}\n", scrub->record_count, scrub->segment_count,
                   format_bytes(scrub->segment_bytes));
    }
    print_safely("database: {} files, {}\n", scrub->database_file_count,
                 format_bytes(scrub->database_bytes));
  }
  const auto errors = report.findings.error_count();
  if (errors == 0) {
    print_safely("{}: clean\n", printable(volume));
  } else {
    print_safely("{}: {} {} found, nothing was changed\n", printable(volume), errors,
                 errors == 1 ? "error" : "errors");
  }
}

void print_advice(const std::string& volume, const fs::CheckReport& report, bool had_keys) {
  if (report.findings.error_count() == 0) return;
  print_safely("{}: fsck.nacre {} {}\n",
               had_keys ? "To see what a repair would do"
                        : "To see which files are hit, with "
                          "the key",
               had_keys ? "--repair --dry-run" : "--deep", printable(volume));
}

void print_report_json(const std::string& volume, const fs::CheckReport& report) {
  nlohmann::json json = {{"version", NACRE_VERSION},
                         {"clean", report.findings.error_count() == 0},
                         {"error_count", report.findings.error_count()},
                         {"dropped_finding_count", report.findings.dropped_count()},
                         {"findings", to_json(report.findings)}};
  metadata::put_bytes(json, "volume", volume);
  if (const auto& structure = report.structure) {
    json["structure"] = {{"row_count", structure->row_count},
                         {"inode_count", structure->inode_count},
                         {"directory_count", structure->directory_count},
                         {"name_count", structure->name_count},
                         {"orphan_count", structure->orphan_count},
                         {"chunk_row_count", structure->chunk_row_count},
                         {"record_count", structure->record_count},
                         {"segment_count", structure->segment_count},
                         {"data_bytes", structure->data_bytes},
                         {"lost_bytes", structure->lost_bytes},
                         {"live_bytes", structure->live_bytes}};
  }
  if (const auto& records = report.records) {
    json["records"] = {{"segment_count", records->segment_count},
                       {"record_count", records->record_count},
                       {"opened_count", records->opened_count},
                       {"stored_bytes", records->stored_bytes},
                       {"plain_bytes", records->plain_bytes}};
    if (records->opened_count != 0) json["records"]["codecs"] = codecs_json(*records);
  }
  if (const auto& scrub = report.scrub) {
    json["scrub"] = {{"segment_count", scrub->segment_count},
                     {"record_count", scrub->record_count},
                     {"segment_bytes", scrub->segment_bytes},
                     {"database_file_count", scrub->database_file_count},
                     {"database_bytes", scrub->database_bytes},
                     {"unverified_bytes", scrub->unverified_bytes}};
  }
  // Names may be any bytes, but JSON is UTF-8.
  print_as_json(json);
}

}  // namespace nacre::tools
