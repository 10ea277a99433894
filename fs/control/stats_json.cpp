// SPDX-License-Identifier: Apache-2.0
#include "fs/control/stats_json.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "fs/check/finding.h"
#include "metadata/text/rfc3339.h"

namespace nacre::fs {

namespace {

// More pairs than any mount has, and few enough to fit into a reply.
constexpr std::size_t bucket_pair_count_max = 6000;

double ratio(std::uint64_t plain_bytes, std::uint64_t stored_bytes) {
  return static_cast<double>(plain_bytes) / static_cast<double>(stored_bytes);
}

// The ratio, or null if nothing is stored.
nlohmann::json ratio_or_null(std::uint64_t plain_bytes, std::uint64_t stored_bytes) {
  return stored_bytes == 0 ? nlohmann::json() : nlohmann::json(ratio(plain_bytes, stored_bytes));
}

nlohmann::json codecs_json(const SegmentStats& segments) {
  auto result = nlohmann::json::object();
  for (std::size_t i = 0; i < codec_count; ++i) {
    const CodecStats& codec = segments.codecs[i];
    if (codec.record_count == 0) continue;
    result[std::string(engine::to_string(static_cast<engine::Codec>(i)))] = {
        {"record_count", codec.record_count},
        {"plain_bytes", codec.plain_bytes},
        {"stored_bytes", codec.stored_bytes},
        {"ratio", ratio_or_null(codec.plain_bytes, codec.stored_bytes)}};
  }
  return result;
}

nlohmann::json payload_sizes_json(const engine::EngineStats& engine) {
  auto result = nlohmann::json::array();
  for (std::size_t i = 0; i < engine.payloads_by_size.size(); ++i) {
    if (engine.payloads_by_size[i] == 0) continue;
    result.push_back(
        {{"below_bytes", std::uint64_t{1} << i}, {"payload_count", engine.payloads_by_size[i]}});
  }
  return result;
}

nlohmann::json devices_json(const engine::EngineStats& engine) {
  auto result = nlohmann::json::array();
  for (const engine::DeviceStats& device : engine.devices) {
    result.push_back({{"name", device.name},
                      {"number", device.number},
                      {"is_lost", device.is_lost},
                      {"busy_ns", device.busy_ns},
                      {"input_bytes", device.input_bytes}});
  }
  return result;
}

}  // namespace

nlohmann::json to_json(const RequestStats& stats, bool with_histograms) {
  auto operations = nlohmann::json::object();
  std::size_t pair_count = 0;
  for (const OperationStats& one : stats.operations) {
    const HistogramCounts& latency = one.latency_ns;
    operations[one.name] = {{"count", latency.count},
                            {"error_count", one.error_count},
                            {"sum_ns", latency.sum},
                            {"p50_ns", latency.quantile(0.5)},
                            {"p90_ns", latency.quantile(0.9)},
                            {"p99_ns", latency.quantile(0.99)},
                            {"max_ns", latency.max}};
    if (!with_histograms) continue;
    auto& buckets = operations[one.name]["buckets"] = nlohmann::json::array();
    for (std::size_t i = 0; i < latency.buckets.size(); ++i) {
      if (latency.buckets[i] == 0 || pair_count == bucket_pair_count_max) continue;
      buckets.push_back({i, latency.buckets[i]});
      ++pair_count;
    }
  }
  auto errors = nlohmann::json::object();
  for (const auto& [name, count] : stats.errors)
    errors[name] = count;
  return {{"operations", std::move(operations)}, {"errors", std::move(errors)}};
}

nlohmann::json to_json(const VolumeStats& stats) {
  return {{"health", stats.health},
          {"inode_count", stats.inode_count},
          {"data_bytes", stats.data_bytes},
          {"ratio", ratio_or_null(stats.data_bytes, stats.segments.live_bytes)},
          {"codecs", codecs_json(stats.segments)},
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
           {{"state", stats.compaction.state},
            {"segment_count", stats.compaction.segment_count},
            {"holds_writers", stats.compaction.writers.is_engaged},
            {"held_write_count", stats.compaction.writers.held_count},
            {"waiting_write_count", stats.compaction.writers.waiting_count}}},
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
            {"payload_sizes", payload_sizes_json(stats.engine)},
            {"message_count", stats.engine.message_count},
            {"failed_message_count", stats.engine.failed_message_count},
            {"input_bytes", stats.engine.input_bytes},
            {"output_bytes", stats.engine.output_bytes},
            {"cuda_message_count", stats.engine.cuda_message_count},
            {"cuda_input_bytes", stats.engine.cuda_input_bytes},
            {"cuda_failed_batch_count", stats.engine.cuda_failed_batch_count},
            {"devices", devices_json(stats.engine)}}}};
}

nlohmann::json to_json(const CompactionReport& report) {
  return {{"segment_count", report.segment_count},
          {"moved_bytes", report.moved_bytes},
          {"freed_bytes", report.freed_bytes},
          {"immovable_segment_count", report.immovable_count}};
}

nlohmann::json to_json(const metadata::ScrubRow& row) {
  constexpr std::array owners = {"unknown", "nobody", "files"};
  const auto time = [](std::int64_t seconds) {
    return seconds == 0 ? std::string() : metadata::rfc3339(seconds);
  };
  auto places = nlohmann::json::array();
  for (const auto& place : row.places) {
    places.push_back({{"verdict", to_string(static_cast<Verdict>(place.verdict))},
                      {"file", place.file},
                      {"offset", place.offset},
                      {"size_bytes", place.size},
                      {"what", place.what},
                      {"owner", owners[static_cast<std::size_t>(place.owner)]},
                      {"paths", place.paths}});
  }
  return {
      {"state", metadata::to_string(row.state)},
      {"error", row.error},
      {"rate_bytes_per_second", row.rate_bytes_per_second},
      {"started", time(row.started_seconds)},
      {"ended", time(row.ended_seconds)},
      {"done_bytes", row.segment_bytes + row.database_bytes},
      {"total_bytes", row.total_bytes},
      {"segment_count", row.segment_count},
      {"record_count", row.record_count},
      {"segment_bytes", row.segment_bytes},
      {"database_file_count", row.database_file_count},
      {"database_bytes", row.database_bytes},
      {"damage_count", row.damage_count},
      {"places", std::move(places)},
      {"previous",
       {{"ended", time(row.previous_ended_seconds)}, {"damage_count", row.previous_damage_count}}}};
}

}  // namespace nacre::fs
