// SPDX-License-Identifier: Apache-2.0
// The volume format that tests make their volumes of: 1, or 2 where NACRE_TEST_FORMAT says so, with
// which ctest runs some programs once more (nacre_gtest(… BOTH_FORMATS)); and their padding, which
// is padme where NACRE_TEST_PADDING says so (nacre_gtest(… PADDED)).
#pragma once

#include <cstdlib>
#include <string_view>

#include "gpu_engine/record/record.h"
#include "metadata/keys/keys.h"

namespace nacre::tests {

inline metadata::EpochFormat format_under_test() {
  const char* const wanted = std::getenv("NACRE_TEST_FORMAT");
  return wanted != nullptr && std::string_view(wanted) == "2" ? metadata::EpochFormat::two
                                                              : metadata::EpochFormat::one;
}

inline engine::Padding padding_under_test() {
  const char* const wanted = std::getenv("NACRE_TEST_PADDING");
  return wanted != nullptr && std::string_view(wanted) == "padme" ? engine::Padding::padme
                                                                  : engine::Padding::none;
}

}  // namespace nacre::tests
