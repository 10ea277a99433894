// SPDX-License-Identifier: Apache-2.0
// RSA operations of one message on the calling thread. Contracts: Operation in payload.h.
#pragma once

#include <string_view>

#include "gpu_engine/cpu/expanded_key.h"
#include "gpu_engine/payload.h"

namespace nacre::engine {

// Runs rsa_public and rsa_private. A private key does the public operation as well.
MessageResult run_rsa(const ExpandedKey& key, const Message& message, ByteView input,
                      std::string_view label, MutableByteView output);

MessageResult run_rsa_generate(const Message& message, MutableByteView output);

}  // namespace nacre::engine
