// SPDX-License-Identifier: Apache-2.0
// The kernel takes notifications of an aborted connection, too. Only root, or a process that sees
// fusectl, can abort a connection and keep its descriptor. Any other process answers the
// remaining requests instead.
#include "fs/fuse/connection_end.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "fs/fuse/page_buffer.h"
#include "fs/fuse/protocol.h"
#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

namespace {

constexpr int notify_resend = 7;  // FUSE_NOTIFY_RESEND, since Linux 6.9
constexpr int notify_prune = 9;   // FUSE_NOTIFY_PRUNE, since Linux 6.18
constexpr std::int64_t attributes_alone = -1;

bool notify(int descriptor, int what, const void* body, std::size_t size) {
  fuse_out_header header = {};
  header.len = static_cast<std::uint32_t>(sizeof header + size);
  header.error = what;
  const iovec parts[] = {{&header, sizeof header}, {const_cast<void*>(body), size}};
  return ::writev(descriptor, parts, size == 0 ? 1 : 2) >= 0;
}

// Returns false if there is no such inode.
bool forget_inode(int descriptor, metadata::InodeNumber inode, std::int64_t offset) {
  fuse_notify_inval_inode_out body = {};
  body.ino = inode.value;
  body.off = offset;
  return notify(descriptor, FUSE_NOTIFY_INVAL_INODE, &body, sizeof body);
}

bool is_aborted(int descriptor) {
  pollfd state = {.fd = descriptor, .events = 0, .revents = 0};
  return poll(&state, 1, 0) > 0 && (state.revents & POLLERR) != 0;
}

void abort_by_fusectl(const Connection& connection) {
  const std::string path = "/sys/fs/fuse/connections/" + connection.device_minor + "/abort";
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, "1", 1);
  close(file);
}

// A forced unmount aborts the connection. The open root keeps the mount in use, so the kernel does
// not unmount it as well.
void abort_by_force(const Connection& connection) {
  if (geteuid() != 0) return;
  const int root = open(connection.mount_point.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return;
  struct statx status = {};
  const bool is_it = ::statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &status) == 0 &&
                     status.stx_dev_major == 0 &&
                     std::to_string(status.stx_dev_minor) == connection.device_minor;
  if (is_it) (void)umount2(connection.mount_point.c_str(), MNT_FORCE | UMOUNT_NOFOLLOW);
  close(root);
}

void refuse(int descriptor, ByteView request) {
  if (request.size() < sizeof(fuse_in_header)) return;
  const auto header = load_le<fuse_in_header>(request.data());
  if (header.opcode == FUSE_FORGET || header.opcode == FUSE_BATCH_FORGET ||
      header.opcode == FUSE_INTERRUPT) {
    return;
  }
  fuse_out_header reply = {};
  reply.len = sizeof reply;
  reply.error = -ENOTCONN;
  reply.unique = header.unique;
  [[maybe_unused]] const ssize_t sent = ::write(descriptor, &reply, sizeof reply);
}

// Answers in the daemon's place until make_kernel_forget() is done, which may wait for requests.
void refuse_while_forgetting(int descriptor, const KnownInodes& known) {
  // The kernel sends again the requests that the daemon had read and not answered. Older kernels do
  // not.
  if (!notify(descriptor, notify_resend, nullptr, 0)) return;
  auto buffer = PageBuffer::allocate(protocol::request_size_bytes_max);
  const int done = eventfd(0, EFD_CLOEXEC);
  const int flags = fcntl(descriptor, F_GETFL);
  if (!buffer || done < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0) return;
  std::thread forgetting([&] {
    make_kernel_forget(descriptor, known, Forget::everything);
    eventfd_write(done, 1);
  });
  pollfd waiting[] = {{.fd = descriptor, .events = POLLIN, .revents = 0},
                      {.fd = done, .events = POLLIN, .revents = 0}};
  const MutableByteView memory = buffer->view();
  for (;;) {
    if (poll(waiting, 2, -1) < 0) continue;  // EINTR
    if (waiting[1].revents != 0) break;
    const ssize_t size = ::read(descriptor, memory.data(), memory.size());
    if (size > 0) refuse(descriptor, memory.first(static_cast<std::size_t>(size)));
    if (size < 0 && errno == ENODEV) waiting[0].fd = -1;  // unmounted: no request waits any more
  }
  forgetting.join();
}

}  // namespace

void make_kernel_forget(int fuse_descriptor, const KnownInodes& known, Forget what) {
  // Attributes go first, and the root's before all others: from then on no path is walked and no
  // write() is taken.
  if (!forget_inode(fuse_descriptor, metadata::root_inode, attributes_alone)) return;
  known.for_each(
      [&](metadata::InodeNumber inode) { forget_inode(fuse_descriptor, inode, attributes_alone); });
  if (what == Forget::attributes) return;
  forget_inode(fuse_descriptor, metadata::root_inode, 0);
  known.for_each([&](metadata::InodeNumber inode) { forget_inode(fuse_descriptor, inode, 0); });
}

void drop_unused_inodes(int fuse_descriptor, const KnownInodes& known) {
  // A directory is unused once nothing in it is known. Inodes that were made later lie deeper more
  // often than not, so most of them go in a few rounds.
  constexpr int rounds = 4;
  constexpr std::size_t batch_count = 256;
  std::vector<Byte> body(sizeof(protocol::PruneOut) + batch_count * sizeof(std::uint64_t));
  std::uint32_t count = 0;
  const auto send = [&] {
    store_le(body.data(), protocol::PruneOut{.count = count, .padding = 0, .spare = 0});
    const std::size_t size = sizeof(protocol::PruneOut) + count * sizeof(std::uint64_t);
    const bool is_taken = count == 0 || notify(fuse_descriptor, notify_prune, body.data(), size);
    count = 0;
    return is_taken;
  };
  for (int round = 0; round < rounds; ++round) {
    known.for_each([&](metadata::InodeNumber inode) {
      store_le(body.data() + sizeof(protocol::PruneOut) + count * sizeof(std::uint64_t),
               inode.value);
      if (++count == batch_count) send();
    });
    if (!send()) return;
  }
}

bool abort_connection(const Connection& connection) {
  const int descriptor = connection.fuse_descriptor;
  if (!is_aborted(descriptor)) abort_by_fusectl(connection);
  if (!is_aborted(descriptor)) abort_by_force(connection);
  return is_aborted(descriptor);
}

void end_connection(const Connection& connection, const KnownInodes& known) {
  const int descriptor = connection.fuse_descriptor;
  try {
    if (abort_connection(connection)) {
      make_kernel_forget(descriptor, known, Forget::everything);
    } else if (!connection.over_rings) {
      // With rings, a request may wait for an entry, and then it could not be answered.
      refuse_while_forgetting(descriptor, known);
    }
  } catch (const std::system_error&) {
    // There is no thread. Closing the descriptor aborts the connection all the same.
  }
  close(descriptor);
}

}  // namespace nacre::fs
