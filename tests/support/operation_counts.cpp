// SPDX-License-Identifier: Apache-2.0
// Differences and words of counts.
#include "tests/support/operation_counts.h"

#include <array>
#include <ostream>
#include <string_view>
#include <utility>

namespace nacre::tests {

namespace {

using Field = std::pair<std::string_view, std::uint64_t OperationCounts::*>;
constexpr std::array<Field, 13> fields = {{
    {"gets", &OperationCounts::gets},
    {"many_gets", &OperationCounts::many_gets},
    {"iterators", &OperationCounts::iterators},
    {"rows_read", &OperationCounts::rows_read},
    {"puts", &OperationCounts::puts},
    {"erases", &OperationCounts::erases},
    {"batches", &OperationCounts::batches},
    {"batch_rows", &OperationCounts::batch_rows},
    {"segment_reads", &OperationCounts::segment_reads},
    {"segment_writes", &OperationCounts::segment_writes},
    {"database_writes", &OperationCounts::database_writes},
    {"syncs", &OperationCounts::syncs},
    {"folder_syncs", &OperationCounts::folder_syncs},
}};
static_assert(sizeof(OperationCounts) == fields.size() * sizeof(std::uint64_t));

}  // namespace

std::ostream& operator<<(std::ostream& out, const OperationCounts& counts) {
  const char* separator = "{";
  for (const auto& [name, field] : fields) {
    if (counts.*field == 0) continue;
    out << separator << "." << name << " = " << counts.*field;
    separator = ", ";
  }
  return out << (*separator == '{' ? "{}" : "}");
}

OperationCounts operator-(const OperationCounts& after, const OperationCounts& before) {
  OperationCounts difference;
  for (const auto& [name, field] : fields)
    difference.*field = after.*field - before.*field;
  return difference;
}

ByteCounts operator-(const ByteCounts& after, const ByteCounts& before) {
  return {.segment_read = after.segment_read - before.segment_read,
          .segment_written = after.segment_written - before.segment_written,
          .database_written = after.database_written - before.database_written};
}

}  // namespace nacre::tests
