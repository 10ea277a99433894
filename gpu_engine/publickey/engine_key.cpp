// SPDX-License-Identifier: Apache-2.0
// The only source that uses functions which OpenSSL 3 has deprecated.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "gpu_engine/publickey/engine_key.h"

#include <openssl/engine.h>

namespace nacre::engine {

#ifdef OPENSSL_NO_ENGINE

Result<OpensslOwner<EVP_PKEY>> load_engine_key(const std::string& name, PinPrompt&) {
  return fail(ErrorCode::unsupported, "engine:" + name + ": this OpenSSL has no engines");
}

#else

Result<OpensslOwner<EVP_PKEY>> load_engine_key(const std::string& name, PinPrompt& prompt) {
  const std::string id = name.substr(0, name.find(':'));
  const std::string key_name = id.size() == name.size() ? "" : name.substr(id.size() + 1);
  ENGINE_load_builtin_engines();
  ENGINE* engine = ENGINE_by_id(id.c_str());
  if (engine == nullptr) {
    return fail(ErrorCode::not_found, "engine:" + name + ": OpenSSL has no engine '" + id +
                                          "': " + take_openssl_reason());
  }
  if (ENGINE_init(engine) != 1) {
    ENGINE_free(engine);
    return fail(ErrorCode::not_found,
                "engine:" + name + ": the engine does not start: " + take_openssl_reason());
  }
  OpensslOwner<EVP_PKEY> key(
      ENGINE_load_private_key(engine, key_name.c_str(), prompt.method(), prompt.method_data()));
  // The key keeps its engine alive.
  ENGINE_finish(engine);
  ENGINE_free(engine);
  return key;
}

#endif

}  // namespace nacre::engine
