// SPDX-License-Identifier: Apache-2.0
// Decodes a zstd frame (RFC 8878) with a warp. It takes the frames of codec zstd that libzstd makes
// (codec/zstd.cpp), of at most plain_size_max bytes. What it takes, libzstd takes too, and gives
// the same bytes; libzstd also takes some frames that no encoder makes.
//
// The plain loop of a compressed block, without its checks:
//
//   literals = decode 1 or 4 Huffman streams;
//   for (i = 0; i < sequence_count; ++i) {
//     entry[3] = the entries of the three FSE tables at their states;
//     literal_length, match_length, offset = what the entries say, plus extra bits of the stream;
//     offset = one of the last three offsets if it is below 4, otherwise offset - 3;
//     copy(out, literals, literal_length), then match_length bytes from offset back;
//     each state = its entry's next one, plus bits of the stream;
//   }
//   copy the literals that are left;
//
// The place of a sequence's bits in the stream follows from the states of the sequence before it.
// So one chain leads through all sequences. The steps from there: only the chain is followed
// sequence by sequence, and everything else is done for a batch of 32 sequences at once.
//
// 1. The chain. All lanes follow it, since no lane has anything else to do: three look-ups, a sum
//    of their bits, one load of 32 bits, three shifts. Lane k keeps the place and the entries of
//    sequence k.
// 2. Extra bits. Each lane reads those of its own sequence.
// 3. Repeated offsets. The effect of a sequence on the last three offsets is a map: each of the
//    three becomes a new value, or one of the old ones, perhaps less 1. Five steps compose the maps
//    of 32 sequences (OffsetMap). They are left out if the batch repeats no offset.
// 4. Places. Inclusive sums of the lengths give the places of each sequence's bytes. All of them
//    are checked before a byte of the batch is written.
// 5. Write bytes, not sequences, as in lz4_decoder.cuh. A tile is 32 bytes of output, one for each
//    lane. By counting the sequences that have begun, a lane knows to which of them its byte
//    belongs. If the byte's source lies in the same tile, pointer doubling finds the lane that has
//    the value. Four tiles are moved at once if none of them takes a byte from itself or from
//    another. If one does, two tiles are moved at once, or one.
//
// Literals are decoded to the end of the block's output and wait there. A literal only moves toward
// the beginning: the place where it waits lies behind its final place by as many bytes as the later
// matches write. So literals need no other memory, if a tile reads its literals before it writes.
//
// The four streams of literals are decoded by four lanes. zstd_decode.cu has counts and figures.
#pragma once

#include "gpu_engine/cuda/kernels/zstd_sequences.cuh"
#include "gpu_engine/cuda/kernels/zstd_streams.cuh"

namespace nacre::engine::cuda::zstd {

// The memory that the lanes of a warp share.
struct FrameMemory {
  union {
    std::uint16_t huffman[1u << huffman_log_max];
    std::uint32_t weight_table[1u << weight_log_max];
  };
  std::uint32_t literal_lengths[1u << literal_length_shape.log_max];
  std::uint32_t match_lengths[1u << match_length_shape.log_max];
  std::uint32_t offsets[1u << offset_shape.log_max];
  union {
    std::uint32_t ring[ring_word_count + 1];
    FseScratch fse;
    HuffmanScratch weights;
  };
};

class FrameDecoder {
 public:
  __device__ __forceinline__ FrameDecoder(FrameMemory& memory, const CodecTask& task)
      : memory_(memory),
        in_(task.in),
        out_(task.out),
        in_size_(task.in_size),
        out_size_(task.out_size) {}

  // All lanes get the same answer. False: this is not one frame of out_size bytes that is decoded
  // here; out holds anything.
  __device__ __forceinline__ bool run() {
    if (out_size_ - 1 >= plain_size_max || in_size_ > coded_size_max || !read_frame_header())
      return false;
    for (bool is_last = false; !is_last;) {
      if (in_size_ - at_ < 3) return false;
      const std::uint32_t head = byte(at_) | byte(at_ + 1) << 8 | byte(at_ + 2) << 16;
      at_ += 3;
      is_last = (head & 1) != 0;
      limit_ = min(out_size_, to_ + block_max_);
      const std::uint32_t size = head >> 3;
      bool is_good = false;
      switch (static_cast<BlockKind>(head >> 1 & 3)) {
        case BlockKind::raw:
          is_good = copy_raw_block(size);
          break;
        case BlockKind::rle:
          is_good = fill_rle_block(size);
          break;
        case BlockKind::compressed:
          is_good = size <= block_max_ && size <= in_size_ - at_ && decode_block(at_ + size);
          break;
        case BlockKind::reserved:
          break;
      }
      if (!is_good) return false;
      __syncwarp();
    }
    return at_ == in_size_ && to_ == out_size_;
  }

 private:
  __device__ __forceinline__ std::uint32_t byte(std::uint32_t at) const { return load(in_ + at); }

  // A frame as codec/zstd.cpp makes it: with its size, and without checksum and dictionary.
  __device__ inline bool read_frame_header() {
    if (in_size_ < 6) return false;
    if ((byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24) != frame_magic) return false;
    const std::uint32_t descriptor = byte(4);
    if ((descriptor & 0x0f) != 0) return false;
    const bool is_single = (descriptor & 0x20) != 0;
    at_ = 5;
    std::uint32_t window = out_size_;
    if (!is_single) {
      const std::uint32_t exponent = byte(at_) >> 3;
      const std::uint32_t eighths = byte(at_) & 7;
      ++at_;
      if (exponent > 10) return false;
      window = (1024u << exponent) / 8 * (8 + eighths);
      if (window > window_size_max) return false;
    }
    const std::uint32_t size_kind = descriptor >> 6;
    if (size_kind == 0 && !is_single) return false;
    const std::uint32_t size_bytes = 1u << size_kind;
    if (in_size_ - at_ < size_bytes) return false;
    std::uint64_t content = size_kind == 1 ? 256 : 0;
    for (std::uint32_t i = 0; i < size_bytes; ++i)
      content += std::uint64_t{byte(at_ + i)} << 8 * i;
    at_ += size_bytes;
    block_max_ = min(window, block_size_max);
    return content == out_size_;
  }

  __device__ __forceinline__ bool copy_raw_block(std::uint32_t size) {
    if (size > in_size_ - at_ || size > limit_ - to_) return false;
    copy_bytes(out_ + to_, in_ + at_, size);
    at_ += size;
    to_ += size;
    return true;
  }

  __device__ __forceinline__ bool fill_rle_block(std::uint32_t size) {
    if (at_ == in_size_ || size > limit_ - to_) return false;
    fill(to_, size, byte(at_++));
    to_ += size;
    return true;
  }

  __device__ __forceinline__ void fill(std::uint32_t to, std::uint32_t size, std::uint32_t value) {
    for (std::uint32_t i = this_lane(); i < size; i += lane_count)
      store(out_ + to + i, static_cast<Byte>(value));
  }

  // end: the end of the block in the input. A good block is read exactly up to there.
  __device__ inline bool decode_block(std::uint32_t end) {
    if (!read_literals(end)) return false;
    __syncwarp();
    if (at_ == end) return false;
    std::uint32_t count = byte(at_++);
    if (count == 0) {
      if (at_ != end) return false;
    } else {
      if (count >= 128) {
        const std::uint32_t size = count == 255 ? 2 : 1;
        if (end - at_ < size) return false;
        count =
            size == 1 ? (count - 128) << 8 | byte(at_) : (byte(at_) | byte(at_ + 1) << 8) + 0x7f00;
        at_ += size;
      }
      if (count == 0 || !read_tables(end) || at_ == end || !run_sequences(count, end)) return false;
    }
    return copy_last_literals();
  }

  // Where literals are decoded to, or repeated: the end of the block's output.
  __device__ __forceinline__ void place_literals_in_output() {
    literals_ = out_ + (limit_ - literal_count_);
  }

  __device__ inline bool read_literals(std::uint32_t end) {
    const std::uint32_t size = end - at_;
    if (size < 2) return false;
    const std::uint32_t first = byte(at_);
    const auto kind = static_cast<LiteralsKind>(first & 3);
    const std::uint32_t format = first >> 2 & 3;
    const bool is_coded = kind == LiteralsKind::compressed || kind == LiteralsKind::treeless;
    std::uint32_t head_size = format == 1 ? 2 : format == 3 ? 3 : 1;
    if (is_coded) head_size = format == 3 ? 5 : format == 2 ? 4 : 3;
    if (size <= head_size) return false;
    std::uint64_t head = 0;
    for (std::uint32_t i = 0; i < head_size; ++i)
      head |= std::uint64_t{byte(at_ + i)} << 8 * i;
    at_ += head_size;
    if (!is_coded) {
      literal_count_ = static_cast<std::uint32_t>(head >> (format % 2 == 0 ? 3 : 4));
      if (literal_count_ > limit_ - to_) return false;
      if (kind == LiteralsKind::raw) {
        if (literal_count_ > end - at_) return false;
        literals_ = in_ + at_;
        at_ += literal_count_;
        return true;
      }
      place_literals_in_output();
      fill(limit_ - literal_count_, literal_count_, byte(at_++));
      return true;
    }
    const std::uint32_t size_bits = format == 3 ? 18 : format == 2 ? 14 : 10;
    const std::uint32_t size_mask = (1u << size_bits) - 1;
    literal_count_ = static_cast<std::uint32_t>(head >> 4) & size_mask;
    const std::uint32_t coded_size =
        static_cast<std::uint32_t>(head >> (4 + size_bits)) & size_mask;
    if (literal_count_ == 0 || literal_count_ > limit_ - to_ || coded_size > end - at_)
      return false;
    place_literals_in_output();
    const std::uint32_t coded_end = at_ + coded_size;
    if (kind == LiteralsKind::compressed) {
      const HuffmanTable table =
          read_huffman_table(memory_.fse, memory_.weights, memory_.weight_table, memory_.huffman,
                             in_ + at_, coded_size);
      huffman_log_ = table.log;
      if (table.size_bytes == 0) return false;
      at_ += table.size_bytes;
    }
    const bool is_good = huffman_log_ != 0 && decode_literals(format == 0 ? 1 : 4, coded_end);
    at_ = coded_end;
    return is_good;
  }

  __device__ __forceinline__ bool decode_literals(std::uint32_t stream_count, std::uint32_t end) {
    const std::uint32_t lane = this_lane();
    std::uint32_t stream_at = at_;
    std::uint32_t stream_size = end - at_;
    std::uint32_t first = 0;
    std::uint32_t count = literal_count_;
    if (stream_count == 4) {
      if (stream_size < 10 || literal_count_ < 6) return false;
      const std::uint32_t one = byte(at_) | byte(at_ + 1) << 8;
      const std::uint32_t two = byte(at_ + 2) | byte(at_ + 3) << 8;
      const std::uint32_t three = byte(at_ + 4) | byte(at_ + 5) << 8;
      stream_at += 6;
      stream_size -= 6;
      if (one == 0 || two == 0 || three == 0 || one + two + three >= stream_size) return false;
      stream_at += (lane > 0 ? one : 0) + (lane > 1 ? two : 0) + (lane > 2 ? three : 0);
      const std::uint32_t four = stream_size - one - two - three;
      stream_size = lane == 0 ? one : lane == 1 ? two : lane == 2 ? three : four;
      const std::uint32_t quarter = (literal_count_ + 3) / 4;
      first = min(lane, 3u) * quarter;
      if (3 * quarter >= literal_count_) return false;
      count = lane < 3 ? quarter : literal_count_ - 3 * quarter;
    }
    if (stream_size == 0) return false;
    bool is_good = true;
    if (lane < stream_count)
      is_good = LiteralStream(in_ + stream_at, stream_size)
                    .decode(memory_.huffman, huffman_log_, out_ + (limit_ - literal_count_) + first,
                            count);
    return __all_sync(all_lanes, is_good);
  }

  // The tables of a block's sequences.
  __device__ inline bool read_tables(std::uint32_t end) {
    if (at_ == end) return false;
    const std::uint32_t modes = byte(at_++);
    if ((modes & 3) != 0) return false;
    return read_table(static_cast<TableMode>(modes >> 6), end, literal_length_shape,
                      predefined_literal_lengths, memory_.literal_lengths, logs_[0],
                      [](std::uint32_t code) { return literal_length(code).extra_bits; }) &&
           read_table(static_cast<TableMode>(modes >> 4 & 3), end, offset_shape, predefined_offsets,
                      memory_.offsets, logs_[1], [](std::uint32_t code) { return code; }) &&
           read_table(static_cast<TableMode>(modes >> 2 & 3), end, match_length_shape,
                      predefined_match_lengths, memory_.match_lengths, logs_[2],
                      [](std::uint32_t code) { return match_length(code).extra_bits; });
  }

  template <std::size_t symbol_count, typename ExtraBits>
  __device__ inline bool read_table(TableMode mode, std::uint32_t end, const TableShape shape,
                                    const std::int8_t (&predefined)[symbol_count],
                                    std::uint32_t* table, std::uint32_t& log,
                                    ExtraBits extra_bits) {
    if (mode == TableMode::repeat) return log != no_table;
    __syncwarp();
    if (mode == TableMode::rle) {
      if (at_ == end) return false;
      const std::uint32_t symbol = byte(at_++);
      if (symbol > shape.symbol_max) return false;
      if (this_lane() == 0) table[0] = make_entry(0, symbol, extra_bits(symbol), 0);
      log = 0;
      __syncwarp();
      return true;
    }
    std::uint32_t count = symbol_count;
    if (mode == TableMode::predefined) {
      for (std::uint32_t i = this_lane(); i < symbol_count; i += lane_count)
        memory_.fse.probability[i] = predefined[i];
      log = shape.predefined_log;
      __syncwarp();
    } else {
      const Distribution found =
          read_distribution(memory_.fse, in_ + at_, end - at_, shape.symbol_max, shape.log_max);
      if (found.size_bytes == 0) return false;
      at_ += found.size_bytes;
      log = found.log;
      count = found.symbol_count;
    }
    build_fse_table(memory_.fse, table, log, count, extra_bits);
    return true;
  }

  // The sequence of a lane.
  struct Sequence {
    std::uint32_t literals;
    std::uint32_t match;
    std::uint32_t offset;  // as coded
    std::int32_t rest;     // the place of what follows its extra bits
  };

  // Reads count sequences; lane k gets the k-th one. The other lanes have none, and lengths of 0.
  __device__ __forceinline__ Sequence read_batch(SequenceStream& stream, std::uint32_t* states,
                                                 std::uint32_t count) {
    const std::uint32_t lane = this_lane();
    std::uint32_t ll_state = states[0];
    std::uint32_t of_state = states[1];
    std::uint32_t ml_state = states[2];
    std::int32_t at = stream.at();
    std::int32_t my_at = 0;
    std::uint32_t my_ll = 0;
    std::uint32_t my_of = 0;
    std::uint32_t my_ml = 0;
    stream.prepare_batch();
    NACRE_UNROLL_BY_4
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t ll = memory_.literal_lengths[ll_state];
      const std::uint32_t of = memory_.offsets[of_state];
      const std::uint32_t ml = memory_.match_lengths[ml_state];
      if (lane == k) {
        my_at = at;
        my_ll = ll;
        my_of = of;
        my_ml = ml;
      }
      const std::uint32_t sum = ll + of + ml;
      at -= static_cast<std::int32_t>(extra_bits_of(sum));
      std::uint32_t bits = stream.bits_below(at);
      ll_state = next_of(ll) + first_bits(bits, ll);
      bits = bits_after(bits, ll);
      ml_state = next_of(ml) + first_bits(bits, ml);
      bits = bits_after(bits, ml);
      of_state = next_of(of) + first_bits(bits, of);
      at -= static_cast<std::int32_t>(bits_of(sum));
    }
    states[0] = ll_state;
    states[1] = of_state;
    states[2] = ml_state;
    stream.at() = at;

    Sequence sequence = {0, 0, 0, 0};
    if (lane < count) {
      const std::uint32_t code = symbol_of(my_of);
      const Length literals = literal_length(symbol_of(my_ll));
      const Length match = match_length(symbol_of(my_ml));
      sequence.offset = (1u << code) + first_bits(stream.bits_below(my_at), code);
      my_at -= static_cast<std::int32_t>(code);
      const std::uint32_t bits = stream.bits_below(my_at);
      sequence.match = match.base + first_bits(bits, match.extra_bits);
      sequence.literals =
          literals.base + first_bits(bits_after(bits, match.extra_bits), literals.extra_bits);
      sequence.rest = my_at - static_cast<std::int32_t>(match.extra_bits + literals.extra_bits);
      if (code > offset_code_max) sequence.offset = 0;
    }
    return sequence;
  }

  // Replaces the offsets of count lanes by the distances that they stand for; 0, or more than there
  // can be, where there is none.
  __device__ __forceinline__ std::uint32_t find_distance(const Sequence& sequence,
                                                         std::uint32_t count) {
    const std::uint32_t lane = this_lane();
    const bool repeats = lane < count && sequence.offset <= 3;
    if (count == lane_count && !__any_sync(all_lanes, repeats)) {
      const std::uint32_t distance = sequence.offset - 3;
      for (std::uint32_t i = 0; i < 3; ++i)
        last_offsets_[i] = __shfl_sync(all_lanes, distance, static_cast<int>(lane_count - 1 - i));
      return distance;
    }
    // An offset of 0 is not valid, and is refused as such.
    const bool is_none = lane < count && sequence.offset == 0;
    OffsetMap map;
    if (lane < count && !is_none) map = OffsetMap(sequence.offset, sequence.literals != 0);
    for (std::uint32_t distance = 1; distance < lane_count; distance *= 2) {
      const OffsetMap before = map.from_lane_before(distance);
      if (lane >= distance) map = map.after(before);
    }
    const OffsetMap last = OffsetMap::of(last_offsets_[0], last_offsets_[1], last_offsets_[2]);
    map = map.after(last);
    const OffsetMap end = map.from_lane(lane_count - 1);
    for (int i = 0; i < 3; ++i)
      last_offsets_[i] = end[i];
    return is_none ? 0 : map[0];
  }

  __device__ __forceinline__ bool run_sequences(std::uint32_t count, std::uint32_t end) {
    SequenceStream stream(memory_.ring, in_ + at_, end - at_);
    at_ = end;
    if (!stream.is_ended_well()) return false;
    std::uint32_t states[3];
    stream.prepare_batch();
    for (int i = 0; i < 3; ++i) {
      states[i] = first_bits(stream.bits_below(stream.at()), logs_[i]);
      stream.at() -= static_cast<std::int32_t>(logs_[i]);
    }
    if (stream.at() < stream.first_bit()) return false;
    for (;;) {
      const std::uint32_t batch = min(count, lane_count);
      const Sequence sequence = read_batch(stream, states, batch);
      if (!write_batch(sequence, batch)) return false;
      count -= batch;
      if (count != 0) continue;
      // After the last sequence no next states are read.
      const auto rest = static_cast<std::int32_t>(__shfl_sync(
          all_lanes, static_cast<std::uint32_t>(sequence.rest), static_cast<int>(batch - 1)));
      return rest == stream.first_bit();
    }
  }

  __device__ __forceinline__ bool write_batch(const Sequence& sequence, std::uint32_t count) {
    const bool used = this_lane() < count;
    const std::uint32_t distance = find_distance(sequence, count);
    const std::uint32_t literals_end = inclusive_sum(sequence.literals);
    const std::uint32_t end = inclusive_sum(sequence.literals + sequence.match);
    const std::uint32_t begin = end - sequence.literals - sequence.match;
    const std::uint32_t match_begin = begin + sequence.literals;
    const std::uint32_t literals = from_last_lane(literals_end);
    const std::uint32_t total = from_last_lane(end);
    // The literals that are left must fit after the batch.
    if (literals > literal_count_ || total > limit_ - to_ ||
        literal_count_ - literals > limit_ - to_ - total)
      return false;
    const bool breaks = used && distance - 1 >= to_ + match_begin;
    if (__any_sync(all_lanes, breaks)) return false;
    BatchWriter(out_ + to_, literals_)
        .write(used ? begin : all_lanes, match_begin, distance,
               literals_end - sequence.literals - begin, total);
    to_ += total;
    literals_ += literals;
    literal_count_ -= literals;
    return true;
  }

  // Copies the literals after the last sequence. If they wait in the output, they are mostly in
  // place.
  __device__ __forceinline__ bool copy_last_literals() {
    if (literal_count_ > limit_ - to_) return false;
    Byte* const out = out_ + to_;
    to_ += literal_count_;
    if (literals_ == out) return true;
    for (std::uint32_t tile = 0; tile < literal_count_; tile += lane_count) {
      const bool exists = tile + this_lane() < literal_count_;
      Byte value = 0;
      if (exists) value = load(literals_ + tile + this_lane());
      __syncwarp();
      if (exists) store(out + tile + this_lane(), value);
      __syncwarp();
    }
    return true;
  }

  static constexpr std::uint32_t no_table = all_lanes;

  FrameMemory& memory_;
  const Byte* const in_;
  Byte* const out_;
  const std::uint32_t in_size_;
  const std::uint32_t out_size_;
  std::uint32_t at_ = 0;     // in the input
  std::uint32_t to_ = 0;     // in the output
  std::uint32_t limit_ = 0;  // of the block's output
  std::uint32_t block_max_ = 0;
  const Byte* literals_ = nullptr;  // those that are left
  std::uint32_t literal_count_ = 0;
  std::uint32_t huffman_log_ = 0;                           // 0: there is no table yet
  std::uint32_t logs_[3] = {no_table, no_table, no_table};  // literal lengths, offsets, matches
  std::uint32_t last_offsets_[3] = {1, 4, 8};
};

__device__ __forceinline__ bool decode_frame(FrameMemory& memory, const CodecTask& task) {
  return FrameDecoder(memory, task).run();
}

}  // namespace nacre::engine::cuda::zstd
