// SPDX-License-Identifier: Apache-2.0
// The engine: runs payloads on its backends, the processor's cores and CUDA devices.
//
// Usable alone as a library: it knows no file, inode or path. All methods are thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"
#include "gpu_engine/payload.h"

namespace nacre::engine {

enum class EngineChoice : std::uint8_t { automatic, cpu, cuda };

struct EngineOptions {
  EngineChoice choice = EngineChoice::automatic;
  unsigned thread_count = 0;         // cpu workers; 0 = one per core
  unsigned queued_payload_max = 64;  // submit() blocks while this many wait
  // Called on a thread of the engine when a device fails and its work goes to the cpu, at most once
  // a device, and once when a device is lost. create() calls it when devices cannot be used, or
  // when their costs cannot be measured.
  std::function<void(std::string_view)> warn = {};
  // The file that keeps what the backends cost on this machine from one run to the next. Its folder
  // is made. Empty: costs are measured each time. It is used where the choice is automatic and
  // there is a device.
  std::string cost_file = {};
};

struct EngineStats {
  static constexpr std::size_t size_class_count = 42;
  std::uint64_t payload_count = 0;
  std::uint64_t message_count = 0;
  std::uint64_t failed_message_count = 0;
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  // Messages that devices have run, and batches that the cpu had to finish for them.
  std::uint64_t cuda_message_count = 0;
  std::uint64_t cuda_input_bytes = 0;
  std::uint64_t cuda_failed_batch_count = 0;
  // [i]: payloads whose messages have 2^(i-1) to 2^i - 1 input bytes together. The last entry
  // counts all larger ones too.
  std::array<std::uint64_t, size_class_count> payloads_by_size = {};
};

// The most that a CUDA device's connections carry, in bytes a second. Compare a device's figures
// with these.
struct DeviceCeilings {
  double host_to_device = 0;
  double device_to_host = 0;
  double both_ways = 0;    // each way, when both are busy
  double device_copy = 0;  // read and written
};

class Engine {
 public:
  // unsupported when the choice names a backend that this build or machine does not have.
  static Result<std::unique_ptr<Engine>> create(const EngineOptions& options);
  virtual ~Engine() = default;  // waits for submitted payloads

  // Zeroed memory for payloads. Errors: out_of_memory.
  virtual Result<Arena> allocate(std::size_t size_bytes) = 0;
  // The plain bytes that a payload should hold where the caller can choose. With fewer the hardware
  // is not busy; with more little is gained.
  virtual std::uint64_t payload_size_bytes() const = 0;

  // Runs the payload and returns when every result is there. Without memory for the results there
  // are none: check their number first. A small payload runs on the calling thread. A large one
  // runs on as many threads as there are workers, and the caller is one of them. Within done()
  // everything runs on the cpu.
  virtual void run(Payload& payload) = 0;
  // Returns at once, or blocks while the queue is full. done() is called once, on a worker thread,
  // when the results are as run() leaves them; when there is no memory for a job, it is called on
  // the calling thread. The payload must live until then. done() may submit again and never blocks
  // there; it must not throw.
  virtual void submit(Payload& payload, std::function<void()> done) = 0;

  // For measurements: the seconds that a CUDA device's kernels take for the payload, without the
  // copies to the device and back. All its messages are of one kind. Fills the results. unsupported
  // when there is no device, or when the device does not run such messages.
  virtual Result<double> measure_resident(Payload& payload, unsigned repetitions) = 0;

  // unsupported when there is no device.
  virtual Result<DeviceCeilings> measure_ceilings() = 0;

  virtual EngineStats stats() const = 0;
  // "cpu, 16 threads; cuda: none (why)" where devices were wanted and there are none.
  virtual std::string backend_name() const = 0;
};

}  // namespace nacre::engine
