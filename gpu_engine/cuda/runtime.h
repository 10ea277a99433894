// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime in this project's terms: errors as Results; streams, events and memory as owning
// objects. Results of the runtime's calls go through check(), where tests can also make calls fail.
//
// An object belongs to the device that was current when it was made, and that device must be
// current when it is used or destroyed. Objects are not thread-safe; the functions are. create(),
// start() and the allocating functions return out_of_memory or io.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/payload.h"

namespace nacre::engine::cuda {

// Success, or out_of_memory, or io for every other error. The error's message is `what`, a colon,
// and the runtime's description.
Result<> check(cudaError_t error, const char* what);

// For tests: makes the n-th check() from now on fail (1 = the next). out_of_memory and
// launch_failure are one failure; with lost_device all later calls fail too.
enum class Fault { none, out_of_memory, launch_failure, lost_device };
void inject_fault(Fault fault, unsigned nth_call);

// For tests: called with memory of a device, or page-locked memory of the host, after it was wiped
// and before it is freed or used again.
using WipeHook = void (*)(const Byte* data, std::size_t size_bytes, bool on_device);
void set_wipe_hook(WipeHook hook);  // nullptr: none
// Calls the hook, if there is one.
void show_wiped(const Byte* data, std::size_t size_bytes, bool on_device);

// For tests: how often this process has made calls that take long and block other calls. The
// classes below and synchronize_device() make all of them.
struct RuntimeCounts {
  std::uint64_t device_allocations = 0;  // cudaMalloc
  std::uint64_t device_frees = 0;        // cudaFree
  std::uint64_t pinned_allocations = 0;  // cudaHostRegister
  std::uint64_t pinned_frees = 0;        // cudaHostUnregister
  std::uint64_t device_synchronizations = 0;
  std::uint64_t streams = 0;  // made
  std::uint64_t events = 0;   // made, those of stopwatches too
  bool operator==(const RuntimeCounts&) const = default;
};
RuntimeCounts runtime_counts();

// Waits for all work of the current device. Errors: io.
Result<> synchronize_device(const char* what);

class Stream {
 public:
  static Result<Stream> create();
  Stream() = default;
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// An event without timing. A thread that waits for it sleeps.
class Event {
 public:
  static Result<Event> create();
  Event() = default;
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Measures the device's time between two points of a stream.
class Stopwatch {
 public:
  static Result<Stopwatch> start(cudaStream_t stream);
  Result<double> stop(cudaStream_t stream);  // seconds; waits
  Stopwatch(Stopwatch&& other) noexcept;
  Stopwatch& operator=(Stopwatch&&) = delete;
  ~Stopwatch();

 private:
  Stopwatch() = default;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// Memory of a device. It is wiped before it is freed, if the device still answers.
class DeviceMemory {
 public:
  static Result<DeviceMemory> allocate(std::size_t size_bytes);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();
  Byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A page-locked arena, which all devices can access at its host address.
Result<Arena> allocate_pinned_arena(std::size_t size_bytes);
// Whether devices can access a range at its host address. Only the first and the last byte are
// looked at. False for an empty range.
bool is_pinned(const Byte* data, std::size_t size_bytes);

}  // namespace nacre::engine::cuda
