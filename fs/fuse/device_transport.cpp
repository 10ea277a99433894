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
#include <utility>

#include <spdlog/spdlog.h>

#include "fs/fuse/page_buffer.h"
#include "fs/fuse/protocol.h"
#include "gpu_engine/base/wiped_stack.h"

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
  handler_ = &handler;
  NACRE_ASSIGN(auto workers, start_workers());
  const LockGuard lock(mutex_);
  workers_ = std::move(workers);
  return {};
}

Result<DeviceTransport::Workers> DeviceTransport::start_workers() {
  std::vector<PageBuffer> buffers;
  for (unsigned i = 0; i < thread_count_; ++i) {
    NACRE_ASSIGN(PageBuffer buffer,
                 PageBuffer::allocate(buffer_alignment_bytes + protocol::request_size_bytes_max));
    buffers.push_back(std::move(buffer));
  }
  running_ += thread_count_;
  Workers workers;
  for (unsigned i = 0; i < thread_count_; ++i) {
    auto worker = std::make_unique<Worker>();
    try {
      worker->thread = std::thread([this, raw = worker.get(),
                                    buffer = std::move(buffers[i])]() mutable {
        pthread_setname_np(pthread_self(), "fuse");
        wipe_stack();  // of what an ended thread left there
        serve(*raw, buffer.view().subspan(buffer_alignment_bytes - protocol::write_data_offset));
        raw->is_over = true;
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
    workers.push_back(std::move(worker));
  }
  return workers;
}

void DeviceTransport::serve(const Worker& worker, MutableByteView buffer) noexcept {
  while (!stopping_ && !worker.is_retiring) {
    const ssize_t size = ::read(fd_, buffer.data(), buffer.size());
    if (size > 0) {
      handler_->handle(buffer.first(static_cast<std::size_t>(size)), RequestSource::device);
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

void DeviceTransport::wake_until(const Workers& workers, const std::function<bool()>& is_done) {
  // A signal with a handler makes read() return. It may come just before read() begins, so it is
  // sent until it has had its effect.
  const int wake_signal = SIGRTMIN + 1;
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(wake_signal, &action, nullptr);
  while (!is_done()) {
    for (const auto& worker : workers)
      pthread_kill(worker->thread.native_handle(), wake_signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void DeviceTransport::stop() {
  stopping_ = true;
  const LockGuard lock(mutex_);
  wake_until(workers_, [this] { return running_ == 0; });
}

Result<> DeviceTransport::renew_threads() {
  Workers old;
  {
    const LockGuard lock(mutex_);
    if (stopping_ || workers_.empty()) return {};
    NACRE_ASSIGN(auto renewed, start_workers());
    old = std::exchange(workers_, std::move(renewed));
  }
  for (const auto& worker : old)
    worker->is_retiring = true;
  wake_until(old, [&] {
    return std::all_of(old.begin(), old.end(),
                       [](const auto& worker) { return worker->is_over.load(); });
  });
  for (const auto& worker : old)
    worker->thread.join();
  return {};
}

void DeviceTransport::join() {
  Workers workers;
  for (;;) {
    {
      const LockGuard lock(mutex_);
      workers = std::exchange(workers_, {});
    }
    if (workers.empty()) return;
    for (const auto& worker : workers)
      worker->thread.join();
  }
}

}  // namespace nacre::fs
