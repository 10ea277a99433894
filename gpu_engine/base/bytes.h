// SPDX-License-Identifier: Apache-2.0
// Byte views, little-endian fields, and memory that holds secrets.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace nacre {

using Byte = std::uint8_t;
using ByteView = std::span<const Byte>;  // never owns
using MutableByteView = std::span<Byte>;
using Bytes = std::vector<Byte>;

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

// Load and store a little-endian value at any address, aligned or not.
template <typename T>
requires std::is_trivially_copyable_v<T> T load_le(const Byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
requires std::is_trivially_copyable_v<T>
void store_le(Byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const Byte*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Overwrites with zeros in a way that the compiler may not remove.
void wipe(MutableByteView bytes);

// Compares without a branch on the contents. Sizes are public.
bool equal_constant_time(ByteView a, ByteView b);

// Owns secret bytes: locked in memory where the limit allows, left out of core dumps, wiped when
// freed. Move-only. Not thread-safe for writing.
class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(std::size_t size);
  explicit SecretBytes(ByteView copy_of);
  SecretBytes(SecretBytes&& other) noexcept;
  SecretBytes& operator=(SecretBytes&& other) noexcept;
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;
  ~SecretBytes();

  SecretBytes clone() const { return SecretBytes(view()); }
  ByteView view() const { return {data_, size_}; }
  MutableByteView mutable_view() { return {data_, size_}; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  void release();
  Byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace nacre
