// SPDX-License-Identifier: Apache-2.0
// Runs the parts of the structure check in order, and holds what they share.
#include "fs/check/structure_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fs/check/structure_parts.h"

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::Table;

namespace {

std::string hex(std::string_view bytes) {
  constexpr std::size_t shown_max = 40;
  std::string out;
  for (const char byte : bytes.substr(0, shown_max)) {
    out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return bytes.size() > shown_max ? out + "…" : out;
}

}  // namespace

Result<StructureCounts> check_structure(const StructureContext& context) {
  return StructureCheck(context).run();
}

InodeFacts* InodeFactsTable::find(InodeNumber number) {
  const auto found = std::lower_bound(
      facts_.begin(), facts_.end(), number.value,
      [](const InodeFacts& facts, std::uint64_t value) { return facts.number < value; });
  return found != facts_.end() && found->number == number.value ? &*found : nullptr;
}

Result<StructureCounts> StructureCheck::run() {
  NACRE_TRY(read_system());
  NACRE_TRY(read_inodes());
  NACRE_TRY(read_orphans());
  NACRE_TRY(read_dentries());
  NACRE_TRY(read_xattrs());
  check_names();
  check_reachability();
  NACRE_TRY(read_chunks());
  NACRE_TRY(read_inlined());
  NACRE_TRY(check_segments());
  NACRE_TRY(check_system());
  return counts_;
}

void StructureCheck::problem(Verdict verdict, std::string what, std::optional<InodeNumber> inode) {
  context_.findings.add(
      {.verdict = verdict, .what = std::move(what), .file = {}, .inode = inode, .paths = {}});
}

void StructureCheck::undecodable(Table table, std::string_view key, const Error& error) {
  wrong(fmt::format("table {}, key {}: {}", metadata::to_string(table), hex(key), error.message));
}

Result<> StructureCheck::scan(
    Table table, const std::function<void(std::string_view, std::string_view)>& visit) {
  constexpr std::uint64_t rows_per_report = 4096;
  std::uint64_t rows = 0;
  const auto scanned =
      context_.database.scan(table, "", "", [&](std::string_view key, std::string_view value) {
        ++counts_.row_count;
        visit(key, value);
        if (++rows % rows_per_report == 0 && context_.progress) {
          context_.progress(
              {.stage = metadata::to_string(table), .unit = ProgressUnit::rows, .done = rows});
        }
        return true;
      });
  if (!scanned) return add_context(scanned.error(), metadata::to_string(table));
  return {};
}

void StructureCheck::check_version(metadata::RecordVersion version, InodeNumber inode,
                                   std::string_view what) {
  const std::uint64_t ordinal = version.value >> metadata::record_version_session_shift;
  if (system_.session_by_ordinal.contains(ordinal)) return;
  problem(Verdict::rolled_back,
          fmt::format("{} has version {:#x} of write session {}, which the database does not know",
                      what, version.value, ordinal),
          inode);
}

}  // namespace nacre::fs
