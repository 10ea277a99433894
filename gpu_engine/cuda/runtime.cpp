// SPDX-License-Identifier: Apache-2.0
// The objects that own CUDA's resources, and the counts of slow calls.
#include "gpu_engine/cuda/runtime.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <utility>

namespace nacre::engine::cuda {
namespace {

std::atomic<Fault> injected_fault = Fault::none;
std::atomic<unsigned> calls_before_fault = 0;
std::atomic<WipeHook> wipe_hook = nullptr;

struct Counters {
  std::atomic<std::uint64_t> device_allocations = 0;
  std::atomic<std::uint64_t> device_frees = 0;
  std::atomic<std::uint64_t> pinned_allocations = 0;
  std::atomic<std::uint64_t> pinned_frees = 0;
  std::atomic<std::uint64_t> device_synchronizations = 0;
  std::atomic<std::uint64_t> streams = 0;
  std::atomic<std::uint64_t> events = 0;
};
Counters counters;

void count(std::atomic<std::uint64_t>& counter) {
  counter.fetch_add(1, std::memory_order_relaxed);
}

// The error that a test wants for a call that has succeeded.
cudaError_t injected_error() {
  const Fault fault = injected_fault.load(std::memory_order_relaxed);
  if (fault == Fault::none) return cudaSuccess;
  unsigned left = calls_before_fault.load();
  while (left > 1) {
    if (calls_before_fault.compare_exchange_weak(left, left - 1)) return cudaSuccess;
  }
  if (fault == Fault::lost_device) return cudaErrorDevicesUnavailable;
  Fault expected = fault;
  if (!injected_fault.compare_exchange_strong(expected, Fault::none)) return cudaSuccess;
  return fault == Fault::out_of_memory ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure;
}

// For calls whose errors do not matter. Clears the error, or the next call would report it.
void ignore(cudaError_t error) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
}

void unregister(Byte* data, std::size_t size) {
  show_wiped(data, size, false);
  count(counters.pinned_frees);
  ignore(cudaHostUnregister(data));
  munmap(data, size);
}

}  // namespace

Result<> check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) error = injected_error();
  if (error == cudaSuccess) return {};
  // An error of one call does not affect the next, unless the device itself is lost.
  static_cast<void>(cudaGetLastError());
  return fail(error == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::io,
              fmt::format("{}: {}", what, cudaGetErrorString(error)));
}

void inject_fault(Fault fault, unsigned nth_call) {
  injected_fault = Fault::none;
  calls_before_fault = nth_call;
  injected_fault = fault;
}

void set_wipe_hook(WipeHook hook) {
  wipe_hook = hook;
}

void show_wiped(const Byte* data, std::size_t size_bytes, bool on_device) {
  if (size_bytes == 0) return;
  if (const WipeHook hook = wipe_hook) hook(data, size_bytes, on_device);
}

RuntimeCounts runtime_counts() {
  return {.device_allocations = counters.device_allocations,
          .device_frees = counters.device_frees,
          .pinned_allocations = counters.pinned_allocations,
          .pinned_frees = counters.pinned_frees,
          .device_synchronizations = counters.device_synchronizations,
          .streams = counters.streams,
          .events = counters.events};
}

Result<> synchronize_device(const char* what) {
  count(counters.device_synchronizations);
  return check(cudaDeviceSynchronize(), what);
}

Result<Stream> Stream::create() {
  Stream stream;
  count(counters.streams);
  NACRE_TRY(check(cudaStreamCreateWithFlags(&stream.stream_, cudaStreamNonBlocking),
                  "making a CUDA stream"));
  return stream;
}

Stream::Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(stream_, other.stream_);
  return *this;
}

Stream::~Stream() {
  if (stream_ != nullptr) ignore(cudaStreamDestroy(stream_));
}

Result<Event> Event::create() {
  Event event;
  count(counters.events);
  NACRE_TRY(
      check(cudaEventCreateWithFlags(&event.event_, cudaEventBlockingSync | cudaEventDisableTiming),
            "making a CUDA event"));
  return event;
}

Event::Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

Event::~Event() {
  if (event_ != nullptr) ignore(cudaEventDestroy(event_));
}

Result<Stopwatch> Stopwatch::start(cudaStream_t stream) {
  Stopwatch watch;
  count(counters.events);
  NACRE_TRY(check(cudaEventCreate(&watch.begin_), "making a CUDA event"));
  count(counters.events);
  NACRE_TRY(check(cudaEventCreate(&watch.end_), "making a CUDA event"));
  NACRE_TRY(check(cudaEventRecord(watch.begin_, stream), "starting a stopwatch"));
  return watch;
}

Result<double> Stopwatch::stop(cudaStream_t stream) {
  float milliseconds = 0;
  NACRE_TRY(check(cudaEventRecord(end_, stream), "stopping a stopwatch"));
  NACRE_TRY(check(cudaEventSynchronize(end_), "waiting for the device"));
  NACRE_TRY(check(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading a stopwatch"));
  return milliseconds / 1e3;
}

Stopwatch::Stopwatch(Stopwatch&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), end_(std::exchange(other.end_, nullptr)) {}

Stopwatch::~Stopwatch() {
  if (begin_ != nullptr) ignore(cudaEventDestroy(begin_));
  if (end_ != nullptr) ignore(cudaEventDestroy(end_));
}

Result<DeviceMemory> DeviceMemory::allocate(std::size_t size_bytes) {
  DeviceMemory memory;
  void* data = nullptr;
  count(counters.device_allocations);
  const cudaError_t error = cudaMalloc(&data, size_bytes);
  memory.data_ = static_cast<Byte*>(data);
  memory.size_ = size_bytes;
  NACRE_TRY(check(error, "allocating device memory"));
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (data_ == nullptr) return;
  ignore(cudaMemset(data_, 0, size_));
  count(counters.device_synchronizations);
  ignore(cudaDeviceSynchronize());
  show_wiped(data_, size_, true);
  count(counters.device_frees);
  ignore(cudaFree(data_));
}

Result<Arena> allocate_pinned_arena(std::size_t size_bytes) {
  NACRE_ASSIGN(Arena pages, allocate_host_arena(size_bytes));
  if (size_bytes == 0) return pages;
  count(counters.pinned_allocations);
  const cudaError_t error =
      cudaHostRegister(pages.data(), size_bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  Arena arena = error == cudaSuccess ? Arena::adopt(std::move(pages), unregister) : Arena();
  NACRE_TRY(check(error, "locking the pages of an arena"));
  return arena;
}

bool is_pinned(const Byte* data, std::size_t size_bytes) {
  const auto is_registered = [](const Byte* at) {
    cudaPointerAttributes attributes = {};
    const bool known = cudaPointerGetAttributes(&attributes, at) == cudaSuccess;
    if (!known) static_cast<void>(cudaGetLastError());
    return known && attributes.type == cudaMemoryTypeHost && attributes.devicePointer == at;
  };
  return size_bytes > 0 && is_registered(data) && is_registered(data + size_bytes - 1);
}

}  // namespace nacre::engine::cuda
