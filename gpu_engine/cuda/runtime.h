// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime in this project's terms: errors as Results; streams, events and memory as owning
// objects.
// Every call of the runtime goes through check(), which is also the seam where tests make calls
// fail. Objects belong to the device that was current when they were made. Not thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/payload.h"

namespace nacre::engine::cuda {

// ok, or out_of_memory, or io for every other error. The message is "what: the runtime's words".
Result<> check(cudaError_t error, const char* what);

// What tests inject into the calls from the n-th on (1 = the next): nothing, one call that finds no
// memory, one launch that fails, or a device that is lost with all later calls.
enum class Fault { none, out_of_memory, launch_failure, lost_device };
void inject_fault(Fault fault, unsigned nth_call);

// Called with memory that was wiped (of a device, or page-locked memory of the host), before it is
// freed or used again. For tests.
using WipeHook = void (*)(const Byte* data, std::size_t size_bytes, bool on_device);
void set_wipe_hook(WipeHook hook);  // nullptr: none
// Calls the hook, if there is one.
void show_wiped(const Byte* data, std::size_t size_bytes, bool on_device);

// How often this process has made the calls that take long and make others wait: memory, streams
// and events are made and given back, and whole devices waited for, only by the owners below and
// synchronize_device(). For tests; thread-safe.
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

// Waits for all work that the current device was given. Errors: io.
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

// A thread that waits for it blocks without spinning.
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

// Wiped when freed, if the device still answers.
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

// An arena that all devices reach at its host address.
Result<Arena> allocate_pinned_arena(std::size_t size_bytes);
// Whether the whole range is such memory.
bool is_pinned(const Byte* data, std::size_t size_bytes);

}  // namespace nacre::engine::cuda
