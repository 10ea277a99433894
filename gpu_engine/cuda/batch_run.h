// SPDX-License-Identifier: Apache-2.0
// Runs a batch on a slot: describe, copy in, launch, copy out, wait. Each family of operations has
// a function that launches its kernels on the slot's stream, waits once for the results, and copies
// the outputs that are good.
#pragma once

#include <functional>
#include <semaphore>
#include <vector>

#include "gpu_engine/cuda/batch.h"
#include "gpu_engine/cuda/slot.h"

namespace nacre::engine::cuda {

// Limits how many kernels write the host's memory at the same time.
using ScatterGate = std::counting_semaphore<2>;

struct BatchRun {
  Slot& slot;
  ScatterGate& scatter_gate;  // of the slot's device
  Payload& payload;
  const Batch& batch;
  bool input_pinned;  // whether devices can reach the memory of the payload's input and output
  bool output_pinned;
  std::vector<std::uint32_t>& refused;  // indexes of messages that the cpu has to judge or run
  // If device_seconds is set, launch() repeats the kernels this many times while all data is on the
  // device, and stores the time of one repetition. Repetitions give the same results.
  unsigned repetitions = 0;
  double* device_seconds = nullptr;

  std::uint32_t count() const { return static_cast<std::uint32_t>(batch.indexes.size()); }
  const Message& message(std::size_t place) const { return payload.messages[batch.indexes[place]]; }
  MessageResult& result(std::size_t place) const { return payload.results[batch.indexes[place]]; }
  void refuse(std::size_t place) const { refused.push_back(batch.indexes[place]); }
  // Calls kernels(), which launches the batch's kernels; again for a measurement.
  Result<> launch(const std::function<Result<>()>& kernels) const;
};

// After success every message of the batch has its result or is in run.refused. An error means that
// the device failed: no result or output is valid, and the caller runs all messages of the batch
// elsewhere. May throw std::bad_alloc; kernels may then still be running. The device must be
// current on the calling thread.
Result<> run_batch(const BatchRun& run);

Result<> run_seal_batch(const BatchRun& run);
Result<> run_unseal_batch(const BatchRun& run);
Result<> run_reseal_batch(const BatchRun& run);
Result<> run_compress_batch(const BatchRun& run);
Result<> run_decompress_batch(const BatchRun& run);
Result<> run_checksum_batch(const BatchRun& run);
Result<> run_cipher_batch(const BatchRun& run);  // bare block ciphers
Result<> run_suite_batch(const BatchRun& run);   // with authentication
Result<> run_rsa_batch(const BatchRun& run);     // public and private operations
Result<> run_rsa_generate_batch(const BatchRun& run);

}  // namespace nacre::engine::cuda
