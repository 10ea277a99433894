// SPDX-License-Identifier: Apache-2.0
// The backend on CUDA devices: all that the machine has. Where the build has no CUDA compiler, or
// the machine no device, create() says so and everything runs on the cpu backend.
//
// A payload is cut into batches of one kind; each device has a ring of slots, and a thread a slot
// takes the next batch, copies it in, runs its kernels, copies it out. What the device does not do
// (an operation or codec it lacks, a message longer than a slot) and whatever it does not call
// good, runs on the cpu backend: verdicts about bad messages are the cpu's, word for word. So do
// all messages of a batch that a device failed; a device that is lost gets no more batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/cuda/message_kind.h"
#include "gpu_engine/engine.h"

namespace nacre::engine {

struct CudaOptions {
  unsigned queued_payload_max = 64;
  // Called at most once a device, from one of the backend's threads, when it first fails.
  std::function<void(std::string_view)> warn = {};
};

struct CudaStats {
  std::uint64_t message_count = 0;       // ended well on a device
  std::uint64_t input_bytes = 0;         // of those
  std::uint64_t failed_batch_count = 0;  // ended on the cpu because a device failed
};

class CudaBackend final : public Backend {
 public:
  // cpu outlives the backend. unsupported: no CUDA in this build, no driver, or no device (the
  // message says which); out_of_memory.
  static Result<std::unique_ptr<CudaBackend>> create(const CudaOptions& options, Backend& cpu);
  ~CudaBackend() override;  // ends what was submitted; wipes device and pinned memory

  std::string name() const override;
  void run(Payload& payload, MessageIndexes indexes) override;
  void submit(Payload& payload, std::vector<std::uint32_t> indexes,
              std::function<void()> done) override;

  // As submit(), of messages that have been sorted.
  void submit_sorted(Payload& payload, cuda::Sorted sorted, std::function<void()> done);

  // Page-locked memory that devices read and write without a copy on the host. out_of_memory.
  Result<Arena> allocate(std::size_t size_bytes);
  CudaStats stats() const;
  // How many times its share each device has to take: 1 with all of them, more when some are lost;
  // 0 when all are.
  double load_factor() const;
  // For measurements: seconds that the first device's kernels take for the payload, all of it one
  // batch of one kind, with inputs and outputs in the device's memory. Fills the results.
  // unsupported where the payload is none such; out_of_memory, io.
  Result<double> measure_resident(Payload& payload, unsigned repetitions);
  // Of the first device.
  Result<DeviceCeilings> measure_ceilings();

 private:
  struct State;
  explicit CudaBackend(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace nacre::engine
