// SPDX-License-Identifier: Apache-2.0
// The device's SHA-256 and HMAC keys, their very code, run on the host: it needs no device.
// cuda_hmac_test.cpp runs the same on one.
#include "tests/gpu_engine/emulated_block.h"

#include "tests/gpu_engine/hash_vectors.h"
#include "tests/gpu_engine/hmac_of_message.cuh"

namespace nacre::engine {
namespace {

std::string hex_of(const cuda::Sha256State& state) {
  Bytes digest(sizeof(state.words));
  cuda::store_digest(state, digest.data());
  return to_hex(digest);
}

TEST(HmacKernelsOracle, sha256_agrees_with_the_nist_vectors) {
  for (const ResponseCase& test : sha256_vectors()) {
    const Bytes message = test["Msg"];
    EXPECT_EQ(hex_of(cuda::sha256_of(cuda::Sha256State(), 0, message.data(),
                                     static_cast<std::uint32_t>(message.size()))),
              test.fields.at("MD"))
        << test.fields.at("Msg");
  }
}

TEST(HmacKernelsOracle, hmac_agrees_with_rfc_4231_and_the_nist_vectors) {
  for (const ResponseCase& test : hmac_vectors()) {
    const Bytes key = test["Key"], message = test["Msg"];
    const std::string& expected = test.fields.at("Mac");
    EXPECT_EQ(hex_of(cuda::hmac_of(key.data(), static_cast<std::uint32_t>(key.size()),
                                   message.data(), static_cast<std::uint32_t>(message.size())))
                  .substr(0, expected.size()),
              expected)
        << test.fields.at("Key");
  }
}

}  // namespace
}  // namespace nacre::engine
