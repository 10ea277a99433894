// SPDX-License-Identifier: Apache-2.0
// The plan of a repair: each change with the old and the new content. It is complete before
// anything is written, it is kept in the volume, and it can be undone.
//
// A plan has names of files and rows, which the volume keeps secret. So it lies in the volume's
// folder and is sealed under a subkey of the volume key. docs/FORMAT.md, "repair".
#pragma once

#include <cstdint>
#include <functional>
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

// A change of a row of a table. An empty value means that there is no such row.
struct RowEdit {
  metadata::Table table = metadata::Table::system;
  std::string key;
  std::optional<std::string> before, after;
};
// A change of some bytes of a file. The file keeps its size.
struct BytesEdit {
  std::string path;
  std::uint64_t offset = 0;
  Bytes before, after;  // of the same size
};
// A change of a whole small file. An empty content means that there is no such file.
struct FileEdit {
  std::string path;
  std::optional<Bytes> before, after;
};
// The swap of db/ with a folder next to it, whose name begins with "db.".
struct DatabaseEdit {
  std::string folder;  // holds the new db/ before the swap, the damaged one after it
  Bytes before;        // fingerprint of the damaged one's files (database_swap.h)
  Bytes after;         // digest of the new one's rows, before the plan's other steps
  // Digest of all bytes of the damaged one's files. Empty in plans that earlier versions made.
  Bytes content = {};
};

struct RepairStep {
  std::variant<RowEdit, BytesEdit, FileEdit, DatabaseEdit> change;
  std::string why;                             // one sentence
  std::optional<metadata::InodeNumber> inode;  // the inode that the step changes
  std::vector<std::string> paths;              // of that inode, after the repair
};

// Bytes of a file that cannot be recovered.
struct LostBytes {
  metadata::InodeNumber inode;
  std::uint64_t offset = 0;  // from the file's beginning
  std::uint64_t size = 0;
  Verdict verdict = Verdict::rot;
  std::string why;
  bool is_dropped = false;  // true: replaced by a hole; false: reading them gives an error
  std::vector<std::string> paths;
};

struct RepairPlan {
  std::string name;  // the name under which it is saved; not in the text
  engine::VolumeId volume_id = {};
  std::string created;  // RFC 3339
  // The number of write sessions when the plan was made. After another session the plan cannot be
  // undone.
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
// The lines of that text without what differs each time that the plan is made: when it was made,
// and the name of the folder of a new db/.
void for_each_lasting_line(const RepairPlan& plan,
                           const std::function<void(std::string_view line)>& visit);
// Error: corrupt if it is not such a text.
Result<RepairPlan> parse_plan(std::string_view text);

// Makes a name for a plan. Names sort by time.
std::string new_plan_name(const std::string& created);
// Saves the plan, durable when it returns. Returns the name by which it can be undone: the plan's,
// or a new one if it has none.
Result<std::string> save_plan(metadata::BackingDirectory& directory, const metadata::KeyTree& keys,
                              const RepairPlan& plan);
// Errors: not_found, with the existing names; tampered; corrupt.
Result<RepairPlan> load_plan(metadata::BackingDirectory& directory, const metadata::KeyTree& keys,
                             std::string_view name);

}  // namespace nacre::fs
