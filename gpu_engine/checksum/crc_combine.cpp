// SPDX-License-Identifier: Apache-2.0
// The CRC of two pieces in a row.
//
// A CRC is linear over GF(2): appending n zero bytes to a message multiplies its remainder by
// x^(8n) modulo the polynomial, and the first inversion of the second piece cancels against the
// last one of the first. So crc(A B) = crc(A) * x^(8 |B|) + crc(B). The power comes from the table
// of x^(2^k): one multiplication for each bit set in 8 |B|.
#include <array>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/checksum/crc_reference.h"

namespace nacre::engine {
namespace {

constexpr std::uint32_t one = 1u << 31;  // x^0 in reflected order

template <std::uint32_t polynomial>
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = one; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = crc_times_x<polynomial>(b);
  }
  return product;
}

constexpr std::size_t bits_per_byte_log2 = 3;
using Powers = std::array<std::uint32_t, 64 + bits_per_byte_log2>;

// Entry k is x^(2^k).
template <std::uint32_t polynomial>
constexpr Powers make_powers() {
  Powers powers = {};
  powers[0] = one >> 1;
  for (std::size_t k = 1; k < powers.size(); ++k)
    powers[k] = multiply<polynomial>(powers[k - 1], powers[k - 1]);
  return powers;
}

template <std::uint32_t polynomial>
std::uint32_t combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) {
  static constexpr Powers powers = make_powers<polynomial>();
  for (std::size_t k = bits_per_byte_log2; second_size != 0; ++k, second_size >>= 1) {
    if ((second_size & 1) != 0) first = multiply<polynomial>(powers[k], first);
  }
  return first ^ second;
}

template <std::uint32_t polynomial>
std::uint32_t combine_reference(std::uint32_t first, std::uint32_t second,
                                std::uint64_t second_size) {
  for (std::uint64_t byte = 0; byte < second_size; ++byte) {
    for (int bit = 0; bit < 8; ++bit)
      first = crc_times_x<polynomial>(first);
  }
  return first ^ second;
}

}  // namespace

std::uint32_t crc32_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) {
  return combine<crc32_polynomial_reflected>(first, second, second_size);
}

std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) {
  return combine<crc32c_polynomial_reflected>(first, second, second_size);
}

std::uint32_t crc32_combine_reference(std::uint32_t first, std::uint32_t second,
                                      std::uint64_t second_size) {
  return combine_reference<crc32_polynomial_reflected>(first, second, second_size);
}

std::uint32_t crc32c_combine_reference(std::uint32_t first, std::uint32_t second,
                                       std::uint64_t second_size) {
  return combine_reference<crc32c_polynomial_reflected>(first, second, second_size);
}

}  // namespace nacre::engine
