// SPDX-License-Identifier: Apache-2.0
#include "fs/checkpoint/checkpoint_records.h"

#include <chrono>

#include "gpu_engine/base/check.h"
#include "metadata/format/checkpoint_stream.h"

namespace nacre::fs {

using metadata::CheckpointSection;
using metadata::Table;

namespace {

class Writing {
 public:
  Writing(SegmentStore& store, RecordVersion number, const Pace& pace)
      : store_(store), pace_(pace) {
    made_.number = {number.value};
  }

  Result<> write_rows(const metadata::CommittedView& view) {
    for (std::size_t i = 0; i < metadata::checkpoint_section_count; ++i) {
      const auto section = static_cast<CheckpointSection>(i + 1);
      stream_.begin_section(section);
      NACRE_TRY(view.scan(table_of(section), [&](std::string_view key, std::string_view value) {
        return add(i, key, value);
      }));
      stream_.end_section();
    }
    stream_.end_stream();
    return write_full_parts();
  }

  Result<> write_root(RecordVersion settled) {
    NACRE_CHECK(settled.value <= made_.number.value, "version {} is settled before checkpoint {}",
                settled.value, made_.number.value);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    made_.root.written_seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    made_.root.settled = settled;
    const std::string plain = encode(made_.root);
    NACRE_ASSIGN(made_.row.root, append(metadata::root_name(made_.number, {}), as_bytes(plain)));
    return {};
  }

  CheckpointRecords take() { return std::move(made_); }

 private:
  Result<> add(std::size_t section, std::string_view key, std::string_view value) {
    // The places of earlier checkpoints are of no use to a reader that has lost the tables.
    if (section == 0 && key.starts_with(metadata::system_key_checkpoint_prefix)) return {};
    stream_.add_row(key, value);
    ++made_.root.row_counts[section];
    return write_full_parts();
  }

  Result<> write_full_parts() {
    for (ByteView plain = stream_.next_part(); !plain.empty(); plain = stream_.next_part()) {
      const std::size_t number = made_.row.parts.size();
      if (number == metadata::checkpoint_part_count_max) {
        return fail(ErrorCode::too_big, "the tables are too large for a checkpoint");
      }
      NACRE_ASSIGN(const auto part, append(metadata::part_name(made_.number, number, {}), plain));
      made_.row.parts.push_back(part);
      made_.root.parts.push_back({.version = part.version, .plain_size = part.plain_size});
      made_.root.stream_size += part.plain_size;
      NACRE_TRY(pace_(part.location.stored_size));
    }
    return {};
  }

  Result<metadata::CheckpointPlace> append(const RecordName& name, ByteView plain) {
    const SealRequest request{name, plain};
    NACRE_ASSIGN(const SealedBatch sealed, store_.append_checkpoint(std::span(&request, 1)));
    made_.pins.push_back(sealed.pin);
    const SealedRecord& record = sealed.records.front();
    made_.stored_bytes += record.location.stored_size;
    return metadata::CheckpointPlace{.location = record.location,
                                     .version = record.version,
                                     .plain_size = static_cast<std::uint32_t>(plain.size())};
  }

  SegmentStore& store_;
  const Pace& pace_;
  metadata::CheckpointWriter stream_;
  CheckpointRecords made_;
};

}  // namespace

Table table_of(CheckpointSection section) {
  switch (section) {
    case CheckpointSection::system:
      return Table::system;
    case CheckpointSection::inodes:
      return Table::inodes;
    case CheckpointSection::dentries:
      return Table::dentries;
    case CheckpointSection::chunks:
      return Table::chunks;
    case CheckpointSection::inlined:
      return Table::inlined;
    case CheckpointSection::xattrs:
      return Table::xattrs;
    case CheckpointSection::orphans:
      return Table::orphans;
  }
  return Table::system;
}

Result<CheckpointRecords> write_checkpoint_records(SegmentStore& store,
                                                   const metadata::CommittedView& view,
                                                   metadata::RecordVersion settled,
                                                   const Pace& pace) {
  NACRE_ASSIGN(const auto number, store.next_version());
  Writing writing(store, number, pace);
  NACRE_TRY(writing.write_rows(view));
  NACRE_TRY(writing.write_root(settled));
  return writing.take();
}

}  // namespace nacre::fs
