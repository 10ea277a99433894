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

#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/plan/device_backend.h"

namespace nacre::engine {

class CudaBackend final : public DeviceBackend {
 public:
  // cpu outlives the backend. unsupported: no CUDA in this build, no driver, or no device ("cuda:
  // none", and which); out_of_memory.
  static Result<std::unique_ptr<CudaBackend>> create(const CudaOptions& options, Backend& cpu);
  ~CudaBackend() override;  // ends what was submitted; wipes device and pinned memory

  std::string name() const override;
  void run(Payload& payload, MessageIndexes indexes) override;
  void submit(Payload& payload, std::vector<std::uint32_t> indexes,
              std::function<void()> done) override;

  void submit_sorted(Payload& payload, Sorted sorted, std::function<void()> done) override;
  // What is one batch runs on the calling thread, where no other caller's does: waking two threads
  // takes as long as a short batch. That thread's current device is then the first one.
  void run_sorted(Payload& payload, Sorted sorted) override;

  // The calling thread takes part, on the same slot.
  MessageCounts run_unsorted(Payload& payload) override;
  void submit_unsorted(Payload& payload, std::function<void(const MessageCounts&)> done) override;

  // Wipes the memory of all slots, each once the batch that it runs has ended, and waits for that.
  void forget_keys() override;

  Result<Arena> allocate(std::size_t size_bytes) override;
  CudaStats stats() const override;
  double load_factor() const override;
  Result<double> measure_resident(Payload& payload, unsigned repetitions) override;
  Result<DeviceCeilings> measure_ceilings() override;

 private:
  struct State;
  explicit CudaBackend(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace nacre::engine
