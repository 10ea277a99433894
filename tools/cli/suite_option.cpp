// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/suite_option.h"

#include <cstdint>

#include <fmt/format.h>

#include "gpu_engine/codec/codec.h"

namespace nacre::tools {

std::string suite_names(bool legacy) {
  std::string names;
  for (std::uint8_t number = 1; number <= engine::cipher_suite_number_max; ++number) {
    const auto suite = engine::suite_from_number(number);
    if (!suite || engine::is_legacy(*suite) != legacy) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", engine::to_string(*suite));
  }
  return names;
}

std::string codec_names() {
  std::string names;
  for (int number = 0; number <= UINT8_MAX; ++number) {
    const auto codec = static_cast<engine::Codec>(number);
    if (!engine::codec_is_choosable(codec)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", engine::to_string(codec));
  }
  return names;
}

Result<> check_legacy_consent(engine::CipherSuite suite, bool is_allowed) {
  if (is_allowed || !engine::is_legacy(suite)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("--cipher {}: DES and 3DES are legacy ciphers that protect too little; "
                          "use one of {}, or add --allow-legacy-cipher if it must be this one",
                          engine::to_string(suite), suite_names(false)));
}

}  // namespace nacre::tools
