// SPDX-License-Identifier: Apache-2.0
// Chooses the function that runs a batch.
#include "gpu_engine/cuda/batch_run.h"

namespace nacre::engine::cuda {

Result<> BatchRun::launch(const std::function<Result<>()>& kernels) const {
  NACRE_TRY(kernels());
  if (device_seconds == nullptr) return {};
  NACRE_TRY(slot.wait());
  NACRE_ASSIGN(Stopwatch watch, Stopwatch::start(slot.stream()));
  for (unsigned i = 0; i < repetitions; ++i)
    NACRE_TRY(kernels());
  NACRE_ASSIGN(const double seconds, watch.stop(slot.stream()));
  *device_seconds = seconds / repetitions;
  return {};
}

Result<> run_batch(const BatchRun& run) {
  run.slot.begin();
  switch (run.batch.kind.operation) {
    case Operation::seal:
      return run_seal_batch(run);
    case Operation::unseal:
      return run_unseal_batch(run);
    case Operation::reseal:
      return run_reseal_batch(run);
    case Operation::compress:
      return run_compress_batch(run);
    case Operation::decompress:
      return run_decompress_batch(run);
    case Operation::checksum:
      return run_checksum_batch(run);
    case Operation::encrypt:
    case Operation::decrypt:
      return run.batch.kind.form == KeyForm::block_cipher ? run_cipher_batch(run)
                                                          : run_suite_batch(run);
    case Operation::rsa_public:
    case Operation::rsa_private:
      return run_rsa_batch(run);
    case Operation::rsa_generate:
      return run_rsa_generate_batch(run);
  }
  return fail(ErrorCode::unsupported, "devices do not run this operation");
}

}  // namespace nacre::engine::cuda
