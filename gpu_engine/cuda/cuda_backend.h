// SPDX-License-Identifier: Apache-2.0
// The backend on CUDA devices; it uses all that the machine has. Where the build has no CUDA
// compiler, or the machine no device, create() says so and everything runs on the cpu backend.
//
// A payload is cut into batches of one kind. Each device has a ring of slots. A slot's thread takes
// the next batch, copies it in, runs its kernels and copies it out. The cpu backend runs what the
// device does not do (an operation or codec it lacks, a message longer than a slot) and everything
// that the device does not call good, so that verdicts about bad messages are the cpu's, word for
// word. It also runs all messages of a batch that a device failed. A device that is lost gets no
// more batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/plan/device_backend.h"

namespace nacre::engine {

class CudaBackend final : public DeviceBackend {
 public:
  // cpu outlives the backend. Errors: unsupported when there is no CUDA in this build, no driver,
  // or no device (the message is "cuda: none" and the reason); out_of_memory.
  static Result<std::unique_ptr<CudaBackend>> create(const CudaOptions& options, Backend& cpu);
  ~CudaBackend() override;  // completes all submitted jobs; wipes device and page-locked memory

  std::string name() const override;
  void run(Payload& payload, MessageIndexes indexes) override;
  void submit(Payload& payload, std::vector<std::uint32_t> indexes,
              std::function<void()> done) override;

  void submit_sorted(Payload& payload, Sorted sorted, std::function<void()> done) override;
  // A payload of one batch runs on the calling thread, if no other caller's does: waking two
  // threads takes as long as a short batch. The calling thread's current device is then the first
  // one.
  void run_sorted(Payload& payload, Sorted sorted) override;

  // The calling thread takes part, on the same slot.
  MessageCounts run_unsorted(Payload& payload) override;
  void submit_unsorted(Payload& payload, std::function<void(const MessageCounts&)> done) override;

  // Wipes the memory of all slots, each as soon as the batch that it runs has ended, and waits for
  // that.
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
