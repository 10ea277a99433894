// SPDX-License-Identifier: Apache-2.0
// Runs a batch on a slot: describe, copy in, launch, copy out, wait. Each family of operations has
// one function. It is a straight list of launches on the slot's stream, one wait for the results,
// and the copies that the results ask for.
#pragma once

#include <functional>
#include <semaphore>
#include <vector>

#include "gpu_engine/cuda/batch.h"
#include "gpu_engine/cuda/slot.h"

namespace nacre::engine::cuda {

// How many kernels may write the host's memory at a time.
using ScatterGate = std::counting_semaphore<2>;

struct BatchRun {
  Slot& slot;
  ScatterGate& scatter_gate;  // the device's
  Payload& payload;
  const Batch& batch;
  bool input_pinned;  // devices reach the memory of the payload's input and output
  bool output_pinned;
  std::vector<std::uint32_t>& refused;  // messages that the cpu has to judge or run
  // Measures the time of the kernels with everything on the device: they are launched this many
  // times more, and the time of one launch is kept here. A repeated launch gives the same results.
  unsigned repetitions = 0;
  double* device_seconds = nullptr;

  std::uint32_t count() const { return static_cast<std::uint32_t>(batch.indexes.size()); }
  const Message& message(std::size_t place) const { return payload.messages[batch.indexes[place]]; }
  MessageResult& result(std::size_t place) const { return payload.results[batch.indexes[place]]; }
  void refuse(std::size_t place) const { refused.push_back(batch.indexes[place]); }
  // Launches the kernels of the batch.
  Result<> launch(const std::function<Result<>()>& kernels) const;
};

// Afterwards every message of the batch has its result or is among the refused. An error is the
// device's: no output can be relied on, and all messages of the batch run elsewhere. Throws
// std::bad_alloc.
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
