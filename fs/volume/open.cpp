// SPDX-License-Identifier: Apache-2.0
// Making a volume's first rows, opening a volume, and what it says about itself.
#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/volume/volume_impl.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::fs {

using metadata::Table;

namespace {

constexpr std::string_view database_folder = "db";
// A row with a higher number is corrupt: no volume has made that many inodes, and the numbers that
// follow it would overflow.
constexpr std::uint64_t inode_number_end = std::uint64_t{1} << 63;
constexpr std::string_view segment_folder = "segments";
// What one more file costs at the least, for the count of inodes that statfs promises.
constexpr std::uint64_t inode_cost_bytes = 512;
constexpr std::uint64_t inode_count_max = 0xffff'ffff;  // that is told, in use and free together

// A disk has room for so many segments at least. To empty one takes as much room as is live in it,
// which a small disk does not have for a large one.
constexpr std::uint64_t segment_count_min = 128;
constexpr std::uint64_t segment_size_bytes_min = 1u << 20;
constexpr std::uint64_t segment_size_bytes_for_lanes = 64u << 20;
// Flushes side by side: what one stream of writes cannot keep busy.
constexpr unsigned flusher_count_min = 2;
constexpr unsigned flusher_count_max = 4;
constexpr unsigned read_ahead_thread_count_max = 8;
// Of segments: free for compaction. One is moved and waits for its commit, another follows.
constexpr std::uint64_t segments_for_moving = 2;
// Of segments: being filled, moved and committed at any time, so that dead bytes of so many are no
// sign that compaction falls behind.
constexpr std::uint64_t segments_of_slack = 4;

VolumeOptions with_segments_for(metadata::BackingDirectory& directory, VolumeOptions options) {
  std::uint64_t& size = options.store.segment_size_bytes;
  if (const auto space = directory.space()) {
    size = std::min(size, std::max(space->total_bytes / segment_count_min, segment_size_bytes_min));
  }
  // A small disk has no room for many segments that are open.
  if (size >= segment_size_bytes_for_lanes) options.store.fresh_lane_count = fresh_lane_count_max;
  options.compaction.uncommitted_bytes_max =
      std::min(options.compaction.uncommitted_bytes_max, size);
  return options;
}

// Devices like long payloads. Elsewhere 16 MiB a core, 64 to 256: a writer who is faster than the
// flushers fills the budget, and all that he writes goes through so much memory. 256 MiB of it are
// in no cache and new to the process: with them two cores took twice as long to seal 1 GiB as with
// 64.
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
  // An engine that likes long payloads gets them: two a flush, as long as the budget allows.
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
  // Several lanes make the payloads that an engine likes large out of smaller ones.
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

Result<VolumeImpl::SystemRows> read_system_rows(const metadata::Database& database) {
  VolumeImpl::SystemRows rows;
  NACRE_ASSIGN(rows.next_inode, read_system_number(database, metadata::system_key_next_inode));
  if (rows.next_inode >= inode_number_end) {
    return fail(ErrorCode::corrupt, "the database's row 'next_inode' names no inode number");
  }
  NACRE_ASSIGN(rows.inode_count, read_system_number(database, metadata::system_key_inode_count));
  NACRE_ASSIGN(rows.data_bytes, read_system_number(database, metadata::system_key_data_bytes));
  NACRE_ASSIGN(rows.keyring_generation, read_system_number(database, metadata::system_key_keyring));
  NACRE_ASSIGN(const auto key, read_system_row(database, metadata::system_key_name_hash));
  if (key.size() != rows.name_hash_key.size()) {
    return fail(ErrorCode::corrupt, "the database's row 'name_hash_key' has a wrong size");
  }
  std::copy(key.begin(), key.end(), rows.name_hash_key.begin());
  return rows;
}

}  // namespace

Result<> Volume::format(std::shared_ptr<metadata::BackingDirectory> directory,
                        std::shared_ptr<const metadata::KeyTree> keys,
                        std::uint64_t keyring_generation, const Caller& owner) {
  NACRE_TRY(directory->make_directory(database_folder));
  NACRE_TRY(directory->make_directory(segment_folder));
  NACRE_TRY(directory->sync_directory(""));
  NACRE_ASSIGN(auto database,
               metadata::Database::open(directory, std::move(keys), {.create = true}));
  const auto put_number = [&](std::string_view key, std::uint64_t value) {
    database->put(Table::system, key, metadata::encode_u64(value));
  };
  put_number(metadata::system_key_next_inode, metadata::root_inode.value + 1);
  put_number(metadata::system_key_next_segment, 1);
  put_number(metadata::system_key_next_session, 1);
  put_number(metadata::system_key_inode_count, 1);
  put_number(metadata::system_key_data_bytes, 0);
  put_number(metadata::system_key_keyring, keyring_generation);
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

Result<std::unique_ptr<Volume>> Volume::open(std::shared_ptr<metadata::BackingDirectory> directory,
                                             std::shared_ptr<const metadata::KeyTree> keys,
                                             std::uint64_t keyring_generation,
                                             std::unique_ptr<engine::Engine> engine,
                                             const VolumeOptions& options) {
  if (!options.read_only) Ballast::make_way(*directory);
  NACRE_ASSIGN(auto database,
               metadata::Database::open(directory, keys, {.read_only = options.read_only}));
  return open_over(std::move(directory), std::move(database), std::move(keys), keyring_generation,
                   std::move(engine), options);
}

Result<std::unique_ptr<Volume>> Volume::open_over(
    std::shared_ptr<metadata::BackingDirectory> directory,
    std::unique_ptr<metadata::Database> database, std::shared_ptr<const metadata::KeyTree> keys,
    std::uint64_t keyring_generation, std::unique_ptr<engine::Engine> engine,
    const VolumeOptions& asked) {
  const VolumeOptions options = with_segments_for(*directory, asked);
  VolumeImpl::Parts parts{
      .directory = directory, .engine = std::move(engine), .database = std::move(database)};
  NACRE_ASSIGN(const auto rows, read_system_rows(*parts.database));
  if (keyring_generation < rows.keyring_generation) {
    return fail(ErrorCode::rolled_back,
                fmt::format("the keyring in {} is of generation {}, but the volume has already "
                            "been used with generation {}: it was put back to an older state; "
                            "restore the newer keyring",
                            directory->description(), keyring_generation, rows.keyring_generation));
  }
  if (options.accept) NACRE_TRY(options.accept(*parts.database));
  if (!options.read_only) {
    // Whoever wrote the newer keyring may have been killed before its name was durable, and what a
    // row asks for must be.
    if (keyring_generation > rows.keyring_generation) NACRE_TRY(directory->sync_directory(""));
    // Durable together with the write session that the store begins now.
    parts.database->put(Table::system, metadata::system_key_next_inode,
                        metadata::encode_u64(rows.next_inode + inode_reserve_count));
    parts.database->put(Table::system, metadata::system_key_keyring,
                        metadata::encode_u64(keyring_generation));
  }
  SegmentStoreOptions store_options = options.store;
  store_options.read_only = options.read_only;
  NACRE_ASSIGN(parts.store, SegmentStore::open(directory, *parts.database, std::move(keys),
                                               *parts.engine, store_options));
  auto volume = std::make_unique<VolumeImpl>(std::move(parts), rows, options);
  NACRE_TRY(volume->start());
  return volume;
}

VolumeImpl::VolumeImpl(Parts parts, const SystemRows& rows, const VolumeOptions& options)
    : directory_(std::move(parts.directory)),
      options_(options),
      engine_(std::move(parts.engine)),
      database_(std::move(parts.database)),
      store_(std::move(parts.store)),
      names_(*database_, rows.name_hash_key),
      xattrs_(*database_),
      ballast_(directory_, segments_for_moving * options.store.segment_size_bytes),
      committer_(*database_, *store_,
                 {.interval_ms = options.commit_interval_ms,
                  .ballast = &ballast_,
                  .make_room = [this] { return give_up_backups(0); }}),
      cache_(*database_, *store_, committer_, *this, options.store.chunk_size_bytes,
             cache_options(options, *engine_, ballast_)),
      inodes_(
          *database_, [this](InodeRef inode) { reaper_.add(std::move(inode)); },
          options.loaded_inodes_max),
      list_ahead_([this](InodeNumber directory, std::uint64_t from, std::size_t count) {
        read_ahead(directory, from, count);
      }),
      reaper_([this](InodeRef& inode, std::size_t row_count_max) {
        return erase_orphan(inode, row_count_max);
      }),
      compactor_(*database_, *store_, cache_.map(), committer_, *this,
                 compactor_options(options, *engine_, *directory_, ballast_)),
      checkpointer_(*directory_, *database_, *store_, committer_, ballast_, options.checkpoints),
      backups_([this] { note_backup_gone(); }),
      next_inode_(rows.next_inode),
      inode_limit_(rows.next_inode + inode_reserve_count),
      inode_count_(static_cast<std::int64_t>(rows.inode_count)),
      data_bytes_(static_cast<std::int64_t>(rows.data_bytes)),
      staged_inode_count_(rows.inode_count),
      staged_data_bytes_(rows.data_bytes),
      staged_next_inode_(inode_limit_) {}

Result<> VolumeImpl::start() {
  auto root = inodes_.acquire(metadata::root_inode);
  if (!root || !(*root)->is_directory()) {
    return fail(
        root || root.error().code == ErrorCode::stale ? ErrorCode::corrupt : root.error().code,
        fmt::format("the root directory cannot be read{}{}; run fsck.nacre", root ? "" : ": ",
                    root ? "" : root.error().message));
  }
  root_ = std::move(*root);
  cache_.start();
  if (options_.read_only) return {};
  if (!ballast_.restore()) {
    spdlog::warn("{}: the disk is full: new data is refused until there is room",
                 directory_->description());
  }
  committer_.start(*this);
  reaper_.start();
  NACRE_TRY(find_orphans());
  if (options_.background_compaction) compactor_.start();
  return checkpointer_.start();
}

Result<VolumeSpace> VolumeImpl::space() {
  const std::uint64_t unwritten = unwritten_bytes();
  NACRE_ASSIGN(const auto backing, directory_->space());
  const auto count = static_cast<std::uint64_t>(inode_count_.load());
  const std::uint64_t available = ballast_.room(backing, unwritten);
  // Programs of 32 bits get EOVERFLOW for larger numbers.
  const std::uint64_t free_inodes =
      std::min(available / inode_cost_bytes, inode_count_max - std::min(count, inode_count_max));
  const std::uint64_t for_root = backing.free_bytes - backing.available_bytes;
  return VolumeSpace{.total_bytes = backing.total_bytes,
                     .free_bytes = available + for_root,
                     .available_bytes = available,
                     .inode_count = count + free_inodes,
                     .free_inodes = free_inodes};
}

metadata::VolumeAge VolumeImpl::age() {
  // A session's row is durable before the session is there; its changes are counted after it.
  const auto session = store_->session_name();
  return {.session_count = session.ordinal,
          .session = session.salt,
          .change_count = database_->durable_change_count()};
}

VolumeStats VolumeImpl::stats() {
  const auto cache = cache_.stats();
  const auto inodes = inodes_.count();
  const auto health = committer_.health();
  return VolumeStats{.inode_count = static_cast<std::uint64_t>(inode_count_.load()),
                     .data_bytes = static_cast<std::uint64_t>(data_bytes_.load()),
                     .dirty_bytes = cache.dirty_bytes,
                     .cached_bytes = cache.chunks.bytes,
                     .cache_hits = cache.chunks.hits,
                     .cache_misses = cache.chunks.misses,
                     .known_inodes = inodes.known,
                     .loaded_inodes = inodes.in_memory,
                     .segments = store_->stats(),
                     .compaction = compactor_.stats(),
                     .checkpoints = checkpointer_.stats(),
                     .commits = committer_.stats(),
                     .database = database_->stats(),
                     .engine = engine_->stats(),
                     .engine_backend = engine_->backend_name(),
                     .backup_count = backups_.count(),
                     .health = health ? "ok" : health.error().message};
}

}  // namespace nacre::fs
