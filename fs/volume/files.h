// SPDX-License-Identifier: Apache-2.0
// The content of files: the rules around FileData, which does the work, and when content becomes
// durable. volume.h has the contracts of the calls. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "fs/volume/inode_attributes.h"
#include "fs/volume/volume.h"
#include "fs/volume/volume_core.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class Files : public VolumePart {
 public:
  Files(VolumeCore& core, InodeAttributes& attributes)
      : VolumePart(core), attributes_(attributes) {}

  // The calls of the volume.
  Result<std::size_t> read(InodeNumber inode, std::uint64_t offset, MutableByteView out);
  Result<FileBytes> view(InodeNumber inode, std::uint64_t offset, MutableByteView buffer);
  Result<std::uint64_t> check_write(InodeNumber inode, std::uint64_t bytes,
                                    std::uint64_t kept_bytes);
  Result<> write(InodeNumber inode, std::uint64_t offset, ByteView bytes, WriteFlags flags);
  Result<> allocate(InodeNumber inode, AllocateMode mode, std::uint64_t offset,
                    std::uint64_t length);
  Result<std::uint64_t> seek(InodeNumber inode, std::uint64_t offset, SeekWhat what);
  Result<std::uint64_t> copy_range(InodeNumber from, std::uint64_t from_offset, InodeNumber to,
                                   std::uint64_t to_offset, std::uint64_t length);
  void sync_inode(InodeNumber inode, std::function<void(Result<>)> done);
  Result<> sync_all();
  Result<VolumeSpace> space();

 private:
  Result<InodeRef> acquire_regular(InodeNumber number);
  void note_access(Inode& inode) { attributes_.note_access(inode); }
  // Admits data that takes this many bytes on disk (flush_cost.h). On a full disk it waits for a
  // moment for space that a commit frees. Called under no lock. Error: no_space.
  Result<Ballast::Admission> admit_data(std::uint64_t bytes);
  Result<Ballast::Admission> admit_at_once(std::uint64_t bytes);
  Result<Ballast::Admission> admit_after_commit(std::uint64_t bytes);
  Result<Ballast::Admission> admit_write(InodeNumber number, std::uint64_t bytes, WriteFlags flags);
  // The room for what is taken and not on the disk yet. A caller that also asks for the disk's room
  // asks for that afterwards.
  std::uint64_t unwritten_bytes() const;
  // Admits the allocation of bytes. It reserves nothing, but refuses what can never fit.
  Result<> admit_allocation(std::uint64_t bytes);
  Result<> begin_change(Inode& inode, WriteFlags flags);
  static Result<> check_append_only(FileData& data, std::uint64_t offset, ByteView bytes);
  // A hole, or as much data as the buffer takes. size is 0 at the end of from.
  struct CopiedPiece {
    std::uint64_t size = 0;
    bool is_hole = false;
  };
  static Result<CopiedPiece> copy_piece(FileData& from, std::uint64_t from_offset, FileData& to,
                                        std::uint64_t to_offset, std::uint64_t length,
                                        MutableByteView buffer);
  // Defined in sync.cpp:
  tl::unexpected<Error> sync_error(Error error, InodeNumber inode);

  InodeAttributes& attributes_;
  // One commit at a time is made to free space. Taken under no lock, and held during that commit.
  TimedMutex reclaim_mutex_;
  std::chrono::steady_clock::time_point next_reclaim_ NACRE_GUARDED_BY(reclaim_mutex_){};
};

}  // namespace nacre::fs
