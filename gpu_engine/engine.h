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
#include <vector>

#include "gpu_engine/base/result.h"
#include "gpu_engine/payload.h"

namespace nacre::engine {

enum class EngineChoice : std::uint8_t { automatic, cpu, cuda };

struct EngineOptions {
  EngineChoice choice = EngineChoice::automatic;
  unsigned thread_count = 0;         // cpu workers; 0 = one per core
  unsigned queued_payload_max = 64;  // submit() blocks while this many wait
  // Called on a thread of the engine: once for each device when it first fails and its work goes to
  // the cpu, and once when it is lost. create() calls it, on the caller's thread, when devices
  // cannot be used, or when their costs cannot be measured.
  std::function<void(std::string_view)> warn = {};
  // The file that keeps, from one process to the next, what work costs on this machine's backends.
  // Its folder is made. Empty: create() measures the costs. The file is used only where the choice
  // is automatic and there is a device.
  std::string cost_file = {};
};

struct DeviceStats {
  std::string name;
  int number = 0;  // CUDA's
  bool is_lost = false;
  // The time in which it had at least one batch: copies, kernels, and what the host does for them.
  std::uint64_t busy_ns = 0;
  std::uint64_t input_bytes = 0;  // of messages that ended well there
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
  std::vector<DeviceStats> devices = {};
};

// The measured bandwidth of a CUDA device's connections, in bytes a second: upper limits for its
// figures.
struct DeviceCeilings {
  double host_to_device = 0;
  double device_to_host = 0;
  double both_ways = 0;    // each way, when both are busy
  double device_copy = 0;  // read and written
};

class Engine {
 public:
  // unsupported when the choice names a backend that this build or this machine does not have.
  static Result<std::unique_ptr<Engine>> create(const EngineOptions& options);
  virtual ~Engine() = default;  // waits for submitted payloads

  // Zeroed memory for payloads, the caller's own. Errors: out_of_memory.
  virtual Result<Arena> allocate(std::size_t size_bytes) = 0;
  // The number of plain bytes that a payload should hold if the caller can choose. With fewer bytes
  // the hardware is not busy. With more bytes little is gained.
  virtual std::uint64_t payload_size_bytes() const = 0;

  // Runs the payload and returns when every result is there. Without memory to plan the run, the
  // results of messages that came by Payload::add() are out_of_memory; if other messages have no
  // results, Payload::results is empty. A small payload runs on the calling thread. A large one
  // runs on as many threads as there are workers, and the caller is one of them. Within submit()'s
  // done() everything runs on the cpu.
  virtual void run(Payload& payload) = 0;
  // Returns at once, or blocks while the queue is full. done() is called once, when the results are
  // as run() leaves them: on a worker thread, or on the calling thread when there is no memory for
  // a job. The payload must live until then. done() must not throw. It may submit again, which
  // never blocks on a worker thread.
  virtual void submit(Payload& payload, std::function<void()> done) = 0;

  // For measurements: the seconds that a CUDA device's kernels take for one run of the payload,
  // without the copies to the device and back. All messages are of one kind. Fills the results.
  // unsupported when there is no device, or when the device cannot run such messages.
  virtual Result<double> measure_resident(Payload& payload, unsigned repetitions) = 0;

  // unsupported when there is no device.
  virtual Result<DeviceCeilings> measure_ceilings() = 0;

  virtual EngineStats stats() const = 0;
  // "cpu, 16 threads; cuda: none (why)" where devices were wanted and there are none.
  virtual std::string backend_name() const = 0;
};

}  // namespace nacre::engine
