// SPDX-License-Identifier: Apache-2.0
// Writes a mount's counters in Prometheus' text format. Names of families never change once they
// are published.
#include <vector>

#include "fs/control/mount_stats.h"
#include "fs/control/prometheus_text.h"

namespace nacre::fs {

namespace {

using Labels = PrometheusText::Labels;

constexpr double ns_per_second = 1e9;
// The bounds are powers of two, from 4 µs to 17 s, so that each is a bound of the histogram's own
// buckets.
constexpr unsigned latency_first_bit = 12;
constexpr unsigned latency_last_bit = 34;

void add_volume(PrometheusText& text, const MountStats& stats) {
  const VolumeStats& volume = stats.volume;
  const SegmentStats& segments = volume.segments;
  text.gauge("nacre_uptime_seconds", "Since the volume was mounted.",
             stats.requests.counted_seconds);
  text.gauge("nacre_healthy", "1, or 0 when the volume refuses changes.",
             std::uint64_t{volume.health == "ok"});
  text.gauge("nacre_inodes", "Files, directories and others.", volume.inode_count);
  text.gauge("nacre_data_bytes", "Plain bytes of all files.", volume.data_bytes);
  text.gauge("nacre_stored_bytes", "Bytes of all segment files.", segments.stored_bytes);
  text.gauge("nacre_live_bytes", "Stored bytes of records in use.", segments.live_bytes);
  text.gauge("nacre_reclaimable_bytes", "What a trim would give back.", segments.reclaimable_bytes);
  text.gauge("nacre_segments", "Segment files.", segments.segment_count);
  text.gauge("nacre_dirty_bytes", "Written, and not stored yet.", volume.dirty_bytes);
  text.gauge("nacre_cache_bytes", "Chunks kept in memory.", volume.cached_bytes);
  text.counter("nacre_cache_hits_total", "Chunks found in memory.", volume.cache_hits);
  text.counter("nacre_cache_misses_total", "Chunks that had to be read.", volume.cache_misses);
  text.gauge("nacre_known_inodes", "Inodes that the kernel knows.", volume.known_inodes);
  text.gauge("nacre_loaded_inodes", "Inodes in memory.", volume.loaded_inodes);
  text.counter("nacre_commits_total", "Commits.", volume.commits.commit_count);
  text.counter("nacre_commit_failures_total", "Commits that failed.", volume.commits.failure_count);
  text.counter("nacre_moved_bytes_total", "Stored anew by compaction and rotation.",
               segments.moved_bytes);
  text.counter("nacre_compacted_segments_total", "Segments rewritten.",
               volume.compaction.segment_count);
  text.counter("nacre_held_writes_total", "Writes that waited for compaction.",
               volume.compaction.writers.held_count);
  text.counter("nacre_checkpoints_total", "Checkpoints written.", volume.checkpoints.written_count);
  text.gauge("nacre_backups", "Backups under way.", std::uint64_t{volume.backup_count});
  text.gauge("nacre_backup_held_bytes", "Kept from being freed by backups.",
             segments.held_bytes + volume.database.held_bytes);
  text.gauge("nacre_database_table_bytes", "Tables of the database.",
             volume.database.table_file_bytes);
  text.gauge("nacre_database_log_bytes", "Log of the database.", volume.database.wal_bytes);
  text.gauge("nacre_keyring_generation", "Counts changes of the keyring.",
             stats.keyring_generation);
}

void add_codecs(PrometheusText& text, const SegmentStats& segments) {
  const auto family = [&](std::string_view name, std::string_view help,
                          std::uint64_t CodecStats::*field) {
    text.begin(name, "counter", help);
    for (std::size_t i = 0; i < codec_count; ++i) {
      text.sample({{"codec", engine::to_string(static_cast<engine::Codec>(i))}},
                  segments.codecs[i].*field);
    }
  };
  family("nacre_codec_records_total", "Records written with a codec.", &CodecStats::record_count);
  family("nacre_codec_plain_bytes_total", "Plain bytes of those.", &CodecStats::plain_bytes);
  family("nacre_codec_stored_bytes_total", "Stored bytes of those.", &CodecStats::stored_bytes);
}

void add_engine(PrometheusText& text, const engine::EngineStats& engine) {
  text.begin("nacre_engine_messages_total", "counter", "Messages, by what did them.");
  text.sample({{"backend", "cpu"}}, engine.message_count - engine.cuda_message_count);
  text.sample({{"backend", "cuda"}}, engine.cuda_message_count);
  text.begin("nacre_engine_input_bytes_total", "counter", "Input bytes, by what did them.");
  text.sample({{"backend", "cpu"}}, engine.input_bytes - engine.cuda_input_bytes);
  text.sample({{"backend", "cuda"}}, engine.cuda_input_bytes);
  text.counter("nacre_engine_output_bytes_total", "Output bytes.", engine.output_bytes);
  text.counter("nacre_engine_failed_messages_total", "Messages that failed.",
               engine.failed_message_count);
  text.counter("nacre_engine_failed_batches_total", "Batches that a device failed.",
               engine.cuda_failed_batch_count);
  text.begin("nacre_engine_payload_bytes", "histogram", "Input bytes of payloads.");
  std::vector<PrometheusText::Bucket> buckets;
  std::uint64_t count = 0;
  constexpr std::size_t first_class = 12;  // 4 KiB
  constexpr std::size_t last_class = 30;   // 1 GiB
  for (std::size_t i = 0; i < engine.payloads_by_size.size(); ++i) {
    count += engine.payloads_by_size[i];
    if (i >= first_class && i <= last_class) {
      buckets.push_back({static_cast<double>((std::uint64_t{1} << i) - 1), count});
    }
  }
  text.histogram({}, buckets, count, static_cast<double>(engine.input_bytes));
}

void add_requests(PrometheusText& text, const RequestStats& requests) {
  text.begin("nacre_request_duration_seconds", "histogram",
             "From when a request of the kernel was received to its answer.");
  for (const OperationStats& one : requests.operations) {
    std::vector<PrometheusText::Bucket> buckets;
    for (unsigned bit = latency_first_bit; bit <= latency_last_bit; ++bit) {
      const std::uint64_t bound_ns = std::uint64_t{1} << bit;
      buckets.push_back(
          {static_cast<double>(bound_ns) / ns_per_second, one.latency_ns.below(bound_ns)});
    }
    text.histogram({{"operation", one.name}}, buckets, one.latency_ns.count,
                   static_cast<double>(one.latency_ns.sum) / ns_per_second);
  }
  text.begin("nacre_request_failures_total", "counter", "Requests answered with an error.");
  for (const OperationStats& one : requests.operations)
    text.sample({{"operation", one.name}}, one.error_count);
  text.begin("nacre_errors_total", "counter", "Errors that requests were answered with.");
  for (const auto& [name, count] : requests.errors)
    text.sample({{"errno", name}}, count);
}

void add_upkeep(PrometheusText& text, const MountStats& stats) {
  if (stats.scrub) {
    text.gauge("nacre_scrub_running", "1 while a scrub runs.",
               std::uint64_t{stats.scrub->state == metadata::ScrubState::running});
    text.gauge("nacre_scrub_done_bytes", "Verified by this scrub, or the last.",
               stats.scrub->segment_bytes + stats.scrub->database_bytes);
    text.gauge("nacre_scrub_total_bytes", "What it covers.", stats.scrub->total_bytes);
    text.gauge("nacre_scrub_damaged_places", "What it found.", stats.scrub->damage_count);
    text.gauge("nacre_scrub_ended_timestamp_seconds", "When the last one ended; 0: none did.",
               static_cast<std::uint64_t>(stats.scrub->ended_seconds));
  }
  if (stats.rotation) {
    text.gauge("nacre_epoch", "The current epoch of the keys.",
               std::uint64_t{stats.rotation->epoch});
    text.gauge("nacre_rotation_running", "1 while a rotation of keys is not done.",
               std::uint64_t{stats.rotation->is_under_way});
    text.gauge("nacre_rotation_done_bytes", "Records that it has done.",
               stats.rotation->done_bytes);
    text.gauge("nacre_rotation_total_bytes", "Records that it has to do.",
               stats.rotation->total_bytes);
  }
}

void add_description(PrometheusText& text, const MountDescription& description,
                     const std::string& engine, bool is_locked) {
  text.begin("nacre_info", "gauge", "Always 1; its labels say what this is.");
  text.sample({{"version", NACRE_VERSION},
               {"volume_id", description.volume_id},
               {"read_only", description.read_only ? "1" : "0"},
               {"engine", engine}},
              std::uint64_t{1});
  text.gauge("nacre_locked", "1 while the volume is locked; then there is nothing else.",
             std::uint64_t{is_locked});
}

}  // namespace

std::string locked_to_prometheus(const MountDescription& description) {
  PrometheusText text;
  add_description(text, description, "", true);
  return text.take();
}

std::string to_prometheus(const MountStats& stats, const MountDescription& description) {
  PrometheusText text;
  add_description(text, description, stats.volume.engine_backend, false);
  add_volume(text, stats);
  add_codecs(text, stats.volume.segments);
  add_engine(text, stats.volume.engine);
  add_requests(text, stats.requests);
  add_upkeep(text, stats);
  return text.take();
}

}  // namespace nacre::fs
