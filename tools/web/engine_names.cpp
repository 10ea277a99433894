// SPDX-License-Identifier: Apache-2.0
#include "tools/web/engine_names.h"

#include <cstdint>

#include "gpu_engine/engine.h"

namespace nacre::tools::web {

std::vector<engine::Codec> choosable_codecs() {
  std::vector<engine::Codec> codecs;
  for (int number = 0; number <= UINT8_MAX; ++number) {
    const auto codec = static_cast<engine::Codec>(number);
    if (engine::codec_is_choosable(codec)) codecs.push_back(codec);
  }
  return codecs;
}

std::vector<engine::CipherSuite> all_suites() {
  std::vector<engine::CipherSuite> suites;
  for (std::uint8_t number = 1; number <= engine::cipher_suite_number_max; ++number) {
    if (const auto suite = engine::suite_from_number(number)) suites.push_back(*suite);
  }
  return suites;
}

const std::string& why_no_device() {
  static const std::string why = [] {
    const auto engine = engine::Engine::create({.choice = engine::EngineChoice::cuda});
    return engine ? std::string() : engine.error().message;
  }();
  return why;
}

}  // namespace nacre::tools::web
