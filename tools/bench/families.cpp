// SPDX-License-Identifier: Apache-2.0
// The list of families.
#include "tools/bench/families.h"

#include <array>

namespace nacre::tools {

std::span<const BenchFamily> bench_families() {
  static constexpr std::array<BenchFamily, 5> families = {{
      {"codecs", "compress and decompress", bench_codecs},
      {"ciphers", "encrypt and decrypt, block ciphers and suites", bench_ciphers},
      {"checksum", "CRC-32 and CRC-32C", bench_checksums},
      {"rsa", "RSA operations and key generation", bench_rsa},
      {"seal", "whole records: compress, encrypt, checksum, and back", bench_seal},
  }};
  return families;
}

}  // namespace nacre::tools
