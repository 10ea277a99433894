// SPDX-License-Identifier: Apache-2.0
// Wiping, constant-time comparison, and the owner of secret bytes.
#include "gpu_engine/base/bytes.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "gpu_engine/base/secret_pool.h"

namespace nacre {

void wipe(MutableByteView bytes) {
  if (!bytes.empty()) explicit_bzero(bytes.data(), bytes.size());
}

bool equal_constant_time(ByteView a, ByteView b) {
  if (a.size() != b.size()) return false;
  // volatile keeps the compiler from leaving the loop at the first difference.
  volatile Byte difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<Byte>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

SecretBytes::SecretBytes(std::size_t size)
    : data_(size == 0 ? nullptr : allocate_secret(size)), size_(size) {}

SecretBytes::SecretBytes(ByteView copy_of) : SecretBytes(copy_of.size()) {
  std::copy(copy_of.begin(), copy_of.end(), data_);
}

SecretBytes::SecretBytes(SecretBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SecretBytes& SecretBytes::operator=(SecretBytes&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

SecretBytes::~SecretBytes() {
  release();
}

void SecretBytes::release() {
  if (data_ != nullptr) free_secret(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

}  // namespace nacre
