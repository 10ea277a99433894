// SPDX-License-Identifier: Apache-2.0
// Puts the parts together. A parser cuts the plain bytes into items, the items are cut into blocks,
// and each block is written in the kind that takes the fewest bits.
#include "gpu_engine/codec/gdeflate/encoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "gpu_engine/codec/gdeflate/block_codes.h"
#include "gpu_engine/codec/gdeflate/block_split.h"
#include "gpu_engine/codec/gdeflate/block_writer.h"
#include "gpu_engine/codec/gdeflate/items.h"
#include "gpu_engine/codec/gdeflate/parse.h"
#include "gpu_engine/codec/workspace.h"

namespace nacre::engine::gdeflate {
namespace {

// Some plain bytes with their items, the best way to write them, and its cost.
struct Block {
  ByteView plain;
  std::span<const Item> items;  // none in a block of literals alone
  DynamicCodes dynamic;
  BlockKind kind;
  std::size_t bits;

  Block(ByteView of_plain, std::span<const Item> of_items, const SymbolCounts& counts)
      : plain(of_plain), items(of_items), dynamic(counts) {
    kind = BlockKind::dynamic_codes;
    bits = dynamic.header_bits() + count_body_bits(counts, dynamic.codes());
    const std::size_t fixed_bits = count_body_bits(counts, fixed_codes());
    if (fixed_bits < bits) {
      kind = BlockKind::fixed_codes;
      bits = fixed_bits;
    }
    const std::size_t stored_bits = stored_size_bits + 8 * plain.size();
    if (stored_bits < bits && plain.size() <= stored_size_max) {
      kind = BlockKind::stored;
      bits = stored_bits;
    }
    bits += block_head_bits;
  }

  void write(PageWriter& page, bool is_last) const {
    write_block_head(page, is_last, kind);
    if (kind == BlockKind::stored) {
      write_stored(page, plain);
      return;
    }
    if (kind == BlockKind::dynamic_codes) dynamic.write_header(page);
    const BlockCodes& codes = kind == BlockKind::dynamic_codes ? dynamic.codes() : fixed_codes();
    if (items.empty())
      write_literals(page, codes, plain);
    else
      write_items(page, codes, items);
  }
};

// The most by which page_size_bound() exceeds the size of a page: one word a lane, if the bits of
// every lane end exactly with a word.
constexpr std::size_t bound_excess_max = page_size_bytes_min;

std::size_t write_page(std::span<const Block> blocks, std::size_t plain_size, MutableByteView out) {
  auto& scratch = thread_workspace<std::array<Byte, page_plain_size_max + bound_excess_max>>();
  std::size_t bits = 0;
  for (const Block& block : blocks)
    bits += block.bits;
  const std::size_t bound = PageWriter::page_size_bound(bits);
  if (bound >= plain_size + bound_excess_max) return 0;
  const bool has_room = bound <= out.size();
  PageWriter page(has_room ? out.data() : scratch.data());
  for (const Block& block : blocks)
    block.write(page, &block == &blocks.back());
  const std::size_t size = page.finish();
  if (size >= plain_size || size > out.size()) return 0;
  if (!has_room) std::memcpy(out.data(), scratch.data(), size);
  return size;
}

SymbolCounts count_bytes(ByteView plain) {
  // Four tables, so that counts of equal bytes in a row do not wait for each other.
  std::array<std::array<std::uint32_t, literal_symbol_count>, 4> tables{};
  std::size_t i = 0;
  for (; i + 4 <= plain.size(); i += 4)
    for (std::size_t j = 0; j < 4; ++j)
      ++tables[j][plain[i + j]];
  for (; i < plain.size(); ++i)
    ++tables[0][plain[i]];
  SymbolCounts counts;
  for (unsigned byte = 0; byte < literal_symbol_count; ++byte)
    counts.litlen[byte] = tables[0][byte] + tables[1][byte] + tables[2][byte] + tables[3][byte];
  counts.litlen[end_of_block] = 1;
  return counts;
}

// A block whose items are shorter than this on average may be cheaper with literals alone.
constexpr std::size_t short_item_bytes = 6;

Block make_block(ByteView plain, std::span<const Item> items, const SymbolCounts& counts) {
  const Block block(plain, items, counts);
  if (items.size() * short_item_bytes < plain.size()) return block;
  const Block literals(plain, {}, count_bytes(plain));
  return literals.bits < block.bits ? literals : block;
}

}  // namespace

std::size_t encode_page(int level, ByteView plain, MutableByteView out) {
  if (plain.size() <= page_size_bytes_min) return 0;
  auto& items = thread_workspace<ItemList>();
  parse(level, plain, items);
  std::vector<Block> blocks;
  if (level == 1) {
    blocks.emplace_back(plain, items.view(), items.counts);
  } else if (level == 2) {
    blocks.push_back(make_block(plain, items.view(), items.counts));
  } else {
    auto& split = thread_workspace<BlockSplit>();
    split_blocks(items.view(), split);
    std::size_t start = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < split.block_count; ++i) {
      const auto of_block = items.view().subspan(start, split.ends[i] - start);
      std::size_t size = 0;
      for (const Item item : of_block)
        size += item_size(item);
      blocks.push_back(make_block(plain.subspan(at, size), of_block, split.counts[i]));
      start = split.ends[i];
      at += size;
    }
  }
  return write_page(blocks, plain.size(), out);
}

std::size_t encode_page_of_literals(ByteView plain, MutableByteView out) {
  if (plain.size() <= page_size_bytes_min) return 0;
  auto& split = thread_workspace<BlockSplit>();
  split_literals(plain, split);
  std::vector<Block> blocks;
  std::size_t start = 0;
  for (std::size_t i = 0; i < split.block_count; ++i) {
    blocks.emplace_back(plain.subspan(start, split.ends[i] - start), std::span<const Item>{},
                        split.counts[i]);
    start = split.ends[i];
  }
  return write_page(blocks, plain.size(), out);
}

}  // namespace nacre::engine::gdeflate
