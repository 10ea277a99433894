// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/uring_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace nacre::fs {

namespace {

constexpr unsigned ring_entry_count = 8;
constexpr unsigned completion_count_max = 32;  // taken from the ring at a time
constexpr unsigned cpu_mask_size = 8192;
thread_local UringThread* current_thread = nullptr;

// Whether the connection is gone: unmounted, aborted, or this process is ending.
bool is_end(int error) {
  return error == ENOTCONN || error == ECONNABORTED || error == ECANCELED || error == ENODEV;
}

}  // namespace

int UringSystem::set_up(unsigned entry_count, io_uring& ring, io_uring_params& parameters) {
  return io_uring_queue_init_params(entry_count, &ring, &parameters);
}

int UringSystem::stay_on(unsigned cpu) {
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(cpu_mask_size), [](cpu_set_t* memory) { CPU_FREE(memory); });
  if (!set) return ENOMEM;
  const std::size_t size = CPU_ALLOC_SIZE(cpu_mask_size);
  CPU_ZERO_S(size, set.get());
  CPU_SET_S(cpu, size, set.get());
  return pthread_setaffinity_np(pthread_self(), size, set.get());
}

UringThread::UringThread(UringThreadOptions options, UringTable& table, UringSystem& system)
    : options_(std::move(options)), table_(table), system_(system) {}

UringThread::~UringThread() {
  request_stop();
  join();
  if (event_fd_ >= 0) ::close(event_fd_);
}

Result<> UringThread::start(RequestHandler& handler) {
  event_fd_ = eventfd(0, EFD_CLOEXEC);
  if (event_fd_ < 0) return fail(ErrorCode::io, "cannot make an eventfd");
  try {
    thread_ = std::thread([this, &handler] { run(handler); });
  } catch (const std::system_error&) {
    return fail(ErrorCode::out_of_memory, "no thread to serve a ring");
  }
  return wait_for_report();
}

Result<> UringThread::enter() {
  {
    LockGuard lock(mutex_);
    if (order_ == Order::stop) return fail(ErrorCode::io, "stopped");
    order_ = Order::enter;
  }
  changed_.notify_all();
  return wait_for_report();
}

void UringThread::request_stop() noexcept {
  stopping_ = true;
  {
    LockGuard lock(mutex_);
    order_ = Order::stop;
  }
  changed_.notify_all();
  if (event_fd_ >= 0) wake_up();
}

void UringThread::join() {
  if (thread_.joinable()) thread_.join();
}

void UringThread::report(Result<> outcome) {
  {
    LockGuard lock(mutex_);
    report_ = std::move(outcome);
  }
  changed_.notify_all();
}

Result<> UringThread::wait_for_report() {
  UniqueLock lock(mutex_);
  changed_.wait(lock, [this]() NACRE_REQUIRES(mutex_) { return report_.has_value(); });
  Result<> outcome = std::move(*report_);
  report_.reset();
  return outcome;
}

void UringThread::run(RequestHandler& handler) noexcept {
  pthread_setname_np(pthread_self(), "fuse-uring");
  current_thread = this;
  Result<> ready = set_up();
  const bool usable = ready.has_value();
  report(std::move(ready));
  if (usable) {
    Order order;
    {
      UniqueLock lock(mutex_);
      changed_.wait(lock, [this]() NACRE_REQUIRES(mutex_) { return order_ != Order::none; });
      order = order_;
    }
    if (order == Order::enter) {
      Result<> entered = enter_first_entries();
      const bool serves = entered.has_value();
      report(std::move(entered));
      if (serves) serve(handler);
    }
  }
  if (has_ring_) io_uring_queue_exit(&ring_);
  current_thread = nullptr;
}

Result<> UringThread::set_up() {
  if (options_.cpu) {
    // If it cannot stay, the thread serves from any CPU, only more slowly.
    if (const int error = system_.stay_on(*options_.cpu); error != 0) {
      spdlog::info("a thread of io_uring cannot stay on CPU {} (errno {})", *options_.cpu, error);
    }
  }
  io_uring_params parameters = {};
  parameters.flags = IORING_SETUP_SQE128 | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const int error = system_.set_up(ring_entry_count, ring_, parameters);
  if (error != 0) {
    return fail(ErrorCode::unsupported, fmt::format("a ring cannot be set up (errno {})", -error));
  }
  has_ring_ = true;
  for (UringQueue* queue : options_.queues) {
    for (unsigned i = 0; i < options_.entries_per_queue; ++i) {
      NACRE_ASSIGN(UringEntry * entry, table_.add(*queue, *this, options_.payload_size_bytes));
      entries_.push_back(entry);
    }
  }
  return {};
}

Result<> UringThread::enter_first_entries() {
  for (UringEntry* entry : entries_) {
    if (!enter_entry(*entry)) return fail(ErrorCode::unsupported, "the ring is full");
  }
  // The kernel refuses at once, and accepts with the first request.
  const int submitted = io_uring_submit_and_get_events(&ring_);
  if (submitted < 0) {
    return fail(ErrorCode::unsupported,
                fmt::format("the ring takes no entries (errno {})", -submitted));
  }
  io_uring_cqe* completion = nullptr;
  while (io_uring_peek_cqe(&ring_, &completion) == 0 && completion->res < 0) {
    const int error = -completion->res;
    io_uring_cqe_seen(&ring_, completion);
    return fail(is_end(error) ? ErrorCode::io : ErrorCode::unsupported,
                fmt::format("the kernel refuses an entry of its queue (errno {})", error));
  }
  return {};
}

bool UringThread::enter_entry(UringEntry& entry) noexcept {
  io_uring_sqe* place = next_place();
  if (place == nullptr) return false;
  place->opcode = IORING_OP_URING_CMD;
  place->fd = options_.device_fd;
  place->cmd_op = static_cast<std::uint32_t>(protocol::UringCommandCode::enter_entry);
  place->addr = reinterpret_cast<std::uint64_t>(entry.parts());
  place->len = 2;
  protocol::UringCommand command = {};
  command.queue = static_cast<std::uint16_t>(entry.queue().number);
  system_.before_entering(command);
  std::memcpy(place->cmd, &command, sizeof command);
  io_uring_sqe_set_data(place, &entry);
  ++entry_count_;
  return true;
}

void UringThread::refuse_rings(int device_fd) noexcept {
  io_uring ring = {};
  io_uring_params parameters = {};
  parameters.flags = IORING_SETUP_SQE128;
  if (io_uring_queue_init_params(1, &ring, &parameters) != 0) {
    spdlog::error(
        "the kernel waits for rings of io_uring that cannot be set up: unmount the volume");
    return;
  }
  // An entry of a queue that cannot exist.
  io_uring_sqe* place = io_uring_get_sqe(&ring);
  // This does not happen with an empty ring.
  if (place == nullptr) return;
  std::memset(place, 0, 2 * sizeof *place);
  place->opcode = IORING_OP_URING_CMD;
  place->fd = device_fd;
  place->cmd_op = static_cast<std::uint32_t>(protocol::UringCommandCode::enter_entry);
  protocol::UringCommand command = {};
  command.queue = UINT16_MAX;
  std::memcpy(place->cmd, &command, sizeof command);
  io_uring_submit(&ring);
  io_uring_queue_exit(&ring);
}

io_uring_sqe* UringThread::next_place() noexcept {
  io_uring_sqe* place = io_uring_get_sqe(&ring_);
  if (place == nullptr) {
    io_uring_submit(&ring_);
    place = io_uring_get_sqe(&ring_);
  }
  if (place != nullptr) std::memset(place, 0, 2 * sizeof *place);  // 128 bytes
  return place;
}

void UringThread::serve(RequestHandler& handler) noexcept {
  await_wake_up();
  while (entry_count_ > 0 && !stopping_) {
    const int submitted = io_uring_submit_and_wait(&ring_, 1);
    if (submitted < 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) {
      spdlog::error("waiting for requests over io_uring failed (errno {}): this thread stops",
                    -submitted);
      return;
    }
    io_uring_cqe* completions[completion_count_max];
    const unsigned count = io_uring_peek_batch_cqe(&ring_, completions, completion_count_max);
    std::array<std::pair<UringEntry*, int>, completion_count_max> taken;
    for (unsigned i = 0; i < count; ++i) {
      taken[i] = {static_cast<UringEntry*>(io_uring_cqe_get_data(completions[i])),
                  completions[i]->res};
    }
    io_uring_cq_advance(&ring_, count);
    for (unsigned i = 0; i < count; ++i) {
      const auto [entry, result] = taken[i];
      if (entry == nullptr) {
        wake_up_sent_ = false;
        await_wake_up();
      } else if (result < 0) {
        lose_entry(*entry, -result);
      } else {
        serve_entry(handler, *entry);
      }
    }
    hand_in_answered();
  }
  io_uring_submit(&ring_);
}

void UringThread::lose_entry(UringEntry& entry, int error) noexcept {
  --entry_count_;
  if (!is_end(error)) {
    spdlog::error("the kernel took an entry of its queue {} away (errno {})", entry.queue().number,
                  error);
  }
}

void UringThread::serve_entry(RequestHandler& handler, UringEntry& entry) noexcept {
  const MutableByteView request = entry.take_request();
  if (request.empty()) {
    entry.put_error(EIO);
    hand_in(entry);
    return;
  }
  serving_ = &entry;
  lend_reply_buffer(entry.payload());
  handler.handle(request, RequestSource::ring);
  lend_reply_buffer({});
  serving_ = nullptr;
}

void UringThread::hand_in(UringEntry& entry) noexcept {
  if (entry.waits) {
    entry.waits = false;
    entry.queue().waiting_count.fetch_sub(1);
  }
  io_uring_sqe* place = next_place();
  if (place == nullptr) {
    // Not reached, since submitting empties the ring.
    spdlog::error("the ring does not take a reply");
    return;
  }
  place->opcode = IORING_OP_URING_CMD;
  place->fd = options_.device_fd;
  place->cmd_op = static_cast<std::uint32_t>(protocol::UringCommandCode::commit_and_fetch);
  protocol::UringCommand command = {};
  command.commit_id = entry.commit_id();
  command.queue = static_cast<std::uint16_t>(entry.queue().number);
  std::memcpy(place->cmd, &command, sizeof command);
  io_uring_sqe_set_data(place, &entry);
}

void UringThread::hand_in_answered() noexcept {
  UringEntry* answered = nullptr;
  {
    LockGuard lock(mutex_);
    answered = std::exchange(answered_, nullptr);
  }
  while (answered != nullptr) {
    UringEntry& entry = *answered;
    answered = entry.next_answered;
    hand_in(entry);
  }
}

void UringThread::commit(UringEntry& entry) noexcept {
  if (current_thread == this) {
    hand_in(entry);
    return;
  }
  {
    LockGuard lock(mutex_);
    entry.next_answered = std::exchange(answered_, &entry);
  }
  wake_up();
}

UringThread* UringThread::current() noexcept {
  return current_thread;
}

bool UringThread::may_wait_for_requests() noexcept {
  UringQueue& queue = serving_->queue();
  // At least one entry must go on.
  if (queue.waiting_count.fetch_add(1) + 1 >= queue.entry_count) {
    queue.waiting_count.fetch_sub(1);
    return false;
  }
  serving_->waits = true;
  return true;
}

void UringThread::await_wake_up() noexcept {
  io_uring_sqe* place = next_place();
  if (place == nullptr) return;
  io_uring_prep_read(place, event_fd_, &event_count_, sizeof event_count_, 0);
  io_uring_sqe_set_data(place, nullptr);
}

void UringThread::wake_up() noexcept {
  // One wake-up is enough until the thread has seen it.
  if (wake_up_sent_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_fd_, &one, sizeof one);
}

}  // namespace nacre::fs
