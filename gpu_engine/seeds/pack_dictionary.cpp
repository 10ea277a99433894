// SPDX-License-Identifier: Apache-2.0
// Huffman and LZW.
#include <algorithm>
#include <array>
#include <queue>
#include <vector>

#include "gpu_engine/seeds/bit_stream.h"
#include "gpu_engine/seeds/packers.h"

namespace nacre::engine::seeds {
namespace {

constexpr std::size_t symbol_count = 256;
using Lengths = std::array<Byte, symbol_count>;

// How deep each byte lies in the tree; 0 when it does not occur. A depth of 46 would need a message
// of more than 2^32 bytes (the frequencies of the deepest tree are Fibonacci's numbers).
Lengths tree_depths(ByteView plain) {
  struct Node {
    std::uint64_t frequency;
    std::size_t place;
    bool operator>(const Node& other) const {
      return frequency != other.frequency ? frequency > other.frequency : place > other.place;
    }
  };
  std::array<std::uint64_t, symbol_count> frequencies = {};
  for (const Byte byte : plain)
    ++frequencies[byte];
  std::priority_queue<Node, std::vector<Node>, std::greater<>> rarest;
  for (std::size_t i = 0; i < symbol_count; ++i)
    if (frequencies[i] > 0) rarest.push({frequencies[i], i});
  Lengths depths = {};
  if (rarest.size() == 1) depths[rarest.top().place] = 1;
  std::vector<std::size_t> parents(2 * symbol_count);
  std::size_t next = symbol_count;
  while (rarest.size() > 1) {
    const Node a = rarest.top();
    rarest.pop();
    const Node b = rarest.top();
    rarest.pop();
    parents[a.place] = parents[b.place] = next;
    rarest.push({a.frequency + b.frequency, next++});
  }
  if (next > symbol_count) {
    for (std::size_t i = 0; i < symbol_count; ++i) {
      if (frequencies[i] == 0) continue;
      for (std::size_t at = i; at != next - 1; at = parents[at])
        ++depths[i];
    }
  }
  return depths;
}

// Codes in the order of their lengths, then of their bytes.
struct Codebook {
  std::array<std::uint64_t, symbol_count> codes = {};
  std::array<std::uint64_t, 65> first = {};  // code of each length
  std::array<std::size_t, 65> count = {};    // codes of each length
  std::vector<Byte> symbols;                 // in the order of their codes
};

Codebook make_codebook(const Lengths& lengths) {
  Codebook book;
  std::uint64_t next = 0;
  for (std::size_t length = 1; length <= 64; ++length) {
    next <<= 1;
    book.first[length] = next;
    for (std::size_t i = 0; i < symbol_count; ++i) {
      if (lengths[i] != length) continue;
      book.codes[i] = next++;
      ++book.count[length];
      book.symbols.push_back(static_cast<Byte>(i));
    }
  }
  return book;
}

constexpr std::uint32_t dictionary_size = 1u << 16;
constexpr int code_bits = 16;
constexpr std::uint32_t none = ~0u;

}  // namespace

std::size_t pack_huffman(ByteView plain, MutableByteView out) {
  const Lengths lengths = tree_depths(plain);
  const Codebook book = make_codebook(lengths);
  std::copy(lengths.begin(), lengths.end(), out.begin());
  BitWriter writer(out.subspan(symbol_count));
  for (const Byte byte : plain)
    writer.put(book.codes[byte], lengths[byte]);
  return symbol_count + writer.finish();
}

bool unpack_huffman(ByteView stream, MutableByteView out) {
  if (stream.size() < symbol_count) return false;
  Lengths lengths;
  std::copy_n(stream.begin(), symbol_count, lengths.begin());
  const Codebook book = make_codebook(lengths);
  BitReader reader(stream.subspan(symbol_count));
  for (Byte& byte : out) {
    std::uint64_t code = 0;
    std::size_t before = 0, length = 0;
    do {
      before += length == 0 ? 0 : book.count[length];
      if (++length > 64) return false;
      code = code << 1 | reader.take(1);
    } while (code - book.first[length] >= book.count[length]);
    byte = book.symbols[before + static_cast<std::size_t>(code - book.first[length])];
  }
  return reader.is_good();
}

std::size_t pack_lzw(ByteView plain, MutableByteView out) {
  // For each prefix the first prefix that is one byte longer, and for each prefix its next sibling.
  struct Entry {
    std::uint32_t child = none, sibling = none;
    Byte last = 0;
  };
  std::vector<Entry> entries(symbol_count);
  BitWriter writer(out);
  std::uint32_t prefix = none;
  for (const Byte byte : plain) {
    if (prefix == none) {
      prefix = byte;
      continue;
    }
    std::uint32_t at = entries[prefix].child;
    while (at != none && entries[at].last != byte)
      at = entries[at].sibling;
    if (at != none) {
      prefix = at;
      continue;
    }
    writer.put(prefix, code_bits);
    if (entries.size() < dictionary_size) {
      entries.push_back({none, entries[prefix].child, byte});
      entries[prefix].child = static_cast<std::uint32_t>(entries.size() - 1);
    }
    prefix = byte;
  }
  if (prefix != none) writer.put(prefix, code_bits);
  return writer.finish();
}

bool unpack_lzw(ByteView stream, MutableByteView out) {
  struct Entry {
    std::size_t begin, size;  // in out, except single bytes
  };
  std::vector<Entry> entries(symbol_count, {0, 1});
  BitReader reader(stream);
  Entry former = {0, 0};
  std::size_t to = 0;
  for (std::size_t i = 0; i < stream.size() / 2; ++i) {
    const auto code = static_cast<std::size_t>(reader.take(code_bits));
    // The entry that is about to be made is known except for its last byte.
    const bool is_next = code == entries.size() && former.size > 0;
    if (code >= entries.size() && !is_next) return false;
    const Entry entry = is_next ? Entry{former.begin, former.size + 1} : entries[code];
    if (entry.size > out.size() - to) return false;
    for (std::size_t j = 0; j < entry.size; ++j)
      out[to + j] = code < symbol_count ? static_cast<Byte>(code) : out[entry.begin + j];
    if (former.size > 0 && entries.size() < dictionary_size)
      entries.push_back({former.begin, former.size + 1});
    former = {to, entry.size};
    to += entry.size;
  }
  return to == out.size();
}

}  // namespace nacre::engine::seeds
