// SPDX-License-Identifier: Apache-2.0
// Makes the bytes on which costs are measured.
#include "gpu_engine/plan/cost_sample.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace nacre::engine {
namespace {

class Sample {
 public:
  explicit Sample(MutableByteView bytes) : bytes_(bytes) {}

  void fill() {
    while (at_ < bytes_.size()) {
      switch (at_ / stretch % 4) {
        case 0:
          put_stretch([&] { put_word(); });
          break;
        case 3:
          put_stretch([&] { put_fields(); });
          break;
        default:
          put_stretch([&] { put_row(); });
      }
    }
  }

 private:
  static constexpr std::size_t stretch = 4096;
  static constexpr std::uint32_t scatter = 2654435761u;  // 2^32 over the golden ratio

  std::uint32_t next() { return state_ = state_ * 1664525 + 1013904223, state_ >> 8; }
  void put(std::uint32_t value) {
    if (at_ < bytes_.size()) bytes_[at_++] = static_cast<Byte>(value);
  }
  void put_stretch(const std::function<void()>& put_some) {
    const std::size_t end = std::min(bytes_.size(), (at_ / stretch + 1) * stretch);
    while (at_ < end)
      put_some();
  }
  void put_word() {
    constexpr std::string_view letters = "etaonisrhldcumfpgwybvkxj";
    const std::uint32_t rank = next() % 64;
    const std::uint32_t word = rank * rank * (1 + next() % 4) * scatter;
    for (std::uint32_t i = 0; i < 2 + word % 7; ++i)
      put(static_cast<Byte>(letters[(word >> 3 * i) % 8 * (1 + (word >> i) % 3)]));
    put(' ');
  }
  void put_row() {
    for (int column = 0; column < 12; ++column) {
      const std::uint32_t value = next();
      put(' ');
      put(' ');
      put('0' + (column == 2 ? value % 10 : column == 7 ? value % 4 : 0));
    }
    put('\n');
  }
  void put_fields() {
    const std::uint32_t value = next();
    for (std::uint32_t i = 0; i < 2 + value % 3; ++i)
      put(next());
    const std::uint32_t known = (value >> 4) % 128;
    for (std::uint32_t i = 0; i < 4 + known % 4; ++i)
      put(known * scatter >> 4 * i);
    for (std::uint32_t i = 0; i < 2 + (value >> 12) % 12; ++i)
      put(0);
  }

  MutableByteView bytes_;
  std::size_t at_ = 0;
  std::uint32_t state_ = 12345;
};

}  // namespace

void fill_cost_sample(MutableByteView bytes) {
  // Further apart than any codec looks back.
  constexpr std::size_t period = 4u << 20;
  const MutableByteView first = bytes.first(std::min(bytes.size(), period));
  Sample(first).fill();
  for (std::size_t at = period; at < bytes.size(); at += period) {
    const std::size_t size = std::min(period, bytes.size() - at);
    std::copy_n(first.begin(), size, bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace nacre::engine
