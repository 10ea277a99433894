// SPDX-License-Identifier: Apache-2.0
// The requests that libfuse decodes, answered from the volume. This is only a translation: each
// handler turns numbers and names into a call of fs::Volume, and its Result into a reply.
//
// Nothing depends on OPEN, RELEASE or FLUSH. They are answered with ENOSYS, so the kernel stops
// sending them, and every request names its file by inode. The kernel caches names and attributes
// for long, since no other process changes them. Changes behind the kernel's back (set-id bits
// dropped, inode flags, refused pages) are announced through KernelNotifier.
//
// There are no lock operations, so the kernel keeps flock, fcntl and OFD locks by itself.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "fs/control/request_metrics.h"
#include "fs/fuse/capabilities.h"
#include "fs/fuse/errno.h"
#include "fs/fuse/fuse_library.h"
#include "fs/fuse/kept_forgets.h"
#include "fs/fuse/kernel_notifier.h"
#include "fs/fuse/known_inodes.h"
#include "fs/fuse/listings.h"
#include "fs/fuse/protocol.h"
#include "fs/fuse/refused_pages.h"
#include "fs/fuse/request_gate.h"
#include "fs/fuse/transport.h"
#include "fs/fuse/write_gate.h"
#include "fs/fuse/written_files.h"
#include "fs/space/write_pacer.h"
#include "fs/volume/volume.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class Dispatcher;

inline constexpr std::uint32_t cache_seconds = 3600;
inline constexpr double cache_timeout = cache_seconds;
// As good as for ever: if attributes are known, only a writer's question names an open file
// (write_gate.h).
inline constexpr std::uint32_t attributes_seconds = 365 * 24 * 3600;
inline constexpr double attributes_timeout = attributes_seconds;

// Replies that other threads will send. The session must not end before they are sent.
class PendingReplies {
 public:
  void add();
  void done();
  void wait_for_none();

 private:
  Mutex mutex_;
  ConditionVariable none_;
  std::uint64_t count_ NACRE_GUARDED_BY(mutex_) = 0;
};

// The owners and permission bits that are shown in place of the stored ones (uid=, gid=, umask=).
struct OwnerView {
  std::optional<std::uint32_t> uid, gid;
  std::uint32_t hidden_bits = 0;  // of the permissions

  // If another owner is shown, set-id bits are hidden: they would lend the rights of a user for
  // whom they were never set.
  Attributes apply(Attributes attributes) const;
  // Whether set-id bits are hidden. A program that changes such a file acts as a user for whom its
  // bits were never meant.
  bool hides_set_id() const { return uid || gid; }
};

// The object that handlers find behind libfuse's user data.
struct Context {
  static constexpr std::uint32_t none_untold = UINT32_MAX;

  // While the gate is closed they may be null, and change. A user of them holds a pass.
  Volume* volume;
  WritePacer* pacer;
  bool no_xattr = false;    // extended attributes do not exist here
  bool no_handles = false;  // the kernel opens no file by handle
  bool sync_names = false;  // changes of names are durable before they are answered
  OwnerView owners = {};
  std::uint32_t block_size_bytes = 4096;  // as in ServedVolume
  bool extended_setxattr = false;         // the kernel sends SETXATTR with setxattr_flags
  std::uint32_t data_size_bytes_max = protocol::data_size_bytes_max;  // of one request
  Transport* transport = nullptr;
  KernelNotifier* kernel = nullptr;
  // A separate thread: a stat waits for the pages of its file, and for nothing else.
  KernelNotifier* looker = nullptr;
  Dispatcher* dispatcher = nullptr;
  KnownInodes* known = nullptr;  // null: they are not needed
  FaultLog faults;
  Listings listings;
  RefusedPages refused_pages;
  WriteGate write_gate;
  WrittenFiles written_files;
  bool can_forget_blocks = false;  // they alone, without the other attributes
  std::atomic<std::uint32_t> untold_refusal{none_untold};  // an ErrorCode
  PendingReplies pending;
  RequestGate gate;
  KeptForgets kept_forgets;
};

// The table for libfuse. Each file operations_* adds its own handlers.
fuse_lowlevel_ops make_operations();
void add_name_operations(fuse_lowlevel_ops& operations);
void add_directory_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);
void add_xattr_operations(fuse_lowlevel_ops& operations);
void add_data_operations(fuse_lowlevel_ops& operations);

Context& context_of(fuse_req_t request);
Caller caller_of(fuse_req_t request);
Requester requester_of(fuse_req_t request);
// The value of st_blksize.
std::uint32_t block_size_of(const Context& context, const Attributes& attributes);
struct stat to_stat(const Context& context, const Attributes& attributes);
fuse_entry_param to_entry(Context& context, const Attributes& attributes);
// Notes that the kernel is about to learn of an inode.
inline void note_known(Context& context, metadata::InodeNumber inode) noexcept {
  if (context.known != nullptr) context.known->add(inode);
}
// Takes lookups of the inode back. FORGET has no answer, so a failure cannot be reported.
void forget(Context& context, fuse_ino_t inode, std::uint64_t lookups) noexcept;
// Answers with an entry, whose lookup the volume has counted. If the kernel does not take the
// answer, the lookup is taken back.
void reply_entry(Context& context, fuse_req_t request, const Attributes& attributes);
// Answers with the error's errno, and logs a fault.
void reply_error(Context& context, fuse_req_t request, std::string_view name, fuse_ino_t inode,
                 const Error& error) noexcept;
// Calls answer for a writer whose bytes were taken. It is called at once or, if compaction is far
// behind, later on any thread. The writer writes nothing until then. answer does not throw.
template <typename Answer>
void answer_writer(Context& context, metadata::InodeNumber inode, std::uint64_t written_bytes,
                   Answer answer) {
  if (context.pacer->may_go_on(written_bytes)) return answer();
  std::function<void()> go_on;
  try {
    go_on = [&context, answer, mark = RequestScope::current()] {
      const RequestScope scope(mark);
      answer();
      context.pending.done();
    };
  } catch (const std::bad_alloc&) {
    return answer();
  }
  context.pending.add();
  context.pacer->hold(inode, written_bytes, std::move(go_on));
}
// With sync_names, waits until the directory's names are durable.
Result<> settle_names(Context& context, fuse_ino_t directory);

// Runs body(context), which returns Result<>. If it returns no error, it has answered the request
// as its last act. Errors and exceptions become the answer.
template <typename Body>
void serve(fuse_req_t request, std::string_view name, fuse_ino_t inode, Body body) noexcept {
  Context& context = context_of(request);
  try {
    if (Result<> result = body(context); !result) {
      reply_error(context, request, name, inode, result.error());
    }
  } catch (const std::bad_alloc&) {
    reply_error(context, request, name, inode, Error{ErrorCode::out_of_memory});
  } catch (const std::exception& exception) {
    reply_error(context, request, name, inode, Error{ErrorCode::io, exception.what()});
  } catch (...) {
    reply_error(context, request, name, inode, Error{ErrorCode::io, "unknown exception"});
  }
}

}  // namespace nacre::fs
