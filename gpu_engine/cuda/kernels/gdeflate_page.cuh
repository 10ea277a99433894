// SPDX-License-Identifier: Apache-2.0
// Decodes a GDeflate page with a warp, a lane of the page a lane of the warp: block by block, as
// codec/gdeflate/format.h tells it. What it takes and gives is what codec/gdeflate/decoder.h does.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_rounds.cuh"

namespace nacre::engine::cuda::gdeflate {

// Copier: what copies the matches (MatchCopier).
template <typename Warp, typename Copier>
class PageDecoder {
 public:
  // task: in_size is at least page_size_bytes_min and whole words, out_size at most
  // page_plain_size_max.
  NACRE_LANE_CODE PageDecoder(Warp warp, PageMemory& memory, const CodecTask& task, Copier& copier)
      : warp_(warp),
        memory_(memory),
        page_{warp, memory, {warp, task.in, task.in_size}, task.out, task.out_size, 0},
        copier_(copier) {}

  // What the page means; the same for all lanes. False: out holds anything.
  NACRE_LANE_CODE bool run() {
    bool is_last = false;
    while (!is_last) {
      const std::uint32_t head = page_.reader.take_from_first(3);
      is_last = (head & 1) != 0;
      if (page_.reader.torn() || !decode_block(static_cast<BlockKind>(head >> 1))) return false;
      warp_.sync();
    }
    return page_.at == page_.out_size && page_.reader.at_end();
  }

 private:
  using LitlenBuilder = TableBuilder<Warp, litlen_shape.direct_bits, LitlenMeanings>;
  using DistanceBuilder = TableBuilder<Warp, distance_shape.direct_bits, DistanceMeanings>;
  using CodeLengthBuilder = TableBuilder<Warp, code_length_shape.direct_bits, CodeLengthMeanings>;

  NACRE_LANE_CODE bool decode_block(BlockKind kind) {
    if (kind == BlockKind::stored) return copy_stored();
    if (kind == BlockKind::fixed_codes) {
      // Kept: such a block may be as short as ten bits.
      if (!has_fixed_codes_) put_fixed_sizes();
      if (!has_fixed_codes_ && !build_tables(litlen_symbol_count_max, distance_symbol_count))
        return false;
      has_fixed_codes_ = true;
      return RoundDecoder<Warp, Copier>(page_, copier_).decode();
    }
    has_fixed_codes_ = false;
    if (kind != BlockKind::dynamic_codes || !read_codes()) return false;
    RoundDecoder<Warp, Copier> rounds(page_, copier_);
    return has_lengths_ ? rounds.decode() : rounds.decode_literals();
  }

  NACRE_LANE_CODE bool copy_stored() {
    const std::uint32_t size = page_.reader.take_from_first(16);
    if (size > page_.out_size - page_.at) return false;
    for (std::uint32_t first = 0; first < size && !page_.reader.torn(); first += lane_count) {
      const std::uint32_t index = first + warp_.lane();
      if (index < size) {
        warp_.store(page_.out + page_.at + index, static_cast<Byte>(page_.reader.bits()));
        page_.reader.skip(8);
      }
      page_.reader.refill();
    }
    page_.at += size;
    return !page_.reader.torn();
  }

  NACRE_LANE_CODE void put_fixed_sizes() {
    // RFC 1951, 3.2.6.
    for (std::uint32_t symbol = warp_.lane(); symbol < litlen_symbol_count_max;
         symbol += lane_count) {
      std::uint8_t size = 8;
      if (symbol >= 144 && symbol < 256) size = 9;
      if (symbol >= 256 && symbol < 280) size = 7;
      memory_.code_sizes[symbol] = size;
    }
    memory_.code_sizes[litlen_symbol_count_max + warp_.lane()] = fixed_distance_code_size;
  }

  NACRE_LANE_CODE bool read_codes() {
    const std::uint32_t counts = page_.reader.take_from_first(14);
    const std::uint32_t litlen_count = first_length_symbol + counts % 32;
    const std::uint32_t distance_count = 1 + (counts >> 5) % 32;
    const std::uint32_t size_count = 4 + (counts >> 10);

    if (warp_.lane() < code_length_symbol_count) {
      std::uint32_t size = 0;
      if (warp_.lane() < size_count) {
        size = page_.reader.bits() % 8;
        page_.reader.skip(3);
      }
      memory_.code_sizes[code_length_symbol_at(warp_.lane())] = static_cast<std::uint8_t>(size);
    }
    page_.reader.refill();
    return CodeLengthBuilder(warp_, memory_, distance_table_at)
               .build(memory_.code_sizes, code_length_symbol_count,
                      code_length_shape.entry_count) &&
           read_code_sizes(litlen_count + distance_count) && !page_.reader.torn() &&
           build_tables(litlen_count, distance_count);
  }

  // 32 items at a time. Repeats may run from the one alphabet into the other, but not past both.
  NACRE_LANE_CODE bool read_code_sizes(std::uint32_t size_count) {
    std::uint32_t known = 0;
    std::uint32_t last_size = 0;
    while (known < size_count) {
      const std::uint32_t bits = page_.reader.bits();
      const std::uint32_t entry =
          memory_.tables[distance_table_at + bits % (1u << code_length_shape.direct_bits)];
      const std::uint32_t symbol = entry_payload(entry);
      const std::uint32_t behind = bits >> code_bits_of(entry);
      std::uint32_t count = 1;
      std::uint32_t extra_bits = 0;
      if (symbol == code_length_repeat) {
        extra_bits = 2;
        count = 3 + behind % 4;
      } else if (symbol == code_length_zeros) {
        extra_bits = 3;
        count = 3 + behind % 8;
      } else if (symbol == code_length_many_zeros) {
        extra_bits = 7;
        count = 11 + behind % 128;
      }
      const std::uint32_t count_sum = sum_up_to_here(warp_, count);
      const std::uint32_t place = known + count_sum - count;
      const bool reads = place < size_count;
      // A repeat has the size of the last item before it that is none.
      const std::uint32_t givers =
          warp_.ballot(symbol != code_length_repeat) & lanes_up_to_here(warp_);
      const std::uint32_t own_size = symbol < code_length_repeat ? symbol : 0;
      const std::uint32_t given =
          warp_.shuffle(own_size, givers != 0 ? warp_.highest(givers) : warp_.lane());
      const std::uint32_t size = givers != 0 ? given : last_size;
      const bool is_bad = entry_kind(entry) == EntryKind::stop ||
                          (symbol == code_length_repeat && place == 0) ||
                          count > size_count - place;
      if (warp_.ballot(reads && is_bad) != 0) return false;
      if (reads) {
        for (std::uint32_t i = 0; i < count; ++i)
          memory_.code_sizes[place + i] = static_cast<std::uint8_t>(size);
        page_.reader.skip(code_bits_of(entry) + extra_bits);
      }
      page_.reader.refill();
      const std::uint32_t last_reader = warp_.highest(warp_.ballot(reads));
      known = warp_.shuffle(place + count, last_reader);
      last_size = warp_.shuffle(size, last_reader);
      if (page_.reader.torn()) return false;
    }
    warp_.sync();
    return true;
  }

  NACRE_LANE_CODE bool build_tables(std::uint32_t litlen_count, std::uint32_t distance_count) {
    warp_.sync();
    const std::uint32_t length_symbol = first_length_symbol + warp_.lane();
    has_lengths_ =
        warp_.ballot(length_symbol < litlen_count && memory_.code_sizes[length_symbol] != 0) != 0;
    return LitlenBuilder(warp_, memory_, 0)
               .build(memory_.code_sizes, litlen_count, litlen_shape.entry_count) &&
           DistanceBuilder(warp_, memory_, distance_table_at)
               .build(memory_.code_sizes + litlen_count, distance_count,
                      distance_shape.entry_count);
  }

  const Warp warp_;
  PageMemory& memory_;
  PageState<Warp> page_;
  Copier& copier_;
  bool has_fixed_codes_ = false;
  bool has_lengths_ = false;
};

// What a task says of a page: whether it is one, and out what it means.
NACRE_LANE_CODE bool can_be_page(const CodecTask& task) {
  return task.out_size <= page_plain_size_max && task.in_size >= page_size_bytes_min &&
         task.in_size % word_size_bytes == 0;
}
template <typename Warp>
NACRE_LANE_CODE bool decode_page(Warp warp, PageMemory& memory, const CodecTask& task) {
  if (!can_be_page(task)) return false;
  MatchCopier<Warp> copier(warp, memory, task.out);
  return PageDecoder<Warp, MatchCopier<Warp>>(warp, memory, task, copier).run();
}

}  // namespace nacre::engine::cuda::gdeflate
