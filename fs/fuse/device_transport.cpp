// SPDX-License-Identifier: Apache-2.0
// The threads that read.
#include "fs/fuse/device_transport.h"

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>

#include <spdlog/spdlog.h>

#include "fs/fuse/page_buffer.h"
#include "fs/fuse/protocol.h"

namespace nacre::fs {

namespace {

constexpr std::size_t buffer_alignment_bytes = 4096;

}  // namespace

unsigned default_thread_count() {
  return std::clamp(2 * std::thread::hardware_concurrency(), 4u, 16u);
}

DeviceTransport::DeviceTransport(int fd, unsigned thread_count, std::function<void()> ended)
    : fd_(fd), thread_count_(std::max(1u, thread_count)), ended_(std::move(ended)) {}

DeviceTransport::~DeviceTransport() {
  join();
}

Result<> DeviceTransport::start(RequestHandler& handler) {
  std::vector<PageBuffer> buffers;
  for (unsigned i = 0; i < thread_count_; ++i) {
    NACRE_ASSIGN(PageBuffer buffer,
                 PageBuffer::allocate(buffer_alignment_bytes + protocol::request_size_bytes_max));
    buffers.push_back(std::move(buffer));
  }
  running_ = thread_count_;
  for (unsigned i = 0; i < thread_count_; ++i) {
    try {
      threads_.emplace_back([this, &handler, buffer = std::move(buffers[i])]() mutable {
        pthread_setname_np(pthread_self(), "fuse");
        serve(handler, buffer.view().subspan(buffer_alignment_bytes - protocol::write_data_offset));
        if (running_.fetch_sub(1) == 1) ended_();
      });
    } catch (const std::system_error& error) {
      // Fewer threads serve, too, only more slowly. Without any thread there is no service.
      const unsigned missing = thread_count_ - i;
      if (running_.fetch_sub(missing) == missing && i > 0) ended_();
      if (i == 0) return fail(ErrorCode::out_of_memory, "no thread to serve requests");
      spdlog::warn("only {} of {} threads serve requests: {}", i, thread_count_, error.what());
      break;
    }
  }
  return {};
}

void DeviceTransport::serve(RequestHandler& handler, MutableByteView buffer) noexcept {
  while (!stopping_) {
    const ssize_t size = ::read(fd_, buffer.data(), buffer.size());
    if (size > 0) {
      handler.handle(buffer.first(static_cast<std::size_t>(size)), RequestSource::device);
      continue;
    }
    // ENOENT: the request was interrupted before it was read. EAGAIN, EINTR: try again.
    if (size < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN)) continue;
    // ENODEV: unmounted or aborted.
    if (size < 0 && errno != ENODEV) {
      const int error = errno;
      spdlog::error("reading requests from /dev/fuse failed (errno {}): this thread stops", error);
    }
    return;
  }
}

ssize_t DeviceTransport::send(const iovec* parts, int count) noexcept {
  return ::writev(fd_, parts, count);
}

void DeviceTransport::stop() {
  // A signal with a handler makes read() return. It may come just before read() begins, so it is
  // sent until the threads are gone.
  const int wake_signal = SIGRTMIN + 1;
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(wake_signal, &action, nullptr);
  stopping_ = true;
  while (running_ > 0) {
    for (std::thread& thread : threads_)
      pthread_kill(thread.native_handle(), wake_signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void DeviceTransport::join() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  threads_.clear();
}

}  // namespace nacre::fs
