// SPDX-License-Identifier: Apache-2.0
// Puts a round lane by lane without a branch: every code stores the open word at its place. The
// last of these stores has the full word.
#include "gpu_engine/codec/gdeflate/page_writer.h"

namespace nacre::engine::gdeflate {

PageWriter::PageWriter(Byte* to) {
  static const PutRound fastest = find_put_round_avx512();
  put_round_ = fastest != nullptr ? fastest : put_round_portable;
  lanes_.bits.fill(0);
  lanes_.counts.fill(word_bits);
  for (std::uint32_t lane = 0; lane < lane_count; ++lane)
    lanes_.open[lane] = lanes_.following[lane] = lane;
  lanes_.next = lane_count;
  lanes_.to = to;
}

std::size_t PageWriter::finish() {
  for (unsigned lane = 0; lane < lane_count; ++lane) {
    store_le(lanes_.to + lanes_.following[lane] * word_size_bytes, std::uint32_t{0});
    store_le(lanes_.to + lanes_.open[lane] * word_size_bytes, lanes_.bits[lane]);
  }
  return lanes_.next * word_size_bytes;
}

void put_round_portable(OpenLanes& lanes, const RoundCodes& codes) {
  std::uint32_t next = lanes.next;
  for (unsigned lane = 0; lane < lane_count; ++lane) {
    const LaneCode code = codes.lanes[lane];
    const std::uint64_t bits = lanes.bits[lane] | std::uint64_t{code.bits} << lanes.counts[lane];
    const std::uint32_t count = lanes.counts[lane] + code.count;
    store_le(lanes.to + lanes.open[lane] * word_size_bytes, static_cast<std::uint32_t>(bits));
    const std::uint32_t is_over = (count - 1) / word_bits;
    const std::uint32_t over_mask = 0 - is_over;
    lanes.bits[lane] = static_cast<std::uint32_t>(bits >> (is_over * word_bits));
    lanes.counts[lane] = count - is_over * word_bits;
    lanes.open[lane] ^= (lanes.open[lane] ^ lanes.following[lane]) & over_mask;
    lanes.following[lane] ^= (lanes.following[lane] ^ next) & over_mask;
    next += is_over;
  }
  lanes.next = next;
}

}  // namespace nacre::engine::gdeflate
