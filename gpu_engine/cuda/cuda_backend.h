// SPDX-License-Identifier: Apache-2.0
// The backend on CUDA devices; it uses all devices of the machine. If the build has no CUDA
// compiler or the machine no device, create() returns an error, and the caller uses the cpu backend
// alone.
//
// A payload is cut into batches of one kind. Each device has several slots, each with a thread,
// which takes the next batch, copies it in, runs its kernels and copies it out. The cpu backend
// runs what a device cannot run (an operation or codec that it lacks, a message longer than a
// slot). It also runs every message that a device does not find good, so that all errors have the
// cpu's words, and all messages of a batch at which a device failed. A device that is lost gets no
// more batches.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/plan/device_backend.h"

namespace nacre::engine {

class CudaBackend final : public DeviceBackend {
 public:
  // cpu must outlive the backend. Errors: unsupported when this build has no CUDA, or the machine
  // no driver or no usable device (the message is "cuda: none" and the reason); out_of_memory; io.
  static Result<std::unique_ptr<CudaBackend>> create(const CudaOptions& options, Backend& cpu);
  ~CudaBackend() override;  // completes all submitted jobs, and wipes its memory

  std::string name() const override;
  void run(Payload& payload, MessageIndexes indexes) override;
  void submit(Payload& payload, std::vector<std::uint32_t> indexes,
              std::function<void()> done) override;

  void submit_sorted(Payload& payload, Sorted sorted, std::function<void()> done) override;
  // A payload of one batch runs on the calling thread, unless another caller is using the callers'
  // slot: waking two threads takes as long as a short batch. This makes the first device current on
  // the calling thread.
  void run_sorted(Payload& payload, Sorted sorted) override;

  // The calling thread runs parts too, on the callers' slot.
  MessageCounts run_unsorted(Payload& payload) override;
  void submit_unsorted(Payload& payload, std::function<void(const MessageCounts&)> done) override;

  // Wipes the memory of all slots, each after the batch that it is running has ended. Returns after
  // all are wiped.
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
