// SPDX-License-Identifier: Apache-2.0
// Published vectors of SHA-256 and HMAC-SHA256, for tests of every implementation.
#pragma once

#include <gtest/gtest.h>

#include "tests/gpu_engine/response_file.h"

namespace nacre::engine {

// FIPS 180-4: NIST's messages, whose digests are MD.
inline std::vector<ResponseCase> sha256_vectors() {
  const std::vector<ResponseCase> cases = read_response_file("sha256_nist.rsp", "Msg");
  EXPECT_EQ(cases.size(), 13u);
  return cases;
}

// RFC 4231, all of section 4, and NIST CAVP: Key, Msg, and Mac, which may be cut.
inline std::vector<ResponseCase> hmac_vectors() {
  std::vector<ResponseCase> cases = read_response_file("hmac_sha256_rfc4231.rsp", "Key");
  EXPECT_EQ(cases.size(), 7u);
  const std::vector<ResponseCase> of_nist = read_response_file("hmac_sha256_cavp.rsp", "Key");
  EXPECT_EQ(of_nist.size(), 4u);
  cases.insert(cases.end(), of_nist.begin(), of_nist.end());
  return cases;
}

}  // namespace nacre::engine
