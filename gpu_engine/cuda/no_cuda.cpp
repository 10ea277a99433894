// SPDX-License-Identifier: Apache-2.0
// The backend of a build without a CUDA compiler: create() returns an error.
#include "gpu_engine/cuda/cuda_backend.h"

namespace nacre::engine {

struct CudaBackend::State {};

CudaBackend::CudaBackend(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaBackend::~CudaBackend() = default;

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const CudaOptions& /*options*/,
                                                         Backend& /*cpu*/) {
  return fail(ErrorCode::unsupported, "cuda: none (this build has no CUDA backend)");
}

std::string CudaBackend::name() const {
  return "cuda: none";
}

void CudaBackend::run(Payload& /*payload*/, MessageIndexes /*indexes*/) {}

void CudaBackend::submit_sorted(Payload& /*payload*/, Sorted /*sorted*/,
                                std::function<void()> done) {
  done();
}

void CudaBackend::run_sorted(Payload& /*payload*/, Sorted /*sorted*/) {}

MessageCounts CudaBackend::run_unsorted(Payload& /*payload*/) {
  return {};
}

void CudaBackend::submit_unsorted(Payload& /*payload*/,
                                  std::function<void(const MessageCounts&)> done) {
  done({});
}

void CudaBackend::submit(Payload& /*payload*/, std::vector<std::uint32_t> /*indexes*/,
                         std::function<void()> done) {
  done();
}

void CudaBackend::forget_keys() {}

Result<Arena> CudaBackend::allocate(std::size_t size_bytes) {
  return allocate_host_arena(size_bytes);
}

Result<double> CudaBackend::measure_resident(Payload& /*payload*/, unsigned /*repetitions*/) {
  return fail(ErrorCode::unsupported, "cuda: none");
}

Result<DeviceCeilings> CudaBackend::measure_ceilings() {
  return fail(ErrorCode::unsupported, "cuda: none");
}

double CudaBackend::load_factor() const {
  return 0;
}

CudaStats CudaBackend::stats() const {
  return {};
}

}  // namespace nacre::engine
