// SPDX-License-Identifier: Apache-2.0
// Keys in OpenSSL engines. OpenSSL 3 has deprecated engines, but on Debian 12 they are the only way
// to PKCS#11 tokens: there is no provider for them.
#pragma once

#include <string>

#include "gpu_engine/publickey/openssl_key.h"
#include "gpu_engine/publickey/pin_prompt.h"

namespace nacre::engine {

// name: "ID:KEY", where KEY is a name that the engine ID understands. Null when the engine has no
// key of that name or does not give it out, as after a wrong PIN; not_found when there is no such
// engine; unsupported when OpenSSL was built without engines.
Result<OpensslOwner<EVP_PKEY>> load_engine_key(const std::string& name, PinPrompt& prompt);

}  // namespace nacre::engine
