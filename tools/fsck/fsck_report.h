// SPDX-License-Identifier: Apache-2.0
// The report of fsck.nacre, for people and for machines.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "fs/check/checker.h"

namespace nacre::tools {

// Prints a line for each finding.
void print_findings(const fs::FindingList& findings);
// The findings as JSON.
nlohmann::json to_json(const fs::FindingList& findings);
// Prints the findings, then what was checked and how it ended.
void print_report(const std::string& volume, const fs::CheckReport& report);
// Prints what to do next, if damage was found. Without keys the check could not name files.
void print_advice(const std::string& volume, const fs::CheckReport& report, bool had_keys);
// Prints one JSON object:
//   {"volume", "version", "clean", "error_count", "dropped_finding_count",
//    "findings": [{"severity", "verdict", "what", "file", "offset"?, "inode"?, "paths"}],
//    "structure"?: {…}, "records"?: {…}, "scrub"?: {…}}
void print_report_json(const std::string& volume, const fs::CheckReport& report);

}  // namespace nacre::tools
