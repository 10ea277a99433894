// SPDX-License-Identifier: Apache-2.0
// Which thread serves which queue, and the way back to /dev/fuse.
#include "fs/fuse/uring_transport.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/fuse/protocol.h"

namespace nacre::fs {

namespace {

std::uint32_t entry_count(const UringPlan& plan) {
  const auto own = static_cast<std::uint32_t>(plan.own_cpus.size());
  return own * plan.threads_per_cpu + (plan.queue_count - own) * plan.entries_per_foreign_queue;
}

}  // namespace

UringTransport::UringTransport(int fd, unsigned thread_count, std::function<void()> ended,
                               UringPlan plan, bool required, std::shared_ptr<UringSystem> system)
    : fd_(fd),
      plan_(std::move(plan)),
      required_(required),
      system_(std::move(system)),
      device_(fd, thread_count, std::move(ended)),
      queues_(plan_.queue_count),
      table_(entry_count(plan_)) {
  make_threads();
}

UringTransport::~UringTransport() {
  give_up();
}

void UringTransport::make_threads() {
  std::vector<UringQueue*> foreign;
  for (unsigned number = 0; number < plan_.queue_count; ++number) {
    UringQueue& queue = queues_[number];
    queue.number = number;
    const bool own =
        std::find(plan_.own_cpus.begin(), plan_.own_cpus.end(), number) != plan_.own_cpus.end();
    queue.entry_count = own ? plan_.threads_per_cpu : plan_.entries_per_foreign_queue;
    if (!own) foreign.push_back(&queue);
  }
  UringThreadOptions options{.device_fd = fd_, .payload_size_bytes = plan_.payload_size_bytes};
  const auto add = [this](const UringThreadOptions& of_thread) {
    threads_.push_back(std::make_unique<UringThread>(of_thread, table_, *system_));
  };
  for (unsigned round = 0; round < plan_.threads_per_cpu; ++round) {
    for (const unsigned cpu : plan_.own_cpus) {
      options.cpu = cpu;
      options.queues = {&queues_[cpu]};
      add(options);
    }
    if (round > 0 || foreign.empty()) continue;
    UringThreadOptions of_foreign = options;
    of_foreign.cpu.reset();
    of_foreign.queues = foreign;
    of_foreign.entries_per_queue = plan_.entries_per_foreign_queue;
    add(of_foreign);
  }
}

Result<> UringTransport::start(RequestHandler& handler) {
  if (const Result<> started = start_threads(handler); started) {
    ready_ = true;
  } else {
    give_up();
    if (required_) return started;
    spdlog::info("/dev/fuse serves, not io_uring: {}", started.error().message);
  }
  return device_.start(handler);
}

Result<> UringTransport::start_threads(RequestHandler& handler) {
  for (const std::unique_ptr<UringThread>& thread : threads_)
    NACRE_TRY(thread->start(handler));
  return {};
}

void UringTransport::give_up() {
  for (const std::unique_ptr<UringThread>& thread : threads_)
    thread->request_stop();
  for (const std::unique_ptr<UringThread>& thread : threads_)
    thread->join();
  ready_ = false;
}

void UringTransport::initialised(bool over_rings) noexcept {
  if (!ready_) return;
  if (!over_rings) {
    spdlog::info("/dev/fuse serves, not io_uring: the kernel does not offer it");
    give_up();
    return;
  }
  const std::size_t first_count =
      plan_.own_cpus.size() + (plan_.own_cpus.size() < plan_.queue_count ? 1 : 0);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Result<> entered = threads_[i]->enter();
    if (entered) continue;
    if (entered.error().code == ErrorCode::io) return;  // unmounted in the meantime
    if (i >= first_count) {
      // Every queue is served already, so the kernel uses them.
      spdlog::warn("some threads cannot serve io_uring ({}); the others serve all requests",
                   entered.error().message);
      continue;
    }
    UringThread::refuse_rings(fd_);
    spdlog::info("/dev/fuse serves, not io_uring: {}", entered.error().message);
    give_up();
    return;
  }
  serving_ = true;
}

ssize_t UringTransport::send(const iovec* parts, int count) noexcept {
  const auto unique = load_le<fuse_out_header>(static_cast<const Byte*>(parts[0].iov_base)).unique;
  if (!is_uring_token(unique)) return device_.send(parts, count);
  UringEntry* entry = table_.find(uring_id(unique));
  if (entry == nullptr || !entry->put_reply(unique, parts, count)) {
    errno = ENOENT;
    return -1;
  }
  entry->owner().commit(*entry);
  ssize_t size = 0;
  for (int i = 0; i < count; ++i)
    size += static_cast<ssize_t>(parts[i].iov_len);
  return size;
}

bool UringTransport::may_wait_for_requests() noexcept {
  UringThread* thread = UringThread::current();
  return thread == nullptr || thread->may_wait_for_requests();
}

void UringTransport::join() {
  device_.join();
  // The connection has ended, or never began.
  give_up();
}

void UringTransport::stop() {
  give_up();
  device_.stop();
}

std::size_t UringTransport::ring_data_size_bytes() const noexcept {
  return ready_ ? plan_.payload_size_bytes : 0;
}

std::string UringTransport::name() const {
  return serving_ ? "io_uring" : "/dev/fuse";
}

}  // namespace nacre::fs
