// SPDX-License-Identifier: Apache-2.0
// RocksDB's options: first those that affect its files, then those that bound its memory and
// threads.
#include "metadata/tables/rocksdb_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>

namespace nacre::metadata {
namespace {

rocksdb::CompressionType compression() {
  const auto supported = rocksdb::GetSupportedCompressions();
  const bool has_lz4 =
      std::find(supported.begin(), supported.end(), rocksdb::kLZ4Compression) != supported.end();
  return has_lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
}

rocksdb::ColumnFamilyOptions family_options(const DatabaseOptions& options) {
  rocksdb::BlockBasedTableOptions table;
  // All versions from 7.8 on read format 5, and metadata/rescue reads it without RocksDB. From 9.0
  // on the default is 6, which only 8.6 and later read.
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.index_type = rocksdb::BlockBasedTableOptions::kBinarySearch;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinarySearch;
  table.block_restart_interval = 16;
  table.index_block_restart_interval = 1;
  table.use_delta_encoding = true;
  table.optimize_filters_for_memory = false;  // otherwise sizes would depend on the allocator
  table.block_size = 8u << 10;                // about a page once compressed
  // Most look-ups of dentries and inodes are for keys that do not exist, so a filter pays.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  rocksdb::LRUCacheOptions cache;
  cache.capacity = options.block_cache_bytes;
  cache.num_shard_bits = 2;  // a filter block must fit into one shard
  cache.high_pri_pool_ratio = 0.3;
  table.block_cache = rocksdb::NewLRUCache(cache);

  rocksdb::ColumnFamilyOptions family;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.compression = compression();
  // The bottom level has the compression of all others.
  family.bottommost_compression = rocksdb::kDisableCompressionOption;
  family.enable_blob_files = false;
  // RocksDB never begins a flush by itself. If it has queued one when a write meets a full disk, it
  // neither runs nor queues it again, and a thread that resumes RocksDB waits for ever (7.8.3).
  // RocksdbStore::flush_when_full() flushes between writes instead.
  family.write_buffer_size = std::size_t{1} << 40;
  family.max_write_buffer_number = 3;
  family.arena_block_size = 64u << 10;  // nine families share the budget
  family.target_file_size_base = 16u << 20;
  family.max_bytes_for_level_base = 64u << 20;
  // Compactions that do not fit onto a full disk must not hold up the commits that free space.
  family.level0_slowdown_writes_trigger = family.level0_stop_writes_trigger = 1 << 30;
  family.soft_pending_compaction_bytes_limit = family.hard_pending_compaction_bytes_limit = 0;
  family.level_compaction_dynamic_level_bytes = true;
  return family;
}

}  // namespace

rocksdb::DBOptions database_options(const DatabaseOptions& options, rocksdb::Env* env) {
  rocksdb::DBOptions db;
  db.env = env;
  db.create_if_missing = options.create;
  db.create_missing_column_families = options.create;
  db.error_if_exists = options.create;
  db.paranoid_checks = true;
  db.verify_sst_unique_id_in_manifest = true;
  // Nacre's witnesses track logs more precisely (recovery_check.h). RocksDB's own tracking can fail
  // a write after its rows took sequence numbers, which the next write then takes again.
  db.track_and_verify_wals_in_manifest = false;
  // The frames of the sealed file system tell damage from a torn tail. A read of damage fails, and
  // in this mode that fails the opening; in kPointInTimeRecovery it would end the recovery
  // silently. A record that is cut off by the file's end was never confirmed and is dropped.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  db.recycle_log_file_num = 0;
  db.wal_compression = rocksdb::kNoCompression;
  // IDENTITY has it in every version.
  db.write_dbid_to_manifest = false;
  // The sealed file system accepts no OPTIONS file (sealed_file_system.cpp).
  db.fail_if_options_file_error = false;
  db.db_write_buffer_size = 0;
  db.max_total_wal_size = std::uint64_t{1} << 40;
  db.max_open_files = 256;
  db.max_file_opening_threads = 2;
  db.max_background_jobs = 2;
  db.bytes_per_sync = 1u << 20;
  db.compaction_readahead_size = 512u << 10;
  db.writable_file_max_buffer_size = 256u << 10;
  db.allow_mmap_reads = false;
  db.allow_mmap_writes = false;
  db.use_direct_reads = false;
  db.max_manifest_file_size = options.manifest_bytes_max;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.skip_stats_update_on_db_open = true;
  return db;
}

std::vector<rocksdb::ColumnFamilyDescriptor> family_descriptors(const DatabaseOptions& options) {
  const rocksdb::ColumnFamilyOptions family = family_options(options);
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.emplace_back(rocksdb::kDefaultColumnFamilyName, family);
  for (std::size_t table = 0; table < table_count; table++) {
    rocksdb::ColumnFamilyOptions its_family = family;
    // Inlined bytes are file data, and the volume and the files decide whether these are
    // compressed.
    if (static_cast<Table>(table) == Table::inlined)
      its_family.compression = rocksdb::kNoCompression;
    descriptors.emplace_back(std::string(to_string(static_cast<Table>(table))), its_family);
  }
  return descriptors;
}

}  // namespace nacre::metadata
