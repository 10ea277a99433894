// SPDX-License-Identifier: Apache-2.0
// OpenSSL wipes the numbers of keys when it frees them, but not the memory that it read them from.
#pragma once

namespace nacre::engine {

// From now on OpenSSL wipes all memory that it frees. Call this once, before any other function of
// OpenSSL; false, without effect, when that is too late.
bool wipe_what_openssl_frees();

}  // namespace nacre::engine
