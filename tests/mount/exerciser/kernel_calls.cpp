// SPDX-License-Identifier: Apache-2.0
// AIO by its system calls, io_uring by liburing.
#include "tests/mount/exerciser/kernel_calls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace nacre::tests {

namespace {

// The state of the pieces under way is unknown, so their buffers must not be freed. That leaves
// only the end of the process.
[[noreturn]] void give_up(const char* call, int error) {
  fmt::print(stderr, "{}: {}\n", call, std::strerror(error));
  std::abort();
}

ssize_t by_call(const Transfer& piece) {
  const ssize_t done =
      piece.writes ? ::pwrite(piece.file, piece.bytes.data(), piece.bytes.size(), piece.offset)
                   : ::pread(piece.file, piece.bytes.data(), piece.bytes.size(), piece.offset);
  return done < 0 ? -errno : done;
}

}  // namespace

KernelCalls::KernelCalls() {
  if (::syscall(SYS_io_setup, piece_count_max, &context_) != 0) {
    why_no_aio_ = fmt::format("io_setup: {}", std::strerror(errno));
  }
  if (const int error = ::io_uring_queue_init(piece_count_max, &ring_, 0); error != 0) {
    why_no_uring_ = fmt::format("io_uring_setup: {}", std::strerror(-error));
  }
}

KernelCalls::~KernelCalls() {
  if (why_no_aio_.empty()) ::syscall(SYS_io_destroy, context_);
  if (why_no_uring_.empty()) ::io_uring_queue_exit(&ring_);
}

std::vector<ssize_t> KernelCalls::transfer(Channel channel, std::span<const Transfer> pieces) {
  if (is_aio(channel)) return by_aio(pieces);
  if (is_uring(channel)) return by_uring(pieces);
  std::vector<ssize_t> results;
  for (const Transfer& piece : pieces)
    results.push_back(by_call(piece));
  return results;
}

std::vector<ssize_t> KernelCalls::by_aio(std::span<const Transfer> pieces) {
  std::array<iocb, piece_count_max> blocks{};
  std::array<iocb*, piece_count_max> places{};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    iocb& block = blocks[i];
    block.aio_data = i;
    block.aio_lio_opcode = static_cast<__u16>(pieces[i].writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD);
    block.aio_fildes = static_cast<__u32>(pieces[i].file);
    block.aio_buf = reinterpret_cast<std::uintptr_t>(pieces[i].bytes.data());
    block.aio_nbytes = pieces[i].bytes.size();
    block.aio_offset = pieces[i].offset;
    places[i] = &block;
  }
  std::vector<ssize_t> results(pieces.size());
  std::size_t submitted = 0, under_way = 0;
  while (submitted < pieces.size()) {
    const long count =
        ::syscall(SYS_io_submit, context_, pieces.size() - submitted, places.data() + submitted);
    if (count > 0) {
      submitted += static_cast<std::size_t>(count);
      under_way += static_cast<std::size_t>(count);
    } else if (count < 0 && errno != EINTR) {
      results[submitted++] = -errno;  // of the first one; the others are tried
    }
  }
  while (under_way > 0) {
    std::array<io_event, piece_count_max> events{};
    const long count =
        ::syscall(SYS_io_getevents, context_, 1, piece_count_max, events.data(), nullptr);
    if (count < 0 && errno != EINTR) give_up("io_getevents", errno);
    for (long i = 0; i < count; ++i) {
      const io_event& event = events[static_cast<std::size_t>(i)];
      results[event.data] = static_cast<ssize_t>(event.res);
      --under_way;
    }
  }
  return results;
}

std::vector<ssize_t> KernelCalls::by_uring(std::span<const Transfer> pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Transfer& piece = pieces[i];
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    const auto size = static_cast<unsigned>(piece.bytes.size());
    const auto offset = static_cast<std::uint64_t>(piece.offset);
    if (piece.writes) {
      ::io_uring_prep_write(entry, piece.file, piece.bytes.data(), size, offset);
    } else {
      ::io_uring_prep_read(entry, piece.file, piece.bytes.data(), size, offset);
    }
    ::io_uring_sqe_set_data64(entry, i);
  }
  std::size_t submitted = 0;
  while (submitted < pieces.size()) {
    const int count = ::io_uring_submit(&ring_);
    if (count < 0 && count != -EINTR && count != -EAGAIN) give_up("io_uring_enter", -count);
    if (count > 0) submitted += static_cast<std::size_t>(count);
  }
  std::vector<ssize_t> results(pieces.size());
  for (std::size_t done = 0; done < pieces.size();) {
    io_uring_cqe* entry = nullptr;
    const int error = ::io_uring_wait_cqe(&ring_, &entry);
    if (error == -EINTR) continue;
    if (error != 0) give_up("io_uring_enter", -error);
    results[::io_uring_cqe_get_data64(entry)] = entry->res;
    ::io_uring_cqe_seen(&ring_, entry);
    ++done;
  }
  return results;
}

}  // namespace nacre::tests
