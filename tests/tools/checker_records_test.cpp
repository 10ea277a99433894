// SPDX-License-Identifier: Apache-2.0
// The walk over segments: the damage that a scrub (without and with keys) and the deep check find.
#include <random>
#include <set>

#include "fs/store/segment_walk.h"
#include "gpu_engine/checksum/crc32.h"
#include "tests/tools/checker_fixture.h"

namespace nacre::tests {
namespace {

using fs::Verdict;

class CheckerRecords : public CheckerTest {
 protected:
  static void repair_crc(Bytes& bytes, const metadata::RecordLocation& location) {
    Byte* record = bytes.data() + location.offset;
    const std::uint32_t head =
        engine::crc32(0, ByteView(record, engine::record_aad_header_size_bytes));
    store_le(
        record + engine::record_aad_header_size_bytes,
        engine::crc32(head, ByteView(record + engine::record_header_size_bytes,
                                     location.stored_size - engine::record_header_size_bytes)));
  }
  std::set<std::string> needed_files() {
    auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
    NACRE_EXPECT_OK(database);
    auto files = (*database)->needed_files();
    NACRE_EXPECT_OK(files);
    return *files;
  }
  fs::CheckReport scrub_without_keys() {
    fs::CheckReport report;
    report.scrub.emplace();
    auto engine = engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 2});
    NACRE_EXPECT_OK(engine);
    NACRE_EXPECT_OK(fs::scrub_segments(*backing_, **engine, test_keys()->volume_id(), *report.scrub,
                                       report.findings, {}));
    NACRE_EXPECT_OK(fs::scrub_database(*backing_, {}, *report.scrub, report.findings, {}));
    return report;
  }
};

TEST_F(CheckerRecords, a_sound_volume_is_clean_in_every_way) {
  const auto named = records().size();
  const auto deep = check({.deep = true});
  EXPECT_EQ(deep.findings.error_count(), 0u) << list(deep);
  ASSERT_TRUE(deep.records && deep.scrub);
  EXPECT_EQ(deep.records->opened_count, named);
  EXPECT_GT(deep.scrub->database_file_count, 2u);

  const auto keyed = check({.scrub = true});
  EXPECT_EQ(keyed.findings.error_count(), 0u) << list(keyed);
  EXPECT_EQ(keyed.records->opened_count, 0u);
  EXPECT_GE(keyed.records->record_count, named);

  const auto keyless = scrub_without_keys();
  EXPECT_TRUE(keyless.findings.findings().empty()) << list(keyless);
  EXPECT_GE(keyless.scrub->record_count, named);
  EXPECT_EQ(keyless.scrub->unverified_bytes, 0u);
}

TEST_F(CheckerRecords, a_flipped_bit_is_rot_with_place_and_path_and_costs_one_record) {
  const auto record = record_of(large_, 2);
  const auto sound = check({.deep = true}).records->opened_count;
  // In the header, where sizes lead the walk astray, and in the body.
  for (const std::uint64_t offset :
       {0u, 5u, 9u, 11u, 20u, 37u, 45u, record.location.stored_size - 1}) {
    SCOPED_TRACE(offset);
    flip(record, offset);
    const auto report = check({.deep = true});
    EXPECT_EQ(report.findings.error_count(), 1u) << list(report);
    const auto finding =
        expect_finding(report, Verdict::rot, fmt::format("chunk 2 of inode {}", large_.value));
    EXPECT_EQ(finding.file, path_of(record.location.segment));
    EXPECT_EQ(finding.offset, record.location.offset);
    EXPECT_EQ(finding.paths, std::vector<std::string>{"/folder/inner/large"});
    EXPECT_EQ(report.records->opened_count, sound - 1);
    EXPECT_EQ(check({.scrub = true}).findings.error_count(), 1u);

    const auto keyless = scrub_without_keys();
    EXPECT_EQ(keyless.findings.findings().size(), 1u) << list(keyless);
    EXPECT_EQ(keyless.findings.findings()[0].offset, record.location.offset);
    flip(record, offset);
  }
}

TEST_F(CheckerRecords, a_changed_record_with_a_right_crc_is_tampered) {
  const auto record = record_of(large_, 2);
  flip(record, record.location.stored_size - 20);
  edit_file(path_of(record.location.segment),
            [&](Bytes& bytes) { repair_crc(bytes, record.location); });
  EXPECT_TRUE(scrub_without_keys().findings.findings().empty());
  EXPECT_EQ(check({.scrub = true}).findings.error_count(), 0u);
  const auto report = check({.deep = true});
  EXPECT_EQ(report.findings.error_count(), 1u) << list(report);
  expect_finding(report, Verdict::tampered, fmt::format("chunk 2 of inode {}", large_.value));
}

TEST_F(CheckerRecords, records_that_changed_places_are_tampered) {
  const auto a = record_of(large_, 0);
  const auto b = record_of(large_, 2);
  ASSERT_EQ(a.location.stored_size, b.location.stored_size);
  ASSERT_EQ(a.location.segment, b.location.segment);
  edit_file(path_of(a.location.segment), [&](Bytes& bytes) {
    std::swap_ranges(
        bytes.begin() + static_cast<std::ptrdiff_t>(a.location.offset),
        bytes.begin() + static_cast<std::ptrdiff_t>(a.location.offset + a.location.stored_size),
        bytes.begin() + static_cast<std::ptrdiff_t>(b.location.offset));
  });
  const auto report = check({.deep = true});
  EXPECT_EQ(report.findings.error_count(), 2u) << list(report);
  expect_finding(report, Verdict::tampered, "chunk 0 of inode");
  expect_finding(report, Verdict::tampered, "chunk 2 of inode");
}

TEST_F(CheckerRecords, a_row_with_another_size_is_found) {
  for (const int change : {-10, +10}) {
    edit_chunk(large_, 2, [&](metadata::ChunkRow& row) {
      row.base->plain_size = static_cast<std::uint32_t>(chunk_size - 100 + change);
      row.base->valid_size = row.base->plain_size;
    });
    const auto report = check({.deep = true});
    const bool found =
        std::any_of(report.findings.findings().begin(), report.findings.findings().end(),
                    [&](const auto& finding) {
                      return finding.file == path_of(record_of(large_, 2).location.segment) &&
                             finding.paths == std::vector<std::string>{"/folder/inner/large"};
                    });
    EXPECT_TRUE(found) << list(report);
  }
}

TEST_F(CheckerRecords, a_row_that_points_into_a_record_is_found) {
  edit_chunk(large_, 2, [](metadata::ChunkRow& row) {
    row.base->location.offset += 1;
    row.base->location.stored_size -= 1;
  });
  const auto report = check({.deep = true});
  expect_finding(report, Verdict::tampered, "no record begins where a row names one");
}

TEST_F(CheckerRecords, zeroed_records_are_damage_wherever_they_lie) {
  auto all = records();
  std::erase_if(all, [&](const auto& record) { return record.name.inode != large_; });
  ASSERT_GE(all.size(), 3u);
  for (const auto& record : {all[1], all.back()}) {
    edit_file(path_of(record.location.segment), [&](Bytes& bytes) {
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(record.location.offset),
                  record.location.stored_size, Byte{0});
    });
  }
  const auto report = check({.deep = true});
  EXPECT_EQ(report.findings.error_count(), 2u) << list(report);
}

TEST_F(CheckerRecords, without_keys_a_bad_end_is_an_unverified_tail) {
  auto all = records();
  const auto last = *std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.location < b.location; });
  flip(last, 50);
  const auto keyless = scrub_without_keys();
  EXPECT_EQ(keyless.findings.error_count(), 0u) << list(keyless);
  ASSERT_EQ(keyless.findings.findings().size(), 1u);
  EXPECT_NE(keyless.findings.findings()[0].what.find("unverified tail"), std::string::npos);
  EXPECT_EQ(keyless.findings.findings()[0].offset, last.location.offset);
  // With the database, the check knows that the tail was committed, so it is damage.
  EXPECT_EQ(check({.scrub = true}).findings.error_count(), 1u);
}

TEST_F(CheckerRecords, a_segment_header_that_is_damaged_hides_no_records) {
  const auto record = record_of(large_, 0);
  edit_file(path_of(record.location.segment), [](Bytes& bytes) { bytes[33] ^= 1; });
  const auto keyless = scrub_without_keys();
  EXPECT_EQ(keyless.findings.error_count(), 1u) << list(keyless);
  const auto report = check({.deep = true});
  EXPECT_EQ(report.findings.error_count(), 1u) << list(report);
  EXPECT_EQ(expect_finding(report, Verdict::rot, "").file, path_of(record.location.segment));
  EXPECT_EQ(report.records->opened_count, records().size());
}

TEST_F(CheckerRecords, a_segment_of_another_volume_or_number_is_tampered) {
  const auto record = record_of(large_, 0);
  for (const bool other_volume : {true, false}) {
    const auto path = path_of(record.location.segment);
    const auto before = backing_->load(path);
    edit_file(path, [&](Bytes& bytes) {
      auto header = metadata::decode_segment_header(bytes);
      NACRE_ASSERT_OK(header);
      if (other_volume) {
        header->volume_id[0] ^= 1;
      } else {
        ++header->segment.value;
      }
      const auto encoded = metadata::encode(*header);
      std::copy(encoded.begin(), encoded.end(), bytes.begin());
    });
    expect_finding(check(), Verdict::tampered,
                   other_volume ? "another volume" : "the file holds segment");
    expect_finding(scrub_without_keys(), Verdict::tampered,
                   other_volume ? "another volume" : "the file holds segment");
    backing_->store(path, *before);
  }
}

TEST_F(CheckerRecords, a_segment_that_cannot_be_read_is_unreadable) {
  leave_it_broken("the disk may give it back");
  backing_->inject(
      {.operations = operation_read, .path_part = path_of(record_of(large_, 0).location.segment)});
  const auto report = check({.deep = true});
  expect_finding(report, Verdict::unreadable, "");
}

TEST_F(CheckerRecords, every_damaged_file_of_the_database_is_named) {
  const auto needed = needed_files();
  for (const auto& path : backing_->files()) {
    if (!path.starts_with("db/")) continue;
    const auto before = backing_->load(path);
    if (before->size() <= 64) continue;
    SCOPED_TRACE(path);
    edit_file(path, [](Bytes& bytes) { bytes[bytes.size() / 2] ^= 0x10; });
    const auto keyless = scrub_without_keys();
    const auto report = check({.deep = true});
    if (path.ends_with(".log")) {
      // Zeros written ahead, or a tail that a crash may have torn.
      backing_->store(path, *before);
      continue;
    }
    EXPECT_EQ(keyless.findings.error_count(), 1u) << list(keyless);
    EXPECT_EQ(keyless.findings.findings().size(), 1u) << list(keyless);
    const bool is_needed = needed.contains(path.substr(3));
    EXPECT_TRUE(is_needed) << "an unmounted volume holds leftovers";
    EXPECT_EQ(report.findings.error_count() != 0, is_needed) << list(report);
    bool named = false;
    for (const auto& finding : report.findings.findings())
      named = named || finding.file == path;
    EXPECT_TRUE(named) << list(report);
    backing_->store(path, *before);
  }
}

TEST_F(CheckerRecords, damage_in_files_that_nothing_depends_on_is_a_note) {
  const auto needed = needed_files();
  for (const std::string name :
       {"999998.sst", "MANIFEST-999998", "999998.dbtmp", "OPTIONS-999998.dbtmp", "LOG"}) {
    SCOPED_TRACE(name);
    ASSERT_FALSE(needed.contains(name));
    backing_->store("db/" + name, Bytes(100, Byte{7}));
    const auto report = check({.deep = true});
    EXPECT_EQ(report.findings.error_count(), 0u) << list(report);
    ASSERT_EQ(report.findings.findings().size(), 1u) << list(report);
    EXPECT_EQ(report.findings.findings()[0].file, "db/" + name);
    EXPECT_NE(report.findings.findings()[0].what.find("nothing depends on it"), std::string::npos);

    // Without the key the check cannot know which tables and which manifest count.
    const auto keyless = scrub_without_keys();
    const bool is_certain = name.ends_with(".dbtmp") || name == "LOG";
    EXPECT_EQ(keyless.findings.error_count(), is_certain ? 0u : 1u) << list(keyless);
    ASSERT_EQ(keyless.findings.findings().size(), 1u) << list(keyless);
    EXPECT_NE(keyless.findings.findings()[0].what.find("an unclean stop"), std::string::npos);
    backing_->erase("db/" + name);
  }
}

TEST_F(CheckerRecords, a_file_that_cannot_be_read_is_an_error_even_if_nothing_depends_on_it) {
  leave_it_broken("the disk may give it back");
  backing_->store("db/LOG", Bytes(100, Byte{7}));
  backing_->inject({.operations = operation_read, .path_part = "db/LOG"});
  expect_finding(check({.deep = true}), Verdict::unreadable, "");
  expect_finding(scrub_without_keys(), Verdict::unreadable, "");
}

TEST_F(CheckerRecords, a_damaged_log_is_an_error_whatever_its_number) {
  leave_it_broken("the database cannot be opened");
  mount();
  for (const unsigned seed : {3u, 4u}) {
    write(small_, 0, noise(100, seed));
    NACRE_EXPECT_OK(volume().sync_all());
  }
  Bytes log;
  for (const auto& path : backing_->files()) {
    if (path.ends_with(".log")) log = *backing_->load(path);
  }
  unmount();
  constexpr std::size_t in_the_first_frame = 64 + 40;
  ASSERT_GT(log.size(), in_the_first_frame);
  log[in_the_first_frame] ^= 1;
  backing_->store("db/000001.log", log);  // of no use any more
  const auto report = check({.deep = true});
  EXPECT_EQ(report.findings.error_count(), 1u) << list(report);
  EXPECT_EQ(expect_finding(report, Verdict::rot, "").file, "db/000001.log");
  EXPECT_EQ(scrub_without_keys().findings.error_count(), 1u);
}

// The walk over a hostile segment: garbage, headers everywhere, sizes that lie.
class CountingVisitor final : public fs::SegmentVisitor {
 public:
  Result<> record(std::uint64_t, const engine::RecordHeader&, ByteView bytes) override {
    ++records;
    covered += bytes.size();
    return {};
  }
  Result<> damage(std::uint64_t, std::uint64_t size, const Error&) override {
    ++damages;
    covered += size;
    return {};
  }
  void passed(std::uint64_t size) override { passed_bytes += size; }
  std::uint64_t records = 0, damages = 0, covered = 0, passed_bytes = 0;
};

TEST_F(CheckerRecords, the_walk_covers_hostile_segments_without_losing_a_byte) {
  const auto segment = record_of(large_, 0).location.segment;
  const auto sound = *backing_->load(path_of(segment));
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Bytes bytes = sound;
    const auto changes = 1 + random() % 20;
    for (unsigned i = 0; i < changes; ++i) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] ^= static_cast<Byte>(1u << (random() % 8));
          break;
        case 1:
          std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                      std::min<std::size_t>(bytes.size() - at, random() % 5000), Byte{0});
          break;
        case 2:
          if (at + 12 < bytes.size()) {
            store_le(bytes.data() + at, engine::record_magic);
            bytes[at + 4] = 1;
            store_le(bytes.data() + at + 8, static_cast<std::uint32_t>(random()));
          }
          break;
        default:
          bytes.resize(std::max<std::size_t>(at, 64));
      }
    }
    backing_->store("segments/hostile", bytes);
    auto file = backing_->open("segments/hostile", metadata::OpenMode::read);
    NACRE_ASSERT_OK(file);
    CountingVisitor visitor;
    const fs::SegmentBounds bounds{
        .file_size = bytes.size(), .committed_size = bytes.size(), .anchors = {}};
    const auto end = fs::walk_segment(**file, bounds, visitor);
    NACRE_ASSERT_OK(end);
    EXPECT_EQ(*end, bytes.size());
    EXPECT_EQ(visitor.covered, bytes.size() - 64);
    EXPECT_EQ(visitor.passed_bytes, bytes.size() - 64);
  }
}

TEST_F(CheckerRecords, a_segment_full_of_headers_does_not_cost_the_square_of_its_size) {
  // Each header claims a mebibyte: checking all of them would read 500 GiB.
  Bytes bytes(16u << 20);
  for (std::size_t at = 64; at + 32 <= bytes.size(); at += 32) {
    store_le(bytes.data() + at, engine::record_magic);
    bytes[at + 4] = 1;
    store_le(bytes.data() + at + 8, std::uint32_t{1u << 20});
  }
  backing_->store("segments/hostile", bytes);
  auto file = backing_->open("segments/hostile", metadata::OpenMode::read);
  NACRE_ASSERT_OK(file);
  CountingVisitor visitor;
  const fs::SegmentBounds bounds{
      .file_size = bytes.size(), .committed_size = bytes.size(), .anchors = {}};
  NACRE_ASSERT_OK(fs::walk_segment(**file, bounds, visitor));
  EXPECT_EQ(visitor.covered, bytes.size() - 64);
  EXPECT_EQ(visitor.records, 0u);
}

TEST_F(CheckerRecords, an_index_with_little_memory_gives_the_same_records) {
  auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
  NACRE_ASSERT_OK(database);
  const auto collect = [&](std::uint64_t record_count_max) {
    std::vector<metadata::RecordLocation> locations;
    const auto index = fs::RecordIndex::build(**database, record_count_max);
    NACRE_EXPECT_OK(index);
    NACRE_EXPECT_OK(index->for_each_segment(
        [&](fs::SegmentNumber, std::span<const fs::NamedRecord> named) -> Result<> {
          for (const auto& record : named)
            locations.push_back(record.location);
          return {};
        }));
    EXPECT_TRUE(std::is_sorted(locations.begin(), locations.end()));
    return locations;
  };
  EXPECT_EQ(collect(1), collect(1u << 20));
}

}  // namespace
}  // namespace nacre::tests
