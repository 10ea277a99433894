// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/payload.h"

#include <algorithm>
#include <utility>

#include "gpu_engine/base/check.h"

namespace nacre::engine {
namespace {

constexpr std::size_t key_arena_size_bytes_min = 256;

}  // namespace

std::uint32_t Payload::add_key(CipherSuite suite, ByteView key) {
  return add_key(KeyUse{.kind = KeyKind::suite, .suite = suite}, key);
}

std::uint32_t Payload::add_key(BlockCipher cipher, CipherMode mode, ByteView key) {
  return add_key(KeyUse{.kind = KeyKind::block_cipher, .cipher = cipher, .mode = mode}, key);
}

std::uint32_t Payload::add_rsa_public_key(ByteView der) {
  return add_key(KeyUse{.kind = KeyKind::rsa_public}, der);
}

std::uint32_t Payload::add_rsa_private_key(ByteView der) {
  return add_key(KeyUse{.kind = KeyKind::rsa_private}, der);
}

std::uint32_t Payload::add_key(const KeyUse& use, ByteView key) {
  // From the back: the messages of one key usually follow each other.
  for (std::size_t i = key_table.size(); i-- > 0;) {
    const Key& known = key_table[i];
    if (known.use == use && equal_constant_time(keys.view().subspan(known.offset, known.size), key))
      return static_cast<std::uint32_t>(i);
  }
  if (keys.size() - keys_used < key.size()) {
    SecretBytes grown(
        std::max({2 * keys.size(), keys_used + key.size(), key_arena_size_bytes_min}));
    std::copy_n(keys.view().begin(), keys_used, grown.mutable_view().begin());
    keys = std::move(grown);
  }
  std::copy(key.begin(), key.end(),
            keys.mutable_view().begin() + static_cast<std::ptrdiff_t>(keys_used));
  key_table.push_back({.use = use,
                       .offset = static_cast<std::uint32_t>(keys_used),
                       .size = static_cast<std::uint32_t>(key.size())});
  keys_used += key.size();
  return static_cast<std::uint32_t>(key_table.size() - 1);
}

std::size_t Payload::add(const Message& message) {
  results.resize(messages.size() + 1);
  messages.push_back(message);
  return messages.size() - 1;
}

void Payload::clear() {
  messages.clear();
  results.clear();
  key_table.clear();
  wipe(keys.mutable_view().first(keys_used));
  keys_used = 0;
}

void Payload::check_bounds() const {
  for (const Message& message : messages) {
    NACRE_CHECK(message.input_offset <= input_size &&
                    message.input_size <= input_size - message.input_offset,
                "a message's input of {} bytes at {} leaves an arena of {}", message.input_size,
                message.input_offset, input_size);
    NACRE_CHECK(message.output_offset <= output_size &&
                    message.output_capacity <= output_size - message.output_offset,
                "a message's output of {} bytes at {} leaves an arena of {}",
                message.output_capacity, message.output_offset, output_size);
  }
}

}  // namespace nacre::engine
