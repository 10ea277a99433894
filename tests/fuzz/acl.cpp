// SPDX-License-Identifier: Apache-2.0
// Any bytes as an access control list: they come from every user who may set attributes, and again
// out of the attribute's row. Input: a mode (2 bytes), then the attribute's value.
//
// An accepted list must decode to the same list after encoding, and stay in step with every mode.
#include <cstdlib>
#include <string_view>

#include "fs/volume/acl.h"
#include "gpu_engine/base/bytes.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace nacre;
using namespace nacre::fs;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint32_t mode = load_le<std::uint16_t>(data);
  const std::string_view value(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto acl = decode_acl(value);
  if (!acl) return 0;
  const std::string encoded = encode_acl(*acl);
  require(encoded.size() == value.size());
  const auto again = decode_acl(encoded);
  require(again && *again == *acl);
  if (acl->empty()) return 0;  // none: nothing is kept of it
  require(mode_bits_of(*acl) <= 0777);
  Acl changed = *acl;
  apply_mode(changed, mode);
  require(decode_acl(encode_acl(changed)).has_value());
  require(mode_bits_of(changed) == (mode & 0777));
  const InheritedAcl inherited = inherit_acl(*acl, mode);
  require((inherited.mode & ~mode) == 0);
  require(inherited.access.empty() == is_equivalent_to_mode(*acl));
  if (!inherited.access.empty()) {
    require(mode_bits_of(inherited.access) == (inherited.mode & 0777));
  }
  return 0;
}
