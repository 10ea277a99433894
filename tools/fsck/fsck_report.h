// SPDX-License-Identifier: Apache-2.0
// What fsck.nacre says in the end, for people and for machines.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "fs/check/checker.h"

namespace nacre::tools {

// On stdout: a line for each finding.
void print_findings(const fs::FindingList& findings);
// The same in JSON.
nlohmann::json to_json(const fs::FindingList& findings);
// On stdout: the findings, then what was checked and how it ended.
void print_report(const std::string& volume, const fs::CheckReport& report);
// On stdout, where damage was found: what to do next. Without the keys nobody knew of files.
void print_advice(const std::string& volume, const fs::CheckReport& report, bool had_keys);
// On stdout: one JSON object.
//   {"volume", "version", "clean", "error_count", "dropped_finding_count",
//    "findings": [{"severity", "verdict", "what", "file", "offset"?, "inode"?, "paths"}],
//    "structure"?: {…}, "records"?: {…}, "scrub"?: {…}}
void print_report_json(const std::string& volume, const fs::CheckReport& report);

}  // namespace nacre::tools
