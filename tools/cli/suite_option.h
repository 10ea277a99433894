// SPDX-License-Identifier: Apache-2.0
// Names of cipher suites and codecs for help texts, and the second option that DES needs.
#pragma once

#include <string>

#include "gpu_engine/cipher/suite.h"

namespace nacre::tools {

// "aes-256-gcm, …", those with 64-bit blocks or those without.
std::string suite_names(bool legacy);
// "none, lz77, …, auto"
std::string codec_names();
// Error: invalid_argument for DES and 3DES without --allow-legacy-cipher.
Result<> check_legacy_consent(engine::CipherSuite suite, bool is_allowed);

}  // namespace nacre::tools
