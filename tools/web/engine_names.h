// SPDX-License-Identifier: Apache-2.0
// The codecs, cipher suites and devices that this build and this machine have.
#pragma once

#include <string>
#include <vector>

#include "gpu_engine/cipher/suite.h"
#include "gpu_engine/codec/codec.h"

namespace nacre::tools::web {

std::vector<engine::Codec> choosable_codecs();  // automatic last
std::vector<engine::CipherSuite> all_suites();  // legacy ones last

// Why there is no CUDA device to use; empty if there is one. The first call starts the devices,
// which takes up to a second; later ones return the same. Thread-safe.
const std::string& why_no_device();

// The most pairs of keys that one job makes, as nacre crypt keygen has it.
inline constexpr unsigned key_pair_count_max = 100000;

}  // namespace nacre::tools::web
