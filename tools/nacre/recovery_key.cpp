// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/recovery_key.h"

#include <cstddef>
#include <string_view>

#include "gpu_engine/kdf/kdf.h"

namespace nacre::tools {

SecretBytes make_recovery_key() {
  constexpr std::string_view symbols = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  static_assert(symbols.size() == 32);
  constexpr std::size_t group_count = 8, group_size = 5;
  SecretBytes random(group_count * group_size);
  engine::random_bytes(random.mutable_view());
  SecretBytes key(group_count * group_size + group_count - 1);
  const MutableByteView out = key.mutable_view();
  std::size_t at = 0;
  for (std::size_t i = 0; i < random.size(); ++i) {
    if (i > 0 && i % group_size == 0) out[at++] = '-';
    out[at++] = static_cast<Byte>(symbols[random.view()[i] % symbols.size()]);
  }
  return key;
}

}  // namespace nacre::tools
