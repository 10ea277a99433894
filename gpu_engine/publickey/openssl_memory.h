// SPDX-License-Identifier: Apache-2.0
// OpenSSL's own memory: it wipes numbers of keys when it frees them, but not what it read them
// from.
#pragma once

namespace nacre::engine {

// From now on whatever OpenSSL frees is wiped first. Once, before anything of OpenSSL is used:
// false, and without effect, when that is too late.
bool wipe_what_openssl_frees();

}  // namespace nacre::engine
