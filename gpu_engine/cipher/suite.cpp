// SPDX-License-Identifier: Apache-2.0
// One table with the names, numbers and sizes of the cipher suites.
#include "gpu_engine/cipher/suite.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace nacre::engine {
namespace {

struct Suite {
  std::string_view name;
  BlockCipher cipher;
  SuiteConstruction construction;
};

// In the order of the suites' numbers, from 1.
constexpr std::array<Suite, cipher_suite_number_max> suites = {{
    {"aes-256-gcm", BlockCipher::aes_256, SuiteConstruction::gcm},
    {"aes-192-gcm", BlockCipher::aes_192, SuiteConstruction::gcm},
    {"aes-128-gcm", BlockCipher::aes_128, SuiteConstruction::gcm},
    {"aes-256-ctr", BlockCipher::aes_256, SuiteConstruction::ctr_hmac},
    {"aes-192-ctr", BlockCipher::aes_192, SuiteConstruction::ctr_hmac},
    {"aes-128-ctr", BlockCipher::aes_128, SuiteConstruction::ctr_hmac},
    {"aes-256-cbc", BlockCipher::aes_256, SuiteConstruction::cbc_hmac},
    {"aes-192-cbc", BlockCipher::aes_192, SuiteConstruction::cbc_hmac},
    {"aes-128-cbc", BlockCipher::aes_128, SuiteConstruction::cbc_hmac},
    {"des-ede3-cbc", BlockCipher::des_ede3, SuiteConstruction::cbc_hmac},
    {"des-cbc", BlockCipher::des, SuiteConstruction::cbc_hmac},
}};

constexpr std::uint64_t session_size_bytes_max_of_64_bit_blocks = 1ull << 30;

// nullptr for a value that is no suite, which a payload may hold.
const Suite* find(CipherSuite suite) {
  const auto number = static_cast<std::size_t>(suite);
  return number >= 1 && number <= suites.size() ? &suites[number - 1] : nullptr;
}

std::string known_names() {
  std::string names;
  for (const Suite& suite : suites)
    names += (names.empty() ? "" : ", ") + std::string(suite.name);
  return names;
}

}  // namespace

std::string_view to_string(CipherSuite suite) {
  const Suite* const found = find(suite);
  return found == nullptr ? "unknown" : found->name;
}

Result<CipherSuite> suite_from_name(std::string_view name) {
  for (std::size_t i = 0; i < suites.size(); ++i) {
    if (suites[i].name == name) return static_cast<CipherSuite>(i + 1);
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("unknown cipher suite \"{}\"; use one of {}", name, known_names()));
}

Result<CipherSuite> suite_from_number(std::uint8_t number) {
  if (find(static_cast<CipherSuite>(number)) != nullptr) return static_cast<CipherSuite>(number);
  return fail(ErrorCode::invalid_argument, fmt::format("unknown cipher suite number {}", number));
}

std::size_t key_size_bytes(CipherSuite suite) {
  const Suite* const found = find(suite);
  if (found == nullptr) return 0;
  const std::size_t size = key_size_bytes(found->cipher);
  switch (found->construction) {
    case SuiteConstruction::gcm:
      return size;
    case SuiteConstruction::ctr_hmac:
      return size + suite_hmac_key_size_bytes;
    case SuiteConstruction::cbc_hmac:
      return 2 * size + suite_hmac_key_size_bytes;
  }
  return 0;
}

std::size_t tag_size_bytes(CipherSuite suite) {
  return construction(suite) == SuiteConstruction::gcm ? tag_size_bytes_min : tag_size_bytes_max;
}

BlockCipher block_cipher(CipherSuite suite) {
  const Suite* const found = find(suite);
  return found == nullptr ? BlockCipher::aes_256 : found->cipher;
}

SuiteConstruction construction(CipherSuite suite) {
  const Suite* const found = find(suite);
  return found == nullptr ? SuiteConstruction::gcm : found->construction;
}

std::size_t plain_unit_bytes(CipherSuite suite) {
  return construction(suite) == SuiteConstruction::cbc_hmac ? block_size_bytes(block_cipher(suite))
                                                            : 1;
}

bool is_legacy(CipherSuite suite) {
  return block_size_bytes(block_cipher(suite)) < block_size_bytes_max;
}

std::uint64_t session_size_bytes_max(CipherSuite suite) {
  return is_legacy(suite) ? session_size_bytes_max_of_64_bit_blocks : UINT64_MAX;
}

}  // namespace nacre::engine
