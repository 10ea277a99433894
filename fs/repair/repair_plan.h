// SPDX-License-Identifier: Apache-2.0
// What a repair changes, step by step, with what was there before: made whole before anything is
// written, kept in the volume, and able to be taken back.
//
// A plan names files and holds rows, so it lies in the volume's own directory, sealed under a
// subkey of the volume key: outside it would tell whoever finds it what the volume keeps to itself.
// docs/FORMAT.md, "repair".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fs/check/finding.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/record/record.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// A row of a table; none: there is no such row.
struct RowEdit {
  metadata::Table table = metadata::Table::system;
  std::string key;
  std::optional<std::string> before, after;
};
// Some bytes of a file that stays as long as it is.
struct BytesEdit {
  std::string path;
  std::uint64_t offset = 0;
  Bytes before, after;  // of one size
};
// A small file as a whole; none: there is no such file.
struct FileEdit {
  std::string path;
  std::optional<Bytes> before, after;
};
// db/ made anew: it changes places with a folder beside it, whose name begins as it does.
struct DatabaseEdit {
  std::string folder;  // the new one before, the damaged one after
  Bytes before;        // fingerprint of the damaged one's files (database_swap.h)
  Bytes after;         // digest of the new one's rows, before the plan's other steps
};

struct RepairStep {
  std::variant<RowEdit, BytesEdit, FileEdit, DatabaseEdit> change;
  std::string why;                             // one sentence
  std::optional<metadata::InodeNumber> inode;  // that it is about
  std::vector<std::string> paths;              // of that inode, after the repair
};

// Bytes of a file that cannot be had any more.
struct LostBytes {
  metadata::InodeNumber inode;
  std::uint64_t offset = 0;  // within the file
  std::uint64_t size = 0;
  Verdict verdict = Verdict::rot;
  std::string why;
  bool is_dropped = false;  // replaced by a hole; else reading them is an error from now on
  std::vector<std::string> paths;
};

struct RepairPlan {
  std::string name;  // that it is saved under; no part of the text
  engine::VolumeId volume_id = {};
  std::string created;  // RFC 3339
  // Write sessions before the plan was made; one more, and the plan cannot be undone.
  std::uint64_t next_session = 0;
  std::vector<RepairStep> steps;
  std::vector<LostBytes> lost;
};

inline constexpr std::string_view repair_folder = "repair";

// The plan as text: one JSON object a line. The first describes the plan, then
//   {"step":"row","table":…,"key":hex,"before":hex or null,"after":hex or null,"why":…,
//    "inode"?:…,"paths":[…]}
//   {"step":"bytes","path":…,"offset":…,"before":hex,"after":hex,"why":…}
//   {"step":"file","path":…,"before":hex or null,"after":hex or null,"why":…}
//   {"step":"database","folder":…,"before":hex,"after":hex,"why":…}
//   {"lost":{"inode":…,"offset":…,"size":…,"verdict":…,"why":…,"dropped":…,"paths":[…]}}
std::string to_text(const RepairPlan& plan);
// corrupt when it is not such a text.
Result<RepairPlan> parse_plan(std::string_view text);

// A new name for a plan: sorts by time.
std::string new_plan_name(const std::string& created);
// Durable when it returns; the name to undo it by: the plan's, or a new one where it has none.
Result<std::string> save_plan(metadata::BackingDirectory& directory, const metadata::KeyTree& keys,
                              const RepairPlan& plan);
// not_found, with the names that there are; tampered; corrupt.
Result<RepairPlan> load_plan(metadata::BackingDirectory& directory, const metadata::KeyTree& keys,
                             std::string_view name);

}  // namespace nacre::fs
