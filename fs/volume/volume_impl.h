// SPDX-License-Identifier: Apache-2.0
// The volume's implementation: which rows and which inodes an operation changes, and under what
// locks. The methods are in names.cpp, create.cpp, directories.cpp, rename.cpp, attributes.cpp,
// xattrs.cpp, data.cpp, orphans.cpp, staging.cpp and open.cpp.
//
// Changes of attributes happen in memory (InodeState); stage() puts the rows of changed inodes into
// the open group, once however often they changed. Names and extended attributes go to the open
// group at once. A group always holds an operation as a whole: whoever changes rows, or an inode
// together with rows or other inodes, holds the operation lock.
//
// Lock order. Locks are taken from top to bottom:
//   committer's move lock      rename and link only
//   FileData's flush lock      FileData takes it itself, as it does the operation lock: so its
//   operation lock (shared)    methods are called under neither
//   namespace lock             shared to read names, exclusive to change them
//   FileData's mutex           its queries (data_bytes(), is_dirty()) take no other
//   an inode's lock            one at a time; FileData takes it when its durable state changes, so
//                              only size() and durable_…() are called under it
//   leaves                     inode table, orphan queue, the mutexes below, the database
// None of them is held while waiting for a commit, a flush, the dirty budget or the kernel.
// InodeRefs are declared before the locks of a function, so that they are released after them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fs/cache/file_cache.h"
#include "fs/store/backup_holds.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"
#include "fs/volume/acl.h"
#include "fs/volume/directory_offsets.h"
#include "fs/volume/inode_table.h"
#include "fs/volume/kernel_clock.h"
#include "fs/volume/list_ahead.h"
#include "fs/volume/name_table.h"
#include "fs/volume/namespace_lock.h"
#include "fs/volume/orphan_reaper.h"
#include "fs/volume/scrub_subject.h"
#include "fs/volume/volume.h"
#include "fs/volume/xattr_table.h"

namespace nacre::fs {

// DT_* of a mode.
inline std::uint8_t entry_type(std::uint32_t mode) {
  return static_cast<std::uint8_t>((mode & S_IFMT) >> 12);
}

// Inode numbers that the database has set aside beyond those in use: more than a group can use up.
inline constexpr std::uint64_t inode_reserve_count = 1u << 24;

class VolumeImpl final : public Volume,
                         private CommitSource,
                         private DurableObserver,
                         private RowKeeper,
                         private ScrubSubject,
                         private Rekeying {
 public:
  // What the database says before anything else can be opened.
  struct SystemRows {
    NameHashKey name_hash_key = {};
    std::uint64_t next_inode = 0;
    std::uint64_t inode_count = 0;
    std::uint64_t data_bytes = 0;
    std::uint64_t keyring_generation = 0;
  };
  struct Parts {
    std::shared_ptr<metadata::BackingDirectory> directory;
    std::unique_ptr<engine::Engine> engine;
    std::unique_ptr<metadata::Database> database;
    std::unique_ptr<SegmentStore> store;
  };
  VolumeImpl(Parts parts, const SystemRows& rows, const VolumeOptions& options);
  ~VolumeImpl() override;
  Result<> start();

  Result<> close() override;
  void set_kernel_cache(KernelCache* kernel_cache) override;

  Result<Attributes> lookup(InodeNumber parent, std::string_view name) override;
  Result<Attributes> lookup_inode(InodeNumber inode) override;
  bool forget(InodeNumber inode, std::uint64_t lookups) override;
  Result<Attributes> make_node(InodeNumber parent, std::string_view name, const Caller& caller,
                               std::uint32_t mode, std::uint64_t rdev) override;
  Result<Attributes> make_directory(InodeNumber parent, std::string_view name, const Caller& caller,
                                    std::uint32_t mode) override;
  Result<Attributes> make_symlink(InodeNumber parent, std::string_view name, const Caller& caller,
                                  std::string_view target) override;
  Result<Attributes> make_unnamed(InodeNumber parent, const Caller& caller,
                                  std::uint32_t mode) override;
  Result<Attributes> link(InodeNumber inode, InodeNumber parent, std::string_view name) override;
  Result<> unlink(InodeNumber parent, std::string_view name) override;
  Result<> remove_directory(InodeNumber parent, std::string_view name) override;
  Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                  std::string_view new_name, RenameMode mode) override;
  Result<> rename_over_whiteout(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                                std::string_view new_name, RenameMode mode,
                                const Caller& caller) override;
  Result<std::string> read_symlink(InodeNumber inode) override;
  Result<> read_directory(InodeNumber inode, std::uint64_t cookie, bool with_attributes,
                          const std::function<bool(const DirectoryEntry&)>& take) override;
  void go_on_listing() noexcept override { list_ahead_.read_wanted(); }

  Result<Attributes> attributes(InodeNumber inode) override;
  Result<Attributes> change_attributes(InodeNumber inode, const AttributeChange& change) override;
  Result<> set_flags(InodeNumber inode, std::uint32_t flags) override;
  Result<std::string> get_xattr(InodeNumber inode, std::string_view name) override;
  Result<> set_xattr(InodeNumber inode, std::string_view name, std::string_view value,
                     XattrMode mode, bool clear_sgid) override;
  Result<> remove_xattr(InodeNumber inode, std::string_view name) override;
  Result<std::vector<std::string>> list_xattrs(InodeNumber inode) override;

  Result<std::size_t> read(InodeNumber inode, std::uint64_t offset, MutableByteView out) override;
  Result<FileBytes> view(InodeNumber inode, std::uint64_t offset, MutableByteView buffer) override;
  Result<> check_write(InodeNumber inode, std::uint64_t bytes) override;
  Result<> write(InodeNumber inode, std::uint64_t offset, ByteView bytes,
                 WriteFlags flags) override;
  bool may_write_on(std::uint64_t written_bytes) override;
  void hold_writer(InodeNumber inode, std::uint64_t written_bytes,
                   std::function<void()> go_on) noexcept override;
  void let_writers_go() override { compactor_.let_writers_go(); }
  Result<> allocate(InodeNumber inode, AllocateMode mode, std::uint64_t offset,
                    std::uint64_t length) override;
  Result<std::uint64_t> seek(InodeNumber inode, std::uint64_t offset, SeekWhat what) override;
  Result<std::uint64_t> copy_range(InodeNumber from, std::uint64_t from_offset, InodeNumber to,
                                   std::uint64_t to_offset, std::uint64_t length) override;

  void sync_inode(InodeNumber inode, std::function<void(Result<>)> done) override;
  Result<> sync_all() override;

  Result<CompactionReport> compact(CompactionGoal goal,
                                   const CompactionProgress& progress) override;
  void stop_compaction() override;
  Result<BackupSnapshot> begin_backup() override;
  Result<CheckpointReport> write_checkpoint(CheckpointKeep keep) override;
  Result<> note_keyring_generation(std::uint64_t generation) override;
  ScrubSubject* scrub_subject() override { return this; }

  Rekeying* rekeying() override;

  Result<VolumeSpace> space() override;
  metadata::VolumeAge age() override;
  VolumeStats stats() override;
  std::string path_of(InodeNumber inode) override;
  std::string shown_name(InodeNumber inode) override;

 private:
  // CommitSource and DurableObserver: staging.cpp.
  Result<> flush(const CommitScope& scope) override;
  Result<> stage() override;
  std::set<InodeNumber> unflushed_moves() override;
  // upkeep.cpp.
  Result<BackupSnapshot> hold_committed();  // on the commit thread
  void note_backup_gone();
  // The disk is full: what only backups keep goes, if it is that much. True when it went: a commit
  // that frees it is under way. Under no lock.
  bool give_up_backups(std::uint64_t bytes_min);
  // Where so much is deleted or overwritten and not free yet, those who ask for room wait for it
  // from now on. Where such a wait was in vain, it is a while until the next one.
  void expect_room(std::uint64_t bytes_min);
  // What admit says; where that is an error and dead bytes or backups can be given up for it, after
  // a wait for their space. missing_bytes: less than that does not help. Under no lock.
  Result<> admit_after_freeing(const std::function<Result<>()>& admit,
                               std::uint64_t missing_bytes = 0);
  void durable_state_changed(InodeNumber inode) override;
  // RowKeeper: upkeep.cpp.
  Result<std::size_t> change_rows(InodeNumber inode, std::span<const RowChange> changes) override;
  bool is_going(InodeNumber inode) override;
  Result<> tidy_chunk(InodeNumber inode, ChunkIndex index) override;
  std::uint64_t inlined_bytes() const override;
  PatchedChunks take_patched_chunks() override;
  // ScrubSubject.
  metadata::BackingDirectory& directory() override { return *directory_; }
  const metadata::Database& database() override { return *database_; }
  SegmentStore& segments() override { return *store_; }
  engine::Engine& engine() override { return *engine_; }
  Result<> save_scrub(std::string row, bool at_once) override;
  // Rekeying: rekey.cpp.
  Result<> remember_rotation(const metadata::RotationRow& row) override;
  Result<metadata::RotationRow> rotation_row() override;
  Result<> check_may_begin() override;
  Result<> begin_epoch() override;
  void set_codec(engine::Codec codec, int level) override;
  void recompress_old_epochs() override;
  Result<RekeyStep> rekey_segments(const RekeyOrder& order) override;
  Result<> renew_checkpoint() override;
  OutdatedSegments outdated_segments() override;
  bool vouches_for(metadata::SegmentNumber number) override;
  Result<std::vector<std::string>> reseal_database(const std::function<Result<>()>& go_on) override;
  Result<> settle() override;
  unsigned backup_count() override;
  void stage_inode(Inode& inode, std::uint64_t group);
  void stage_counters();
  bool is_durable(Inode& inode);
  void note_durable();
  tl::unexpected<Error> sync_error(Error error, InodeNumber inode);

  // Every change begins with one of these: read_only for a volume that takes none; the second, of
  // changes that add rows, also no_space.
  Result<> check_writable() const;
  Result<> check_may_grow();
  static Result<> check_name(std::string_view name);
  Result<InodeRef> acquire_directory(InodeNumber number);
  Result<InodeRef> acquire_regular(InodeNumber number);
  // The inode that a directory's entry names: one that is not there is damage.
  Result<InodeRef> acquire_entry(InodeNumber parent, std::string_view name, InodeNumber number);

  // directories.cpp.
  Result<std::uint64_t> place_of_offset(InodeNumber directory, std::uint64_t offset);
  Result<std::uint64_t> find_lost_place(InodeNumber directory, std::uint64_t ticket);
  Result<> list_inodes(InodeNumber number, std::uint64_t place, std::uint64_t offset,
                       const std::function<bool(const DirectoryEntry&)>& take);
  Result<ListPiece> read_piece(InodeNumber directory, std::uint64_t from, std::size_t count);
  void keep_rest(ListPiece piece);
  void read_ahead(InodeNumber directory, std::uint64_t from, std::size_t count) noexcept;

  // names.cpp, create.cpp, rename.cpp.
  struct NewInode {
    metadata::InodeRow row;
    Acl access_acl;
    Acl default_acl;  // of a directory
  };
  Result<NewInode> prepare(Inode& parent, const Caller& caller, std::uint32_t mode);
  Result<Attributes> make(const InodeRef& directory, std::string_view name, NewInode made);
  Result<InodeNumber> next_inode_number();
  InodeRef create_inode(InodeNumber number, NewInode made);
  // The directory is there and may get a name, or lose one.
  static Result<> check_may_add(Inode& directory);
  static Result<> check_may_remove(Inode& directory);
  // A name of it may go or move; it may have one more (of a directory: one more subdirectory).
  static Result<> check_may_lose_name(Inode& inode);
  static Result<> check_may_get_name(Inode& inode);
  void change_entries(Inode& directory, std::int64_t entries, std::int64_t subdirectories,
                      const Timestamp& time);
  // One name less (a directory: the only one).
  void drop_name(Inode& inode, const Timestamp& time);
  void remember_name(Inode& inode, InodeNumber parent, std::string_view name);
  void note_namespace_change();
  // A name's row, and the inode that it means where that is asked for. It is read before the
  // namespace lock is taken, so that nobody waits there for the disk, and again under the lock only
  // if the directory's entries changed in between. To be declared before the lock: inodes are not
  // let go of under it.
  struct FoundName {
    std::optional<metadata::DentryRow> row;
    InodeRef inode;
    bool with_inode = false;
    bool is_read = false;
    std::uint64_t entries_version = 0;
    InodeRef outdated;
  };
  FoundName look_for(Inode& directory, std::string_view name, bool with_inode);
  Result<> make_current(FoundName& found, Inode& directory, std::string_view name);
  Result<> read_name(FoundName& found, InodeNumber directory, std::string_view name);
  Result<> remove_entry(InodeNumber parent, std::string_view name, bool directory);
  struct Moving;
  Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                  std::string_view new_name, RenameMode mode, const Caller* whiteout_owner);
  Result<> find_moving(Moving& moving, std::string_view name, std::string_view new_name,
                       RenameMode mode);
  Result<> check_move(const Moving& moving, RenameMode mode);
  Result<> check_not_below(InodeNumber directory, InodeNumber ancestor);
  void move(Moving& moving, std::string_view name, std::string_view new_name, RenameMode mode);
  void leave_whiteout(Moving& moving, std::string_view name);
  void set_parent(Inode& inode, InodeNumber parent, std::string_view name, const Timestamp& time);
  // Names wait for the data of files that they move, and all changes with them: so on a full disk a
  // file whose data is not on disk yet keeps its name. no_space.
  Result<> check_data_fits(const Inode& inode);
  bool is_moved(InodeNumber inode);  // in this group
  void note_move(const Inode& inode);

  // attributes.cpp, xattrs.cpp. locked is inode's lock.
  Attributes attributes_of(Inode& inode);
  void mark_dirty(Inode& inode, Inode::Locked& locked);
  void note_access(Inode& inode);
  Result<> change_locked(Inode& inode, Inode::Locked& locked, const AttributeChange& change);
  // The bits and the capability that a change by somebody else takes from a program.
  static void clear_set_id(metadata::InodeRow& row, ClearSetId which);
  Result<> drop_capability(Inode& inode, Inode::Locked& locked);
  Result<> apply_mode_to_acl(Inode& inode, Inode::Locked& locked, std::uint32_t mode);
  Result<Acl> default_acl_of(Inode& directory);
  Result<bool> has_xattrs(Inode& inode);
  Result<> store_xattr(Inode& inode, Inode::Locked& locked, std::string_view name,
                       std::string_view value, XattrMode mode);
  static void change_codec(Inode::Locked& locked, const std::optional<metadata::InodeCodec>& codec);
  static Result<> set_codec_attribute(Inode::Locked& locked, std::string_view value,
                                      XattrMode mode);
  Result<> set_acl(Inode& inode, Inode::Locked& locked, std::string_view name,
                   std::string_view value, XattrMode mode);
  // False when there is none of that name.
  Result<bool> delete_xattr(Inode& inode, Inode::Locked& locked, std::string_view name);

  // data.cpp.
  std::shared_ptr<FileData> data_of(Inode& inode);
  // May so much more data be taken? On a full disk this waits for a moment for what a commit gives
  // back. no_space. Under no lock.
  Result<Ballast::Admission> admit_data(std::uint64_t bytes);
  Result<Ballast::Admission> admit_at_once(std::uint64_t bytes);
  Result<Ballast::Admission> admit_after_commit(std::uint64_t bytes);
  Result<Ballast::Admission> admit_write(InodeNumber number, std::uint64_t bytes, WriteFlags flags);
  // Taken, and not on the disk yet. Whoever asks for the disk's room as well asks afterwards.
  std::uint64_t unwritten_bytes() const;
  // Nothing is set aside, but what can never fit is refused.
  Result<> admit_allocation(std::uint64_t bytes);
  Result<> begin_change(Inode& inode, WriteFlags flags);
  static Result<> check_append_only(FileData& data, std::uint64_t offset, ByteView bytes);
  // A hole, or as much data as the buffer takes; size 0 at the end of from.
  struct CopiedPiece {
    std::uint64_t size = 0;
    bool is_hole = false;
  };
  static Result<CopiedPiece> copy_piece(FileData& from, std::uint64_t from_offset, FileData& to,
                                        std::uint64_t to_offset, std::uint64_t length,
                                        MutableByteView buffer);
  // Puts the file's path in front of verdicts about what is stored.
  Error with_path(Error error, InodeNumber inode);

  // orphans.cpp.
  Result<> find_orphans();
  bool erase_orphan(InodeRef& inode, std::size_t row_count_max);
  Result<bool> erase_rows(Inode& inode, bool may_have_chunks, std::size_t row_count_max);

  const std::shared_ptr<metadata::BackingDirectory> directory_;
  const VolumeOptions options_;
  const std::unique_ptr<engine::Engine> engine_;
  const std::unique_ptr<metadata::Database> database_;
  const std::unique_ptr<SegmentStore> store_;
  NameTable names_;
  XattrTable xattrs_;
  Ballast ballast_;
  Committer committer_;
  FileCache cache_;
  InodeTable inodes_;
  ListAhead list_ahead_;
  DirectoryOffsets directory_offsets_;
  OrphanReaper reaper_;
  Compactor compactor_;
  Checkpointer checkpointer_;
  BackupHolds backups_;
  // Room may come until the first; nobody begins to wait for it before the second.
  std::atomic<std::chrono::steady_clock::time_point> freeing_until_{};
  std::atomic<std::chrono::steady_clock::time_point> next_freeing_{};
  InodeRef root_;
  NamespaceLock namespace_lock_;

  // Numbers from next_inode_ up to inode_limit_ are free; the database's row names the limit, so a
  // crash loses numbers but never hands one out twice. The limit changes in stage() alone.
  std::atomic<std::uint64_t> next_inode_;
  std::atomic<std::uint64_t> inode_limit_;
  std::atomic<std::int64_t> inode_count_;
  std::atomic<std::int64_t> data_bytes_;  // as staged
  std::uint64_t staged_inode_count_;      // as the rows say; these three: stage() alone
  std::uint64_t staged_data_bytes_;
  std::uint64_t staged_next_inode_;
  std::atomic<bool> closing_{false};
  bool closed_ = false;

  // Groups in the order in which stage() fills them. durable_group_ may lag behind.
  std::atomic<std::uint64_t> open_group_{1};
  std::atomic<std::uint64_t> durable_group_{0};
  std::atomic<std::uint64_t> namespace_group_{0};  // the last that names changed in

  std::mutex moves_mutex_;                      // guards these three
  std::map<InodeNumber, std::uint64_t> moves_;  // files given a name in this group; when
  std::uint64_t move_count_ = 0;
  Result<> file_error_ = {};  // of the last flush of everything

  FileFailures flush_failures_;  // as of each file's last flush; commit thread only

  std::timed_mutex reclaim_mutex_;  // one commit at a time for the sake of space
  std::chrono::steady_clock::time_point next_reclaim_{};

  std::mutex kernel_cache_mutex_;
  KernelCache* kernel_cache_ = nullptr;
  std::atomic<bool> has_kernel_cache_{false};
};

}  // namespace nacre::fs
