// SPDX-License-Identifier: Apache-2.0
// The files that RocksDB writes, whichever version is linked, must hold nothing that the oldest
// version (7.8) or metadata/rescue cannot read. First the options that decide it, by their names,
// so that a default that changes is found; then the files themselves.
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "metadata/rescue/log_records.h"
#include "metadata/rescue/manifest_edits.h"
#include "metadata/rescue/table_block.h"
#include "metadata/sealed_fs/file_header.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/tables/rocksdb_options.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using namespace metadata;

using OptionMap = std::unordered_map<std::string, std::string>;
struct PinnedOption {
  const char* name;
  const char* value;
  bool may_be_absent = false;  // 7.8 does not have it
};

OptionMap parse_options(const rocksdb::Status& status, const std::string& text) {
  EXPECT_TRUE(status.ok()) << status.ToString();
  OptionMap options;
  EXPECT_TRUE(rocksdb::StringToMap(text, &options).ok()) << text;
  return options;
}

void expect_pinned(const OptionMap& options, std::initializer_list<PinnedOption> pinned) {
  for (const auto& [name, value, may_be_absent] : pinned) {
    const auto found = options.find(name);
    if (found == options.end()) {
      EXPECT_TRUE(may_be_absent) << name << " has gone: what does it do now?";
    } else {
      EXPECT_EQ(found->second, value) << name;
    }
  }
}

TEST(PinnedOptions, logs_and_manifest_are_what_the_oldest_version_reads) {
  std::string text;
  const auto status = rocksdb::GetStringFromDBOptions(
      rocksdb::ConfigOptions(), database_options({}, rocksdb::Env::Default()), &text);
  expect_pinned(parse_options(status, text), {
                                                 {"wal_compression", "kNoCompression"},
                                                 {"recycle_log_file_num", "0"},
                                                 {"track_and_verify_wals_in_manifest", "false"},
                                                 {"track_and_verify_wals", "false", true},
                                                 {"manual_wal_flush", "false"},
                                                 {"two_write_queues", "false"},
                                                 {"unordered_write", "false"},
                                                 {"allow_2pc", "false"},
                                                 {"write_dbid_to_manifest", "false"},
                                                 {"write_identity_file", "true", true},
                                                 {"file_checksum_gen_factory", "nullptr"},
                                                 {"persist_stats_to_disk", "false"},
                                                 {"best_efforts_recovery", "false"},
                                                 {"fail_if_options_file_error", "false"},
                                             });
}

TEST(PinnedOptions, tables_are_what_the_oldest_version_reads) {
  const auto families = family_descriptors({});
  ASSERT_EQ(families.size(), table_count + 1);
  for (const auto& family : families) {
    SCOPED_TRACE(family.name);
    std::string text;
    auto status =
        rocksdb::GetStringFromColumnFamilyOptions(rocksdb::ConfigOptions(), family.options, &text);
    const bool is_compressed = family.name != to_string(Table::inlined);
    expect_pinned(parse_options(status, text),
                  {
                      {"comparator", "leveldb.BytewiseComparator"},
                      {"merge_operator", "nullptr"},
                      {"prefix_extractor", "nullptr"},
                      {"compression", is_compressed ? "kLZ4Compression" : "kNoCompression"},
                      {"bottommost_compression", "kDisableCompressionOption"},
                      {"enable_blob_files", "false"},
                      {"preserve_internal_time_seconds", "0"},
                      {"preclude_last_level_data_seconds", "0"},
                      {"persist_user_defined_timestamps", "true", true},
                      {"compaction_style", "kCompactionStyleLevel"},
                      {"num_levels", "7"},
                      {"level_compaction_dynamic_level_bytes", "true"},
                  });
    EXPECT_TRUE(family.options.compression_per_level.empty());
    EXPECT_EQ(family.options.compression_opts.max_dict_bytes, 0u);

    text.clear();
    status = family.options.table_factory->GetOptionString(rocksdb::ConfigOptions(), &text);
    EXPECT_STREQ(family.options.table_factory->Name(), "BlockBasedTable");
    expect_pinned(parse_options(status, text),
                  {
                      {"format_version", "5"},
                      {"checksum", "kXXH3"},
                      {"index_type", "kBinarySearch"},
                      {"index_shortening", "kShortenSeparators"},
                      {"data_block_index_type", "kDataBlockBinarySearch"},
                      {"block_restart_interval", "16"},
                      {"index_block_restart_interval", "1"},
                      {"partition_filters", "false"},
                      {"optimize_filters_for_memory", "false"},
                      {"block_align", "false"},
                  });
    const auto* table = family.options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
    ASSERT_NE(table, nullptr);
    EXPECT_TRUE(table->use_delta_encoding);
  }
}

// Takes what FORMAT.md says of a log; anything else fails the iteration.
class KnownEntries final : public rocksdb::WriteBatch::Handler {
 public:
  rocksdb::Status PutCF(std::uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override {
    count++;
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(std::uint32_t, const rocksdb::Slice&) override {
    count++;
    return rocksdb::Status::OK();
  }
  std::size_t count = 0;
};

std::vector<std::string> records_of(ByteView plain) {
  constexpr std::size_t block_size = 32u << 10;
  constexpr std::size_t header_size = 7;
  for (std::size_t at = 0; at + header_size <= plain.size();) {
    const std::size_t left = block_size - at % block_size;
    if (left < header_size) {
      at += left;
      continue;
    }
    EXPECT_GE(plain[at + 6], 1) << "a kind of fragment at " << at;
    EXPECT_LE(plain[at + 6], 4) << "a kind of fragment at " << at;
    at += header_size + load_le<std::uint16_t>(&plain[at + 4]);
  }
  LogRecords records;
  records.add(as_text(plain));
  return records.take();
}

// Files as several sessions leave them, the last one killed.
class PinnedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto live = MemoryBacking::create();
    auto database = create_database(live);
    for (int session = 0; session < 6; ++session) {
      ASSERT_NE(database, nullptr);
      for (std::size_t table = 0; table < table_count; ++table) {
        for (int i = 0; i < 300; ++i) {
          const std::string key = fmt::format("key {:05}", (i * 7 + session * 31) % 500);
          if (i % 5 == 4) {
            database->erase(static_cast<Table>(table), key);
          } else {
            std::string value = fmt::format("{}, {}: ", session, i);
            for (int word = 0; word < 10; ++word)
              value += "again and again ";
            database->put(static_cast<Table>(table), key, value);
          }
        }
      }
      ASSERT_TRUE(commit(*database));
      if (session == 5) break;
      ASSERT_TRUE(database->close());
      database = open_database(live, small_options());
    }
    backing_ = live->process_kill();
  }

  Bytes content_of(const std::string& path) {
    const auto content = read_frames(*backing_, path, *keys_);
    EXPECT_TRUE(content) << path;
    return content ? content->plain : Bytes();
  }

  const std::shared_ptr<const KeyTree> keys_ = make_keys();
  std::shared_ptr<MemoryBacking> backing_;
};

TEST_F(PinnedFiles, are_of_known_kinds) {
  for (const auto& path : files_beginning(*backing_, "")) {
    const FileName name = parse_file_name(path);
    if (name.file_class != FileClass::other) continue;
    const std::string_view rest = std::string_view(path).substr(3);
    EXPECT_TRUE(rest == "CURRENT" || rest == "IDENTITY" || rest.starts_with("LOG")) << path;
  }
}

TEST_F(PinnedFiles, logs_hold_puts_and_deletes) {
  KnownEntries entries;
  for (const auto& path : files_ending(*backing_, ".log")) {
    for (const auto& record : records_of(content_of(path))) {
      const auto status = rocksdb::WriteBatch(record).Iterate(&entries);
      EXPECT_TRUE(status.ok()) << path << ": " << status.ToString();
    }
  }
  EXPECT_GE(entries.count, table_count * 300);
}

TEST_F(PinnedFiles, the_manifest_holds_edits_that_may_be_passed_over_or_are_known) {
  const auto manifests = files_beginning(*backing_, "MANIFEST-");
  ASSERT_FALSE(manifests.empty());
  for (const auto& path : manifests) {
    const auto content = read_manifest_edits(records_of(content_of(path)));
    ASSERT_TRUE(content) << path;
    EXPECT_EQ(content->families.size(), table_count + (content->families.contains(0) ? 1u : 0u));
    EXPECT_FALSE(content->tables.empty());
  }
}

TEST_F(PinnedFiles, tables_are_as_the_format_says) {
  constexpr Byte xxh3 = 4;
  constexpr Byte lz4 = 4;
  const std::set<std::string> meta_names = {"fullfilter.rocksdb.BuiltinBloomFilter",
                                            "rocksdb.properties"};
  const auto tables = files_ending(*backing_, ".sst");
  ASSERT_FALSE(tables.empty());
  std::size_t compressed_count = 0;
  for (const auto& path : tables) {
    SCOPED_TRACE(path);
    const auto reader = PageReader::open(*backing_, path, *keys_);
    ASSERT_TRUE(reader);
    Bytes plain((*reader)->size());
    ASSERT_EQ((*reader)->read(0, plain), plain.size());
    const ByteView bytes(plain);
    const ByteView footer = bytes.last(table_footer_size_bytes);
    EXPECT_EQ(footer[0], xxh3);
    const auto places = parse_footer(footer);
    ASSERT_TRUE(places) << "the footer is of another format version";
    const auto compression_of = [&](const BlockHandle& handle) {
      return bytes[handle.offset + handle.size];
    };
    const auto block = [&](const BlockHandle& handle) {
      return expand_block(bytes.subspan(handle.offset, handle.size + block_trailer_size_bytes));
    };
    const auto meta = block(places->meta_index);
    ASSERT_TRUE(meta);
    const auto meta_blocks = parse_properties(*meta);
    ASSERT_TRUE(meta_blocks);
    std::set<std::string> names;
    for (const auto& [name, handle] : *meta_blocks)
      names.insert(name);
    EXPECT_EQ(names, meta_names);
    const auto properties = block(*parse_handle(meta_blocks->at("rocksdb.properties")));
    ASSERT_TRUE(properties);
    const auto known = parse_properties(*properties);
    ASSERT_TRUE(known);
    const bool is_inlined = known->at("rocksdb.column.family.name") == to_string(Table::inlined);

    const auto index = block(places->index);
    ASSERT_TRUE(index);
    const auto blocks = parse_index(*index);
    ASSERT_TRUE(blocks);
    for (const BlockHandle& handle : *blocks) {
      const Byte compression = compression_of(handle);
      EXPECT_TRUE(compression == 0 || (compression == lz4 && !is_inlined)) << int{compression};
      compressed_count += compression == lz4 ? 1 : 0;
      const auto content = block(handle);
      ASSERT_TRUE(content);
      EXPECT_TRUE(parse_rows(*content));
    }
  }
  EXPECT_GT(compressed_count, 0u);
}

}  // namespace
}  // namespace nacre::tests
