// SPDX-License-Identifier: Apache-2.0
// The product is Montgomery's, digit by digit (Koç, Acar and Kaliski, "Analyzing and comparing
// Montgomery multiplication algorithms", coarsely integrated operand scanning).
#include "gpu_engine/seeds/rsa_plain.h"

#include <algorithm>

namespace nacre::engine::seeds {
namespace {

__extension__ using Wide = unsigned __int128;

bool is_below(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

void subtract(std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  std::uint64_t borrow = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Wide difference = Wide{a[i]} - b[i] - borrow;
    a[i] = static_cast<std::uint64_t>(difference);
    borrow = static_cast<std::uint64_t>(difference >> 64) & 1;
  }
}

std::vector<std::uint64_t> from_bytes(ByteView bytes, std::size_t digit_count) {
  std::vector<std::uint64_t> number(digit_count);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t place = bytes.size() - 1 - i;
    if (place / 8 < digit_count) number[place / 8] |= std::uint64_t{bytes[i]} << 8 * (place % 8);
  }
  return number;
}

}  // namespace

PlainPower::PlainPower(ByteView modulus, ByteView exponent)
    : modulus_(from_bytes(modulus, modulus.size() / 8)),
      square_(modulus_.size()),
      exponent_(exponent.begin(), exponent.end()) {
  // Newton's iteration doubles the number of right bits.
  std::uint64_t inverse = 1;
  for (int bits = 1; bits < 64; bits *= 2)
    inverse *= 2 - modulus_[0] * inverse;
  inverse_ = 0 - inverse;
  // Doubles 1, once for each bit of R^2.
  square_[0] = 1;
  for (std::size_t i = 0; i < 2 * 64 * modulus_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::uint64_t& digit : square_) {
      const std::uint64_t next = digit >> 63;
      digit = digit << 1 | carry;
      carry = next;
    }
    if (carry != 0 || !is_below(square_, modulus_)) subtract(square_, modulus_);
  }
}

void PlainPower::multiply(const Number& a, const Number& b, Number& product) const {
  const std::size_t count = modulus_.size();
  Number sum(count + 2);
  for (std::size_t i = 0; i < count; ++i) {
    Wide carry = 0;
    for (std::size_t j = 0; j < count; ++j) {
      carry += Wide{a[j]} * b[i] + sum[j];
      sum[j] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    carry += sum[count];
    sum[count] = static_cast<std::uint64_t>(carry);
    sum[count + 1] = static_cast<std::uint64_t>(carry >> 64);
    const std::uint64_t factor = sum[0] * inverse_;
    carry = (Wide{factor} * modulus_[0] + sum[0]) >> 64;
    for (std::size_t j = 1; j < count; ++j) {
      carry += Wide{factor} * modulus_[j] + sum[j];
      sum[j - 1] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    carry += sum[count];
    sum[count - 1] = static_cast<std::uint64_t>(carry);
    sum[count] = sum[count + 1] + static_cast<std::uint64_t>(carry >> 64);
  }
  product.assign(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(count));
  if (sum[count] != 0 || !is_below(product, modulus_)) subtract(product, modulus_);
}

void PlainPower::apply(ByteView in, MutableByteView out) const {
  Number base = from_bytes(in, modulus_.size());
  Number one(modulus_.size());
  one[0] = 1;
  multiply(base, square_, base);
  Number power(modulus_.size());
  multiply(one, square_, power);
  bool has_begun = false;
  for (const Byte byte : exponent_) {
    for (int bit = 7; bit >= 0; --bit) {
      if (has_begun) multiply(power, power, power);
      if ((byte >> bit & 1) == 0) continue;
      multiply(power, base, power);
      has_begun = true;
    }
  }
  multiply(power, one, power);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t place = out.size() - 1 - i;
    out[i] = static_cast<Byte>(place / 8 < power.size() ? power[place / 8] >> 8 * (place % 8) : 0);
  }
}

}  // namespace nacre::engine::seeds
