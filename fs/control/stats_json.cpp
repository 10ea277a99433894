// SPDX-License-Identifier: Apache-2.0
// See stats_json.h.
#include "fs/control/stats_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace nacre::fs {

nlohmann::json to_json(const VolumeStats& stats) {
  return {{"health", stats.health},
          {"inode_count", stats.inode_count},
          {"data_bytes", stats.data_bytes},
          {"dirty_bytes", stats.dirty_bytes},
          {"cached_bytes", stats.cached_bytes},
          {"cache_hit_count", stats.cache_hits},
          {"cache_miss_count", stats.cache_misses},
          {"known_inode_count", stats.known_inodes},
          {"loaded_inode_count", stats.loaded_inodes},
          {"segments",
           {{"segment_count", stats.segments.segment_count},
            {"stored_bytes", stats.segments.stored_bytes},
            {"live_bytes", stats.segments.live_bytes},
            {"dead_bytes", stats.segments.stored_bytes -
                               std::min(stats.segments.stored_bytes, stats.segments.live_bytes)},
            {"reclaimable_bytes", stats.segments.reclaimable_bytes},
            {"immovable_segment_count", stats.segments.immovable_count},
            {"appended_record_count", stats.segments.appended_records},
            {"appended_bytes", stats.segments.appended_bytes},
            {"appended_plain_bytes", stats.segments.plain_bytes},
            {"moved_record_count", stats.segments.moved_records},
            {"moved_bytes", stats.segments.moved_bytes}}},
          {"compaction",
           {{"state", stats.compaction.state}, {"segment_count", stats.compaction.segment_count}}},
          {"checkpoint",
           {{"state", stats.checkpoints.state},
            {"written_count", stats.checkpoints.written_count},
            {"row_count", stats.checkpoints.last.row_count},
            {"plain_bytes", stats.checkpoints.last.plain_bytes},
            {"stored_bytes", stats.checkpoints.last.stored_bytes},
            {"took_ms", stats.checkpoints.last.took_ms}}},
          {"backup",
           {{"backup_count", stats.backup_count},
            {"held_bytes", stats.segments.held_bytes + stats.database.held_bytes}}},
          {"commits",
           {{"commit_count", stats.commits.commit_count},
            {"request_count", stats.commits.request_count},
            {"failure_count", stats.commits.failure_count}}},
          {"database",
           {{"row_read_count", stats.database.row_reads},
            {"open_group_row_count", stats.database.open_group_rows},
            {"commit_count", stats.database.commit_count},
            {"wal_bytes", stats.database.wal_bytes},
            {"table_file_bytes", stats.database.table_file_bytes}}},
          {"engine",
           {{"backend", stats.engine_backend},
            {"payload_count", stats.engine.payload_count},
            {"message_count", stats.engine.message_count},
            {"failed_message_count", stats.engine.failed_message_count},
            {"input_bytes", stats.engine.input_bytes},
            {"output_bytes", stats.engine.output_bytes},
            {"cuda_message_count", stats.engine.cuda_message_count},
            {"cuda_input_bytes", stats.engine.cuda_input_bytes},
            {"cuda_failed_batch_count", stats.engine.cuda_failed_batch_count}}}};
}

nlohmann::json to_json(const CompactionReport& report) {
  return {{"segment_count", report.segment_count},
          {"moved_bytes", report.moved_bytes},
          {"freed_bytes", report.freed_bytes},
          {"immovable_segment_count", report.immovable_count}};
}

}  // namespace nacre::fs
