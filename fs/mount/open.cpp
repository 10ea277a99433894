// SPDX-License-Identifier: Apache-2.0
// Makes a volume's first rows, opens a volume and closes it.
#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/mount/keyring_generation.h"
#include "fs/mount/mounted.h"
#include "fs/volume/volume_impl.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/superblock.h"

namespace nacre::fs {

using metadata::Table;

namespace {

constexpr std::string_view database_folder = "db";
// A row with a higher number is corrupt: no volume has made that many inodes, and counting on from
// there would overflow.
constexpr std::uint64_t inode_number_end = std::uint64_t{1} << 63;
constexpr std::string_view segment_folder = "segments";

// Segments are so small that the disk has room for at least this many. Emptying a segment takes as
// much room as it has live bytes, which a small disk does not have for a large segment.
constexpr std::uint64_t segment_count_min = 128;
constexpr std::uint64_t segment_size_bytes_min = 1u << 20;
constexpr std::uint64_t segment_size_bytes_for_lanes = 64u << 20;
// At least this many flushes run at a time, because one cannot keep the cores busy.
constexpr unsigned flusher_count_min = 2;
constexpr unsigned flusher_count_max = 4;
constexpr unsigned read_ahead_thread_count_max = 8;
// The room, in segments, that compaction needs: one segment has been moved and waits for its commit
// while another is being moved.
constexpr std::uint64_t segments_for_moving = 2;
// Segments that are being filled, moved or committed at any time. Dead bytes in this many segments
// are no sign that compaction falls behind.
constexpr std::uint64_t segments_of_slack = 4;

VolumeOptions with_segments_for(metadata::BackingDirectory& directory, VolumeOptions options) {
  std::uint64_t& size = options.store.segment_size_bytes;
  if (const auto space = directory.space()) {
    size = std::min(size, std::max(space->total_bytes / segment_count_min, segment_size_bytes_min));
  }
  // A small disk has no room for many open segments.
  if (size >= segment_size_bytes_for_lanes) options.store.fresh_lane_count = fresh_lane_count_max;
  options.compaction.uncommitted_bytes_max =
      std::min(options.compaction.uncommitted_bytes_max, size);
  return options;
}

// Devices prefer long payloads, so they get 256 MiB. Without one the budget is 16 MiB a core, at
// least 64 and at most 256 MiB. A writer that is faster than the flushers fills the budget, and all
// its data passes through that much memory. 256 MiB fit into no cache of the processor: with them
// two cores took twice as long to seal 1 GiB as with 64 MiB.
std::uint64_t default_dirty_budget_bytes(bool likes_long_payloads, unsigned cores) {
  constexpr std::uint64_t mebibyte = 1u << 20;
  if (likes_long_payloads) return 256 * mebibyte;
  return std::clamp<std::uint64_t>(cores * 16 * mebibyte, 64 * mebibyte, 256 * mebibyte);
}

FileCacheOptions cache_options(const VolumeOptions& options, const engine::Engine& engine,
                               Ballast& ballast) {
  const unsigned cores = std::thread::hardware_concurrency();
  const std::uint64_t payload = flush_payload_size_bytes(engine, options.store);
  const bool likes_long_payloads = payload > payload_size_bytes_min;
  FileCacheOptions cache = {
      .dirty_budget_bytes = options.dirty_budget_bytes.value_or(
          default_dirty_budget_bytes(likes_long_payloads, cores)),
      .cache_budget_bytes = options.cache_budget_bytes,
      .read_ahead_bytes_max = options.read_ahead_bytes_max,
      .read_ahead_thread_count = std::clamp(cores / 2, 2u, read_ahead_thread_count_max),
      .flusher_count = std::clamp(cores / 2, flusher_count_min, flusher_count_max),
      .flush_size_bytes_max = options.flush_size_bytes_max,
      .ballast = &ballast};
  // If the engine prefers long payloads, each flush makes two of them, as far as the budget allows.
  if (likes_long_payloads && 8 * payload <= cache.dirty_budget_bytes) {
    cache.flush_size_bytes_max = std::max(cache.flush_size_bytes_max, 2 * payload);
    cache.streaming_chunk_count *= payload / payload_size_bytes_min;
  }
  return cache;
}

CompactorOptions compactor_options(const VolumeOptions& options, const engine::Engine& engine,
                                   metadata::BackingDirectory& directory, Ballast& ballast) {
  CompactorOptions compaction = options.compaction;
  compaction.bound.slack_bytes_min = std::max(compaction.bound.slack_bytes_min,
                                              segments_of_slack * options.store.segment_size_bytes);
  compaction.pacing.burst_bytes_max =
      std::min(compaction.pacing.burst_bytes_max, compaction.bound.slack_bytes_min / 8);
  compaction.directory = &directory;
  compaction.ballast = &ballast;
  // Several lanes fill one large payload, which such an engine prefers.
  compaction.rekey_batch_bytes =
      std::clamp<std::size_t>(engine.payload_size_bytes(), 4u << 20, 8u << 20);
  return compaction;
}

Result<std::string> read_system_row(const metadata::Database& database, std::string_view key) {
  NACRE_ASSIGN(auto value, database.get(Table::system, key));
  if (!value) return fail(ErrorCode::corrupt, fmt::format("the database has no row '{}'", key));
  return std::move(*value);
}

Result<std::uint64_t> read_system_number(const metadata::Database& database, std::string_view key) {
  NACRE_ASSIGN(const auto value, read_system_row(database, key));
  return metadata::decode_u64(value);
}

VolumeRules rules_of(const VolumeOptions& options) {
  return {.read_only = options.read_only,
          .may_name_files = options.may_name_files,
          .access_times = options.access_times};
}

}  // namespace

struct Mounted::SystemRows {
  NameHashKey name_hash_key = {};
  Staging::Counters counters;
  std::uint64_t keyring_generation = 0;
  std::optional<std::uint64_t> superblock_generation;
};

Result<Mounted::SystemRows> Mounted::read_system_rows(const metadata::Database& database) {
  SystemRows rows;
  NACRE_ASSIGN(rows.counters.next_inode,
               read_system_number(database, metadata::system_key_next_inode));
  if (rows.counters.next_inode >= inode_number_end) {
    return fail(ErrorCode::corrupt, "the database's row 'next_inode' names no inode number");
  }
  NACRE_ASSIGN(rows.counters.inode_count,
               read_system_number(database, metadata::system_key_inode_count));
  NACRE_ASSIGN(rows.counters.data_bytes,
               read_system_number(database, metadata::system_key_data_bytes));
  NACRE_ASSIGN(rows.keyring_generation, read_system_number(database, metadata::system_key_keyring));
  NACRE_ASSIGN(const auto superblock, database.get(Table::system, metadata::system_key_superblock));
  if (superblock) {
    NACRE_ASSIGN(rows.superblock_generation, metadata::decode_u64(*superblock));
  }
  NACRE_ASSIGN(const auto key, read_system_row(database, metadata::system_key_name_hash));
  if (key.size() != rows.name_hash_key.size()) {
    return fail(ErrorCode::corrupt, "the database's row 'name_hash_key' has a wrong size");
  }
  std::copy(key.begin(), key.end(), rows.name_hash_key.begin());
  return rows;
}

Result<> Mounted::format(std::shared_ptr<metadata::BackingDirectory> directory,
                         std::shared_ptr<const metadata::KeyTree> keys,
                         std::uint64_t keyring_generation, const Caller& owner,
                         std::uint64_t superblock_generation, engine::Padding padding) {
  NACRE_TRY(directory->make_directory(database_folder));
  NACRE_TRY(directory->make_directory(segment_folder));
  NACRE_TRY(directory->sync_directory(""));
  NACRE_ASSIGN(auto database, metadata::Database::open(directory, std::move(keys),
                                                       {.create = true, .padding = padding}));
  const auto put_number = [&](std::string_view key, std::uint64_t value) {
    database->put(Table::system, key, metadata::encode_u64(value));
  };
  put_number(metadata::system_key_next_inode, metadata::root_inode.value + 1);
  put_number(metadata::system_key_next_segment, 1);
  put_number(metadata::system_key_next_session, 1);
  put_number(metadata::system_key_inode_count, 1);
  put_number(metadata::system_key_data_bytes, 0);
  put_number(metadata::system_key_keyring, keyring_generation);
  if (superblock_generation != 0) {
    put_number(metadata::system_key_superblock, superblock_generation);
  }
  NameHashKey name_hash_key;
  engine::random_bytes(name_hash_key);
  database->put(Table::system, metadata::system_key_name_hash, std::string(as_text(name_hash_key)));
  const auto time = kernel_now();
  database->put(Table::inodes, metadata::inode_key(metadata::root_inode),
                metadata::encode(metadata::InodeRow{.mode = S_IFDIR | 0755,
                                                    .uid = owner.uid,
                                                    .gid = owner.gid,
                                                    .link_count = 2,
                                                    .parent = metadata::root_inode,
                                                    .accessed = time,
                                                    .modified = time,
                                                    .changed = time,
                                                    .born = time}));
  database->freeze();
  NACRE_TRY(database->commit_frozen(true));
  return database->close();
}

Result<std::unique_ptr<Mounted>> Mounted::open(
    std::shared_ptr<metadata::BackingDirectory> directory,
    std::shared_ptr<const metadata::KeyTree> keys, std::uint64_t keyring_generation,
    std::unique_ptr<engine::Engine> engine, const VolumeOptions& options) {
  if (!options.read_only) Ballast::make_way(*directory);
  NACRE_ASSIGN(auto database, metadata::Database::open(directory, keys,
                                                       {.read_only = options.read_only,
                                                        .padding = options.store.padding}));
  return open_over(std::move(directory), std::move(database), std::move(keys), keyring_generation,
                   std::move(engine), options);
}

Result<std::unique_ptr<Mounted>> Mounted::open_over(
    std::shared_ptr<metadata::BackingDirectory> directory,
    std::unique_ptr<metadata::Database> database, std::shared_ptr<const metadata::KeyTree> keys,
    std::uint64_t keyring_generation, std::unique_ptr<engine::Engine> engine,
    const VolumeOptions& asked) {
  const VolumeOptions options = with_segments_for(*directory, asked);
  NACRE_ASSIGN(const auto rows, read_system_rows(*database));
  NACRE_TRY(check_keyring_generation(directory->description(), keyring_generation,
                                     rows.keyring_generation));
  if (options.superblock_generation != 0) {
    const auto newest =
        metadata::check_noted_generation(options.superblock_generation, rows.superblock_generation);
    if (!newest) return add_context(newest.error(), directory->description());
  }
  if (options.accept) NACRE_TRY(options.accept(*database));
  if (!options.read_only) {
    // The program that wrote the newer keyring or superblock may have been killed before the file's
    // name was durable. A row may only ask for a file whose name is durable.
    const bool is_superblock_newer =
        options.superblock_generation > rows.superblock_generation.value_or(0);
    if (keyring_generation > rows.keyring_generation || is_superblock_newer) {
      NACRE_TRY(directory->sync_directory(""));
    }
    // This row becomes durable together with the write session that the store begins now.
    database->put(Table::system, metadata::system_key_next_inode,
                  metadata::encode_u64(rows.counters.next_inode + inode_reserve_count));
    database->put(Table::system, metadata::system_key_keyring,
                  metadata::encode_u64(keyring_generation));
    if (is_superblock_newer) {
      database->put(Table::system, metadata::system_key_superblock,
                    metadata::encode_u64(options.superblock_generation));
    }
  }
  SegmentStoreOptions store_options = options.store;
  store_options.read_only = options.read_only;
  NACRE_ASSIGN(auto store,
               SegmentStore::open(directory, *database, std::move(keys), *engine, store_options));
  std::unique_ptr<Mounted> mounted(new Mounted(std::move(directory), std::move(engine),
                                               std::move(database), std::move(store), rows,
                                               options));
  NACRE_TRY(mounted->start());
  return mounted;
}

Mounted::Mounted(std::shared_ptr<metadata::BackingDirectory> directory,
                 std::unique_ptr<engine::Engine> engine,
                 std::unique_ptr<metadata::Database> database, std::unique_ptr<SegmentStore> store,
                 const SystemRows& rows, const VolumeOptions& options)
    : directory_(std::move(directory)),
      options_(options),
      engine_(std::move(engine)),
      database_(std::move(database)),
      store_(std::move(store)),
      ballast_(directory_, segments_for_moving * options.store.segment_size_bytes),
      committer_(*database_, *store_,
                 {.interval_ms = options.commit_interval_ms,
                  .ballast = &ballast_,
                  .make_room = [this] { return admission_.give_up_backups(0); }}),
      cache_(*database_, *store_, committer_, *this, options.store.chunk_size_bytes,
             cache_options(options, *engine_, ballast_)),
      compactor_(*database_, *store_, cache_.map(), committer_, *this,
                 compactor_options(options, *engine_, *directory_, ballast_)),
      checkpointer_(*directory_, *database_, *store_, committer_, ballast_, options.checkpoints),
      // Empty segments that were kept for the backup are removed by the next commit.
      backups_([this] {
        committer_.note_change();
        compactor_.wake();
      }),
      admission_({.directory = *directory_,
                  .database = *database_,
                  .store = *store_,
                  .ballast = ballast_,
                  .committer = committer_,
                  .compactor = compactor_,
                  .backups = backups_,
                  .is_erasing = [this] { return volume_->names().reaper().is_busy(); }},
                 rules_of(options)),
      volume_(std::make_unique<VolumeImpl>(VolumeBase{.directory = *directory_,
                                                      .database = *database_,
                                                      .ballast = ballast_,
                                                      .kernel_cache = kernel_cache_,
                                                      .committer = committer_,
                                                      .cache = cache_,
                                                      .admission = admission_},
                                           rows.name_hash_key, rows.counters, rules_of(options),
                                           options.loaded_inodes_max)) {}

Result<> Mounted::start() {
  if (options_.knowledge != nullptr) volume_->inodes().adopt_knowledge(*options_.knowledge);
  NACRE_TRY(volume_->names().find_root());
  cache_.start();
  if (options_.read_only) return {};
  if (!ballast_.restore()) {
    spdlog::warn("{}: the disk is full: new data is refused until there is room",
                 directory_->description());
  }
  committer_.start(*this);
  volume_->names().reaper().start();
  NACRE_TRY(volume_->names().find_orphans());
  if (options_.background_compaction) compactor_.start();
  return checkpointer_.start();
}

Result<> Mounted::close(KernelKnowledge* knowledge) {
  if (std::exchange(closed_, true)) return {};
  Result<> last;
  volume_->names().list_ahead().stop();
  checkpointer_.stop();
  compactor_.stop();
  if (knowledge != nullptr) *knowledge = volume_->inodes().knowledge();
  if (!options_.read_only) {
    // Deleted files that the kernel never forgot are removed by the last commit.
    if (knowledge == nullptr) volume_->inodes().forget_all();
    volume_->names().reaper().stop();
    cache_.stop();
    volume_->staging().begin_closing();
    checkpointer_.write_last();
    last = committer_.stop();
  }
  volume_->inodes().keep_everything();
  cache_.stop();
  if (options_.read_only) return {};
  NACRE_TRY(last);
  auto closed = database_->close();
  if (!closed && closed.error().code == ErrorCode::no_space && ballast_.release_for_rows()) {
    closed = database_->close();
  }
  NACRE_TRY(closed);
  return volume_->staging().file_error();
}

Mounted::~Mounted() {
  volume_->names().list_ahead().stop();
  checkpointer_.stop();
  compactor_.stop();
  volume_->inodes().keep_everything();
  volume_->names().reaper().stop();
  committer_.abandon();
  cache_.stop();
}

}  // namespace nacre::fs
