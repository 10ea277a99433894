// SPDX-License-Identifier: Apache-2.0
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view hex_digits = "0123456789abcdef";

constexpr std::uint8_t no_digit = 0xff;

constexpr std::array<std::uint8_t, 256> values_of(std::string_view digits) {
  std::array<std::uint8_t, 256> values = {};
  values.fill(no_digit);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    values[static_cast<unsigned char>(digits[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}

constexpr auto base64_values = values_of(base64_digits);
constexpr auto hex_values = values_of(hex_digits);

}  // namespace

std::string to_base64(ByteView bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = std::uint32_t{bytes[at]} << 16;
    if (count > 1) group |= std::uint32_t{bytes[at + 1]} << 8;
    if (count > 2) group |= bytes[at + 2];
    for (std::size_t i = 0; i < 4; ++i) {
      text.push_back(i <= count ? base64_digits[group >> (18 - 6 * i) & 63] : '=');
    }
  }
  return text;
}

std::optional<Bytes> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
    ++padding;
  const std::size_t digit_count = text.size() - padding;
  Bytes bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  unsigned bit_count = 0;
  for (std::size_t i = 0; i < digit_count; ++i) {
    const std::uint8_t value = base64_values[static_cast<unsigned char>(text[i])];
    if (value == no_digit) return std::nullopt;
    bits = bits << 6 | value;
    bit_count += 6;
    if (bit_count >= 8) {
      bit_count -= 8;
      bytes.push_back(static_cast<Byte>(bits >> bit_count));
    }
  }
  // Bits that belong to no byte must be zero: otherwise one byte string would have several texts.
  if ((bits & ((1u << bit_count) - 1)) != 0) return std::nullopt;
  return bytes;
}

std::string to_hex(ByteView bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const Byte byte : bytes) {
    text.push_back(hex_digits[byte >> 4]);
    text.push_back(hex_digits[byte & 15]);
  }
  return text;
}

bool from_hex(std::string_view text, MutableByteView out) {
  if (text.size() != out.size() * 2) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint8_t high = hex_values[static_cast<unsigned char>(text[2 * i])];
    const std::uint8_t low = hex_values[static_cast<unsigned char>(text[2 * i + 1])];
    if (high == no_digit || low == no_digit) return false;
    out[i] = static_cast<Byte>(high << 4 | low);
  }
  return true;
}

}  // namespace nacre::metadata
