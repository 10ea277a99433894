// SPDX-License-Identifier: Apache-2.0
// Makes sizes by the in-place method of Moffat and Katajainen (WADS 1995): one array of sorted
// counts becomes the tree's parents, then the depths. Depths past the limit are cut to the limit.
// The cut codes then use more than the whole code space, until enough of the longest codes below
// the limit are made one bit longer.
#include "gpu_engine/codec/gdeflate/huffman_code.h"

#include <algorithm>
#include <array>

#include "gpu_engine/codec/gdeflate/format.h"

namespace nacre::engine::gdeflate {
namespace {

constexpr unsigned symbol_bits = 9;
constexpr std::size_t symbol_count_max = 1u << symbol_bits;
constexpr unsigned depth_max = 32;

// Turns ascending counts, of which there are at least two, into descending depths.
void make_depths(std::span<std::uint32_t> nodes) {
  const std::size_t count = nodes.size();
  // Each step joins the two least of the leaves and the trees made so far. A tree that is joined
  // becomes the index of its parent.
  std::size_t leaf = 0;
  std::size_t tree = 0;
  for (std::size_t made = 0; made + 1 < count; ++made) {
    std::uint32_t sum = 0;
    for (int child = 0; child < 2; ++child) {
      if (leaf >= count || (tree < made && nodes[tree] < nodes[leaf])) {
        sum += nodes[tree];
        nodes[tree++] = static_cast<std::uint32_t>(made);
      } else {
        sum += nodes[leaf++];
      }
    }
    nodes[made] = sum;
  }
  // Parents become depths of the inner nodes, from the root down.
  nodes[count - 2] = 0;
  for (std::size_t node = count - 2; node-- > 0;)
    nodes[node] = nodes[nodes[node]] + 1;
  // Inner nodes of a depth leave room for leaves of the next.
  std::size_t inner = count - 1;
  std::size_t next = count;
  std::size_t available = 1;
  for (std::uint32_t depth = 0; available > 0; ++depth) {
    std::size_t used = 0;
    while (inner > 0 && nodes[inner - 1] == depth) {
      ++used;
      --inner;
    }
    for (; available > used; --available)
      nodes[--next] = depth;
    available = 2 * used;
  }
}

}  // namespace

void make_code_sizes(std::span<const std::uint32_t> counts, unsigned size_max,
                     std::span<std::uint8_t> sizes) {
  std::array<std::uint32_t, symbol_count_max> symbols;  // count above symbol
  std::size_t used = 0;
  for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
    if (counts[symbol] != 0)
      symbols[used++] = counts[symbol] << symbol_bits | static_cast<std::uint32_t>(symbol);
  }
  for (std::uint32_t symbol = 0; used < 2; ++symbol)
    if (counts[symbol] == 0) symbols[used++] = symbol;
  std::sort(symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(used));

  std::array<std::uint32_t, symbol_count_max> nodes;
  for (std::size_t i = 0; i < used; ++i)
    nodes[i] = symbols[i] >> symbol_bits;
  make_depths(std::span(nodes).first(used));

  std::array<std::uint32_t, depth_max + 1> counts_of_size{};
  for (std::size_t i = 0; i < used; ++i)
    ++counts_of_size[std::min(nodes[i], size_max)];
  std::uint32_t taken = 0;  // of the 2^size_max codes of the longest size
  for (unsigned size = 1; size <= size_max; ++size)
    taken += counts_of_size[size] << (size_max - size);
  for (; taken > 1u << size_max; --taken) {
    // A longest code joins a shorter one, which gets one bit longer.
    --counts_of_size[size_max];
    unsigned size = size_max - 1;
    while (counts_of_size[size] == 0)
      --size;
    --counts_of_size[size];
    counts_of_size[size + 1] += 2;
  }

  std::fill(sizes.begin(), sizes.end(), std::uint8_t{0});
  std::size_t next = 0;
  for (unsigned size = size_max; size > 0; --size) {
    for (std::uint32_t i = 0; i < counts_of_size[size]; ++i)
      sizes[symbols[next++] % symbol_count_max] = static_cast<std::uint8_t>(size);
  }
}

void assign_codes(std::span<const std::uint8_t> sizes, std::span<std::uint16_t> codes) {
  std::array<std::uint32_t, code_size_bits_max + 2> next_code{};
  for (const std::uint8_t size : sizes)
    ++next_code[size + 1u];
  next_code[1] = 0;  // those without a code
  for (unsigned size = 1; size <= code_size_bits_max; ++size)
    next_code[size + 1] = (next_code[size] + next_code[size + 1]) << 1;
  for (std::size_t symbol = 0; symbol < sizes.size(); ++symbol) {
    const unsigned size = sizes[symbol];
    codes[symbol] = static_cast<std::uint16_t>(reverse_code(next_code[size]++, size));
  }
}

}  // namespace nacre::engine::gdeflate
