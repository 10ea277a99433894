// SPDX-License-Identifier: Apache-2.0
// What must hold among all rows of a volume.
#include "tests/fs/table_checker.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fs/store/chunk_map.h"
#include "metadata/format/checkpoint.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"
#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

using metadata::InodeNumber;
using metadata::Table;

class Checker {
 public:
  Checker(metadata::Database& database, std::uint32_t chunk_size_bytes)
      : database_(database), chunk_size_bytes_(chunk_size_bytes) {}

  void run(bool clean) {
    each(Table::inodes, [&](std::string_view key, std::string_view value) {
      inodes_[metadata::decode_inode_key(key).value()] = metadata::decode_inode_row(value).value();
    });
    check_names();
    check_chunks();
    check_counters();
    each(Table::orphans, [&](std::string_view key, std::string_view) {
      const InodeNumber inode = metadata::decode_inode_key(key).value();
      EXPECT_FALSE(clean) << "inode " << inode.value << " is an orphan after a clean unmount";
      ASSERT_TRUE(inodes_.contains(inode)) << "an orphan row of no inode " << inode.value;
      EXPECT_EQ(inodes_[inode].link_count, 0u);
      orphans_.insert(inode);
    });
    for (const auto& [inode, row] : inodes_) {
      EXPECT_EQ(row.link_count == 0, orphans_.contains(inode)) << "inode " << inode.value;
    }
    each(Table::xattrs, [&](std::string_view key, std::string_view) {
      const auto belongs = std::any_of(inodes_.begin(), inodes_.end(), [&](const auto& entry) {
        return key.starts_with(metadata::xattr_prefix(entry.first));
      });
      EXPECT_TRUE(belongs) << "an extended attribute of no inode";
    });
  }

 private:
  void each(Table table, const std::function<void(std::string_view, std::string_view)>& visit) {
    NACRE_EXPECT_OK(
        database_.scan(table, "", "", [&](std::string_view key, std::string_view value) {
          visit(key, value);
          return true;
        }));
  }
  std::uint64_t number(std::string_view key) {
    return metadata::decode_u64(database_.get(Table::system, key).value().value()).value();
  }

  void check_names() {
    std::array<Byte, 16> hash_key{};
    const std::string stored =
        database_.get(Table::system, metadata::system_key_name_hash).value().value();
    ASSERT_EQ(stored.size(), hash_key.size());
    std::copy(stored.begin(), stored.end(), hash_key.begin());
    std::map<InodeNumber, std::uint32_t> links, subdirectories;
    std::map<InodeNumber, std::uint64_t> entries;
    each(Table::dentries, [&](std::string_view key, std::string_view value) {
      const auto parts = metadata::decode_dentry_key(key).value();
      const auto row = metadata::decode_dentry_row(value).value();
      const std::string what = fmt::format("'{}' in directory {}, inode {}", parts.name,
                                           parts.parent.value, row.inode.value);
      EXPECT_EQ(parts.name_hash, metadata::name_hash(hash_key, parts.name)) << what;
      ASSERT_TRUE(inodes_.contains(parts.parent)) << what;
      ASSERT_TRUE(inodes_.contains(row.inode)) << what;
      EXPECT_TRUE(S_ISDIR(inodes_[parts.parent].mode)) << what;
      const auto& inode = inodes_[row.inode];
      EXPECT_EQ(row.type, (inode.mode & S_IFMT) >> 12) << what;
      ++links[row.inode];
      ++entries[parts.parent];
      if (S_ISDIR(inode.mode)) {
        ++subdirectories[parts.parent];
        EXPECT_EQ(inode.parent, parts.parent) << what;
      }
    });
    for (const auto& [inode, row] : inodes_) {
      const std::string what = fmt::format("inode {}", inode.value);
      if (!S_ISDIR(row.mode)) {
        EXPECT_EQ(row.link_count, links[inode]) << what;
        continue;
      }
      EXPECT_EQ(row.size, entries[inode]) << what;
      if (row.link_count == 0) {
        EXPECT_EQ(links[inode], 0u) << what;
        continue;
      }
      EXPECT_EQ(row.link_count, 2 + subdirectories[inode]) << what;
      EXPECT_EQ(links[inode], inode == metadata::root_inode ? 0u : 1u) << what;
    }
  }

  void check_chunks() {
    std::map<InodeNumber, std::uint64_t> covered, data_bytes;
    std::map<metadata::SegmentNumber, std::uint64_t> live;
    std::set<std::string> inlined;
    each(Table::chunks, [&](std::string_view key, std::string_view value) {
      const auto parts = metadata::decode_chunk_key(key).value();
      const auto row = metadata::decode_chunk_map_row(value).value();
      ASSERT_TRUE(inodes_.contains(parts.inode)) << "chunks of no inode " << parts.inode.value;
      std::uint64_t& end = covered[parts.inode];
      EXPECT_EQ(parts.index.value, end) << "a gap or overlap in inode " << parts.inode.value;
      end = parts.index.value + (row.hole   ? row.hole->chunk_count
                                 : row.lost ? row.lost->chunk_count
                                            : 1);
      if (row.lost) data_bytes[parts.inode] += row.lost->chunk_count * chunk_size_bytes_;
      if (!row.chunk) return;
      data_bytes[parts.inode] += fs::content_end(*row.chunk);
      const auto& base = row.chunk->base;
      if (base) live[base->location.segment] += base->location.stored_size;
      for (const auto& patch : row.chunk->patches) {
        if (patch.location) {
          live[patch.location->segment] += patch.location->stored_size;
        } else {
          inlined.insert(
              metadata::inlined_key(parts.inode, parts.index, patch.version, patch.offset));
        }
      }
    });
    each(Table::inlined, [&](std::string_view key, std::string_view) {
      EXPECT_EQ(inlined.erase(std::string(key)), 1u) << "an inlined row that nothing names";
    });
    EXPECT_TRUE(inlined.empty()) << "patches without their inlined rows";
    each(Table::system, [&](std::string_view key, std::string_view value) {
      if (!key.starts_with(metadata::system_key_checkpoint_prefix)) return;
      const auto row = metadata::decode_checkpoint_row(value).value();
      live[row.root.location.segment] += row.root.location.stored_size;
      for (const auto& part : row.parts)
        live[part.location.segment] += part.location.stored_size;
    });
    each(Table::segments, [&](std::string_view key, std::string_view value) {
      const auto segment = metadata::decode_segment_key(key).value();
      EXPECT_EQ(metadata::decode_segment_row(value).value().live_bytes, live[segment])
          << "segment " << segment.value;
      live.erase(segment);
    });
    for (const auto& [segment, bytes] : live) {
      EXPECT_EQ(bytes, 0u) << "records in an unknown segment " << segment.value;
    }
    for (const auto& [inode, row] : inodes_) {
      if (row.link_count == 0) continue;  // may be erased in part
      const std::uint64_t count =
          S_ISREG(row.mode) ? (row.size + chunk_size_bytes_ - 1) / chunk_size_bytes_ : 0;
      EXPECT_EQ(covered[inode], count) << "inode " << inode.value << " of size " << row.size;
      EXPECT_EQ(row.data_bytes, data_bytes[inode]) << "inode " << inode.value;
    }
  }

  void check_counters() {
    std::uint64_t data_bytes = 0;
    for (const auto& [inode, row] : inodes_)
      data_bytes += row.data_bytes;
    EXPECT_EQ(number(metadata::system_key_inode_count), inodes_.size());
    EXPECT_EQ(number(metadata::system_key_data_bytes), data_bytes);
    ASSERT_FALSE(inodes_.empty());
    EXPECT_GT(number(metadata::system_key_next_inode), inodes_.rbegin()->first.value);
  }

  metadata::Database& database_;
  const std::uint32_t chunk_size_bytes_;
  std::map<InodeNumber, metadata::InodeRow> inodes_;
  std::set<InodeNumber> orphans_;
};

}  // namespace

void check_tables(const std::shared_ptr<metadata::BackingDirectory>& directory,
                  std::uint32_t chunk_size_bytes, bool clean) {
  auto database = metadata::Database::open(directory, test_keys(), {.read_only = true});
  NACRE_ASSERT_OK(database);
  Checker(**database, chunk_size_bytes).run(clean);
}

}  // namespace nacre::tests
