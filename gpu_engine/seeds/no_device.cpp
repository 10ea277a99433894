// SPDX-License-Identifier: Apache-2.0
// device_codes.h in a build without a CUDA compiler: every call is unsupported.
#include "gpu_engine/seeds/device_codes.h"

namespace nacre::engine::seeds {

namespace {
tl::unexpected<Error> no_device() {
  return fail(ErrorCode::unsupported, "this build has no CUDA compiler's code");
}
}  // namespace

Result<CrcOutcome> crc_on_device(CrcWay, ByteView, unsigned) {
  return no_device();
}
Result<CryptTimes> aes_on_device(AesStep, bool, ByteView, ByteView, MutableByteView, unsigned) {
  return no_device();
}
Result<CryptTimes> counter_on_device(TableMemory, TableLayout, ByteView, ByteView, ByteView,
                                     MutableByteView, unsigned) {
  return no_device();
}
Result<ReadTimes> table_reads_on_device(TableMemory, bool, std::uint64_t, unsigned) {
  return no_device();
}
Result<double> strided_reads_on_device(std::uint32_t, std::uint32_t, unsigned) {
  return no_device();
}

}  // namespace nacre::engine::seeds
