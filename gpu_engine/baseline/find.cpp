// SPDX-License-Identifier: Apache-2.0
// Which libraries do which task.
#include <algorithm>

#include "gpu_engine/baseline/baseline_parts.h"
#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

std::vector<BaselineLibrary> find_baselines(const BaselineTask& task) {
  BaselineLibraries libraries;
  switch (task.operation) {
    case Operation::compress:
    case Operation::decompress:
      add_codec_baselines(task, libraries);
      add_tiff_baselines(task, libraries);
      break;
    case Operation::checksum:
      add_checksum_baselines(task, libraries);
      break;
    case Operation::encrypt:
    case Operation::decrypt:
      add_ipsec_mb_baselines(task, libraries);
      add_openssl_baselines(task, libraries);
      break;
    case Operation::rsa_public:
    case Operation::rsa_private:
    case Operation::rsa_generate:
      add_rsa_baselines(task, libraries);
      break;
    case Operation::seal:
    case Operation::unseal:
      add_chain_baselines(task, libraries);
      break;
    case Operation::reseal:
      break;
  }
  return libraries;
}

std::size_t baseline_output_size_bound(const BaselineTask& task, std::size_t input_size) {
  if (task.operation == Operation::rsa_generate) return rsa_private_key_size_bound(task.rsa_bits);
  // Covers the worst case of PackBits and LZW, a tag, an RSA modulus, and a record's frame.
  return std::max<std::size_t>(input_size + input_size / 2 + 4096, 4096);
}

}  // namespace nacre::engine
