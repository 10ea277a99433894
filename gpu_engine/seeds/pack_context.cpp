// SPDX-License-Identifier: Apache-2.0
// RLE and LZ77.
#include <algorithm>
#include <array>
#include <vector>

#include "gpu_engine/seeds/bit_stream.h"
#include "gpu_engine/seeds/packers.h"

namespace nacre::engine::seeds {
namespace {

constexpr std::size_t length_max = 127;
constexpr Byte repeated = 0x80;

std::size_t run_at(ByteView plain, std::size_t at) {
  std::size_t length = 1;
  while (length < length_max && at + length < plain.size() && plain[at + length] == plain[at])
    ++length;
  return length;
}

constexpr int window_bits = 12;
constexpr std::size_t window_size = std::size_t{1} << window_bits;
constexpr std::uint32_t nowhere = ~0u;

// The last place of each pair of bytes, and for each place the one before it with the same pair.
class Prefixes {
 public:
  explicit Prefixes(ByteView plain) : plain_(plain), heads_(1 << 16, nowhere) {
    before_.resize(plain.size(), nowhere);
  }
  void add(std::size_t at) {
    if (at + 1 >= plain_.size()) return;
    std::uint32_t& head = heads_[pair_at(at)];
    before_[at] = head;
    head = static_cast<std::uint32_t>(at);
  }
  struct Match {
    std::size_t offset = 0, length = 0;
  };
  // Leaves at least one byte over, the triple's next byte.
  Match longest(std::size_t at) const {
    Match best;
    if (at + 2 >= plain_.size()) return best;
    const std::size_t most = plain_.size() - 1 - at;
    for (std::uint32_t from = heads_[pair_at(at)]; from != nowhere && at - from < window_size;
         from = before_[from]) {
      std::size_t length = 0;
      while (length < most && plain_[from + length] == plain_[at + length])
        ++length;
      if (length > best.length) best = {at - from, length};
    }
    return best;
  }

 private:
  std::size_t pair_at(std::size_t at) const {
    return plain_[at] | std::size_t{plain_[at + 1]} << 8;
  }
  ByteView plain_;
  std::vector<std::uint32_t> heads_, before_;
};

}  // namespace

std::size_t pack_rle(ByteView plain, MutableByteView out) {
  std::size_t to = 0;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t run = run_at(plain, at);
    if (run > 2) {
      out[to++] = static_cast<Byte>(repeated | run);
      out[to++] = plain[at];
      at += run;
      continue;
    }
    std::size_t end = at + 1;
    while (end < plain.size() && end - at < length_max && run_at(plain, end) <= 2)
      ++end;
    out[to++] = static_cast<Byte>(end - at);
    std::copy(plain.begin() + static_cast<std::ptrdiff_t>(at),
              plain.begin() + static_cast<std::ptrdiff_t>(end),
              out.begin() + static_cast<std::ptrdiff_t>(to));
    to += end - at;
    at = end;
  }
  return to;
}

bool unpack_rle(ByteView stream, MutableByteView out) {
  std::size_t to = 0;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t length = stream[at] & length_max;
    const bool is_run = (stream[at++] & repeated) != 0;
    if (length > out.size() - to || (is_run ? 1 : length) > stream.size() - at) return false;
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(to);
    const auto from = stream.begin() + static_cast<std::ptrdiff_t>(at);
    if (is_run)
      std::fill_n(begin, length, *from);
    else
      std::copy_n(from, length, begin);
    at += is_run ? 1 : length;
    to += length;
  }
  return to == out.size();
}

std::size_t pack_lz77(ByteView plain, MutableByteView out) {
  BitWriter writer(out);
  Prefixes prefixes(plain);
  for (std::size_t at = 0; at < plain.size();) {
    const Prefixes::Match match = prefixes.longest(at);
    writer.put(match.offset, window_bits);
    // The gamma code has no code for zero.
    writer.put_gamma(match.length + 1);
    writer.put(plain[at + match.length], 8);
    for (const std::size_t end = at + match.length + 1; at < end; ++at)
      prefixes.add(at);
  }
  return writer.finish();
}

bool unpack_lz77(ByteView stream, MutableByteView out) {
  BitReader reader(stream);
  for (std::size_t to = 0; to < out.size();) {
    const std::size_t offset = reader.take(window_bits);
    const std::uint64_t number = reader.take_gamma();
    if (number == 0 || number > out.size() - to) return false;
    const auto length = static_cast<std::size_t>(number - 1);
    if (length > 0 && (offset == 0 || offset > to)) return false;
    for (std::size_t i = 0; i < length; ++i, ++to)
      out[to] = out[to - offset];
    out[to++] = static_cast<Byte>(reader.take(8));
  }
  return reader.is_good();
}

}  // namespace nacre::engine::seeds
