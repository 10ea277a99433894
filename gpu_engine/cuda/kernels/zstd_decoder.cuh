// SPDX-License-Identifier: Apache-2.0
// Decodes a zstd frame (RFC 8878) with a warp. It takes the frames of codec zstd that libzstd makes
// (codec/zstd.cpp), of at most plain_size_max bytes. What it takes, libzstd takes too, and gives
// the same bytes; libzstd also takes some frames that no encoder makes.
//
// The plain loop of a compressed block, without its checks:
//
//   literals = decode 1 or 4 Huffman streams;
//   for (i = 0; i < sequence_count; ++i) {
//     literal_length, match_length, offset = what the states of three FSE tables say, plus bits;
//     offset = one of the last three where it is below 4, else offset - 3;
//     copy(out, literals, literal_length), then match_length bytes from offset back;
//     each state = its table's next one, plus bits;
//   }
//   copy what is left of the literals;
//
// A place of the bit stream is known when the states of the sequence before it are, and so one
// chain leads through all sequences. What is not on the chain is done for 32 sequences at once:
//
// 1. The chain. All lanes follow it, so that no lane waits for another: three look-ups, a sum of
//    their bits, one load of 32 bits, three shifts. Lane k keeps place and entries of sequence k.
// 2. Each lane reads the extra bits of its own sequence.
// 3. Repeated offsets. What a sequence does to the last three offsets is a map: each of the three
//    is a new value or an old one, perhaps less 1. Maps are composed, in five steps for 32
//    sequences (OffsetMap). A batch that repeats no offset needs none.
// 4. Sums of lengths give the places. All is checked before a byte of the batch is written.
// 5. Bytes are written 32 at a time, a lane a byte, as in lz4_decoder.cuh: a count of the sequences
//    begun names a lane's sequence, and pointer doubling finds a byte that one of these 32 gives.
//    Four such tiles are moved at once, or two, where none takes bytes of them.
//
// Literals lie at the end of the block's output. A literal's own place is never behind the place
// where it waits, since what stands between is written by matches. So they need no other memory: a
// tile reads its literals before it writes.
//
// The four streams of literals are four lanes' work. zstd_decode.cu has counts and figures.
#pragma once

#include "gpu_engine/cuda/kernels/zstd_tables.cuh"

namespace nacre::engine::cuda::zstd {

// Words of the sequences' bit stream that are at hand: those of the batch that is read and the one
// that follows. The first word stands behind the last one again.
inline constexpr std::uint32_t ring_word_count = 256;
// The most bits of a sequence: offset, lengths, and three states.
inline constexpr std::uint32_t sequence_bits_max = 31 + 16 + 16 + 9 + 9 + 8;
inline constexpr std::uint32_t batch_words_max = lane_count * sequence_bits_max / 32 + 2;
static_assert(2 * (batch_words_max + lane_count) <= ring_word_count);

// What a warp shares.
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

// What sequences do to the last three offsets: each is a value, or an earlier one of the three,
// less a number.
class OffsetMap {
 public:
  // Leaves all as it is.
  __device__ __forceinline__ OffsetMap() : to_{earlier(0, 0), earlier(1, 0), earlier(2, 0)} {}

  // Of one sequence. value: its offset's, as coded.
  __device__ __forceinline__ OffsetMap(std::uint32_t value, bool has_literals) : OffsetMap() {
    const std::uint32_t which = value - 1 + (has_literals ? 0 : 1);
    if (value > 3 || which >= 2) to_[2] = earlier(1, 0);
    if (value > 3 || which >= 1) to_[1] = earlier(0, 0);
    if (value > 3)
      to_[0] = value - 3;
    else if (which == 3)
      to_[0] = earlier(0, 1);
    else
      to_[0] = earlier(which, 0);
  }

  __device__ __forceinline__ OffsetMap from_lane_before(std::uint32_t distance) const {
    OffsetMap map;
    for (int i = 0; i < 3; ++i)
      map.to_[i] = __shfl_up_sync(all_lanes, to_[i], distance);
    return map;
  }
  __device__ __forceinline__ OffsetMap from_lane(std::uint32_t lane) const {
    OffsetMap map;
    for (int i = 0; i < 3; ++i)
      map.to_[i] = __shfl_sync(all_lanes, to_[i], static_cast<int>(lane));
    return map;
  }

  // What this map makes of the results of the one before it.
  __device__ __forceinline__ OffsetMap after(const OffsetMap& before) const {
    OffsetMap map;
    for (int i = 0; i < 3; ++i)
      map.to_[i] = before.resolve(to_[i]);
    return map;
  }
  __device__ __forceinline__ std::uint32_t resolve(std::uint32_t to) const {
    if ((to & earlier_flag) == 0) return to;
    const std::uint32_t which = to >> 24 & 3;
    const std::uint32_t of = which == 0 ? to_[0] : which == 1 ? to_[1] : to_[2];
    return of - (less_nothing - (to & 0xffffff));
  }

  __device__ __forceinline__ std::uint32_t operator[](int i) const { return to_[i]; }
  __device__ __forceinline__ static OffsetMap of(std::uint32_t first, std::uint32_t second,
                                                 std::uint32_t third) {
    OffsetMap map;
    map.to_[0] = first;
    map.to_[1] = second;
    map.to_[2] = third;
    return map;
  }

 private:
  // Numbers of a batch are subtracted from the lower 24 bits, which are at least 32 then.
  static constexpr std::uint32_t earlier_flag = 1u << 31;
  static constexpr std::uint32_t less_nothing = 1u << 16;
  __device__ __forceinline__ static std::uint32_t earlier(std::uint32_t which, std::uint32_t less) {
    return earlier_flag | which << 24 | (less_nothing - less);
  }

  std::uint32_t to_[3];
};

// A Huffman stream, which one lane reads.
class LiteralStream {
 public:
  // size is not 0.
  __device__ __forceinline__ LiteralStream(const Byte* bytes, std::uint32_t size)
      : in_(bytes, size) {
    const std::uint32_t mark = in_.end_mark();
    is_ended_well_ = mark != 0;
    high_at_ = static_cast<std::int32_t>(mark / 32);
    taken_ = 32 - mark % 32;
    high_ = in_.word(high_at_);
    low_ = in_.word(high_at_ - 1);
    ahead_ = in_.word(high_at_ - 2);
    move_on();
  }

  // Decodes count symbols. Returns whether these were all that the stream holds.
  __device__ __forceinline__ bool decode(const std::uint16_t* table, std::uint32_t log, Byte* out,
                                         std::uint32_t count) {
    if (!is_ended_well_) return false;
    const std::uint32_t shift = 32 - log;
    const std::uint32_t to_aligned =
        static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(out)) & 3;
    const std::uint32_t head = min(count, to_aligned);
    for (std::uint32_t i = 0; i < head; ++i)
      store(out + i, static_cast<Byte>(next(table, shift) >> 8));
    out += head;
    count -= head;
    for (; count >= 4; count -= 4, out += 4) {
      const std::uint32_t two = next_two(table, shift);
      store(reinterpret_cast<std::uint32_t*>(out), two | next_two(table, shift) << 16);
    }
    for (std::uint32_t i = 0; i < count; ++i)
      store(out + i, static_cast<Byte>(next(table, shift) >> 8));
    return 32 * (high_at_ + 1) - static_cast<std::int32_t>(taken_) ==
           static_cast<std::int32_t>(in_.first_bit());
  }

 private:
  // Codes of two symbols have at most 22 bits, so 32 are enough for them.
  static_assert(2 * huffman_log_max <= 32);
  __device__ __forceinline__ std::uint32_t next_two(const std::uint16_t* table,
                                                    std::uint32_t shift) {
    const std::uint32_t bits = __funnelshift_l(low_, high_, taken_);
    const std::uint32_t one = table[bits >> shift];
    const std::uint32_t two = table[bits_after(bits, one) >> shift];
    taken_ += (one + two) & 0xff;
    move_on();
    return one >> 8 | (two & 0xff00);
  }
  // The symbol's entry.
  __device__ __forceinline__ std::uint32_t next(const std::uint16_t* table, std::uint32_t shift) {
    const std::uint32_t entry = table[__funnelshift_l(low_, high_, taken_) >> shift];
    taken_ += entry & 0xff;
    move_on();
    return entry;
  }
  // Before the stream's first bits stand zeros.
  __device__ __forceinline__ void move_on() {
    if (taken_ < 32) return;
    taken_ -= 32;
    --high_at_;
    high_ = low_;
    low_ = ahead_;
    ahead_ = in_.word(high_at_ - 2);
  }

  const InputWords in_;
  // The words that are read; the bits follow the first taken_ (0 … 31) of high_'s.
  std::uint32_t high_ = 0;
  std::uint32_t low_ = 0;
  std::uint32_t ahead_ = 0;
  std::int32_t high_at_ = 0;
  std::uint32_t taken_ = 0;
  bool is_ended_well_ = false;
};

// The bit stream of sequences: a window of it in shared memory.
class SequenceStream {
 public:
  // All lanes together, as are the other functions. size is not 0.
  __device__ __forceinline__ SequenceStream(std::uint32_t* ring, const Byte* bytes,
                                            std::uint32_t size)
      : ring_(ring), in_(bytes, size) {
    const std::uint32_t mark = in_.end_mark();
    is_ended_well_ = mark != 0;
    at_ = static_cast<std::int32_t>(mark);
    low_ = static_cast<std::int32_t>((in_.word_count() + lane_count - 1) / lane_count * lane_count);
    ahead_ = in_.word(low_ - static_cast<std::int32_t>(lane_count - this_lane()));
  }

  __device__ __forceinline__ bool is_ended_well() const { return is_ended_well_; }
  __device__ __forceinline__ std::int32_t first_bit() const {
    return static_cast<std::int32_t>(in_.first_bit());
  }
  // The place of what is read next. It may lie before the stream.
  __device__ __forceinline__ std::int32_t& at() { return at_; }

  // Brings the words of a batch from here on. Those of the batch before it stay, but nobody may
  // still read those of earlier ones.
  __device__ __forceinline__ void prepare_batch() {
    const std::int32_t need = (at_ >> 5) - static_cast<std::int32_t>(batch_words_max);
    __syncwarp();
    while (low_ > need && low_ > 0) {
      low_ -= static_cast<std::int32_t>(lane_count);
      const std::uint32_t place = static_cast<std::uint32_t>(low_) % ring_word_count + this_lane();
      ring_[place] = ahead_;
      if (place == 0) ring_[ring_word_count] = ahead_;
      ahead_ = in_.word(low_ - static_cast<std::int32_t>(lane_count - this_lane()));
    }
    __syncwarp();
  }

  // The 32 bits below a place, of which the highest is read first. A lane's own. Anything where it
  // lies before the stream or is not at hand.
  __device__ __forceinline__ std::uint32_t bits_below(std::int32_t place) const {
    const auto from = static_cast<std::uint32_t>(place) - 32;
    const std::uint32_t* const word = ring_ + from / 32 % ring_word_count;
    return __funnelshift_r(word[0], word[1], from);
  }

 private:
  std::uint32_t* const ring_;
  const InputWords in_;
  std::int32_t at_ = 0;
  std::int32_t low_ = 0;     // the lowest word that is in the ring
  std::uint32_t ahead_ = 0;  // the lane's word of the next ones
  bool is_ended_well_ = false;
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

  // end: of the block in the input. It is reached where the block is good.
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

  // A sequence, which a lane has.
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
    // What is left of the literals has to fit behind the batch.
    if (literals > literal_count_ || total > limit_ - to_ ||
        literal_count_ - literals > limit_ - to_ - total)
      return false;
    const bool breaks = used && distance - 1 >= to_ + match_begin;
    if (__any_sync(all_lanes, breaks)) return false;
    write_bytes(used ? begin : all_lanes, match_begin, distance,
                literals_end - sequence.literals - begin, total);
    to_ += total;
    literals_ += literals;
    literal_count_ -= literals;
    return true;
  }

  // Writes total bytes. Counted from the first of them: begin is where the lane's sequence begins,
  // match_begin where its match does, and to_literal is added to a place to get its literal's.
  __device__ __forceinline__ void write_bytes(std::uint32_t begin, std::uint32_t match_begin,
                                              std::uint32_t distance, std::uint32_t to_literal,
                                              std::uint32_t total) {
    Byte* const out = out_ + to_;
    const Batch batch = {begin, match_begin, distance, to_literal, total};
    std::uint32_t owners = all_lanes;  // sequences begun before this tile, minus one
    std::uint32_t tile = 0;
    for (; tile + 3 * lane_count < total; tile += 4 * lane_count) {
      Source sources[4];
      NACRE_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i)
        sources[i] = find_source(batch, out, tile + i * lane_count, owners);
      if (!take_from_each_other(sources[0], sources[1], sources[2], sources[3])) {
        move_all(out + tile, sources);
      } else {
        move_two(out + tile, sources[0], sources[1]);
        move_two(out + tile + 2 * lane_count, sources[2], sources[3]);
      }
    }
    for (; tile + lane_count < total; tile += 2 * lane_count) {
      const Source one = find_source(batch, out, tile, owners);
      const Source two = find_source(batch, out, tile + lane_count, owners);
      move_two(out + tile, one, two);
    }
    if (tile < total) move(out + tile, find_source(batch, out, tile, owners));
  }

  // A lane's sequence, as write_bytes() has it.
  struct Batch {
    std::uint32_t begin;
    std::uint32_t match_begin;
    std::uint32_t distance;
    std::uint32_t to_literal;
    std::uint32_t total;  // of all lanes
  };
  // Of a byte of a tile: where it lies.
  struct Source {
    const Byte* from;    // nullptr where the tile has no such byte
    std::uint32_t back;  // how far in front of its place, of a match; else all_lanes
  };

  __device__ __forceinline__ Source find_source(const Batch& batch, Byte* out, std::uint32_t tile,
                                                std::uint32_t& owners) const {
    const std::uint32_t place = batch.begin - tile;
    const std::uint32_t begins = or_of_lanes(place < lane_count ? 1u << place : 0);
    const int owner = static_cast<int>(owners + __popc(begins & lanes_up_to_here()));
    owners += __popc(begins);
    const std::uint32_t here = tile + this_lane();
    const bool literal = here < __shfl_sync(all_lanes, batch.match_begin, owner);
    const std::uint32_t back = __shfl_sync(all_lanes, batch.distance, owner);
    const std::uint32_t delta = __shfl_sync(all_lanes, batch.to_literal, owner);
    if (here >= batch.total) return {nullptr, all_lanes};
    if (literal) return {literals_ + (here + delta), all_lanes};
    return {out + here - back, back};
  }

  // Whether tiles that follow each other take bytes of each other or of themselves. Literals do not
  // count: no tile's literals lie where one before it writes.
  template <typename... Sources>
  __device__ __forceinline__ static bool take_from_each_other(const Sources&... sources) {
    std::uint32_t place = this_lane();
    bool takes = false;
    ((takes = takes || sources.back <= place, place += lane_count), ...);
    return __any_sync(all_lanes, takes);
  }

  // For tiles that take no bytes of each other. Only the last one may be shorter than a warp.
  __device__ __forceinline__ static void move_all(Byte* to, const Source (&sources)[4]) {
    Byte bytes[4] = {};
    NACRE_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i)
      if (i < 3 || sources[i].from != nullptr) bytes[i] = load(sources[i].from);
    __syncwarp();
    NACRE_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i)
      if (i < 3 || sources[i].from != nullptr) store(to + i * lane_count + this_lane(), bytes[i]);
    __syncwarp();
  }

  __device__ __forceinline__ static void move_two(Byte* to, const Source& one, const Source& two) {
    if (take_from_each_other(one, two)) {
      move(to, one);
      move(to + lane_count, two);
      return;
    }
    Byte byte_two{};
    const Byte byte_one = load(one.from);
    if (two.from != nullptr) byte_two = load(two.from);
    __syncwarp();
    store(to + this_lane(), byte_one);
    if (two.from != nullptr) store(to + lane_count + this_lane(), byte_two);
    __syncwarp();
  }

  __device__ __forceinline__ static void move(Byte* to, const Source& source) {
    const std::uint32_t lane = this_lane();
    const bool waits = source.back <= lane;
    std::uint32_t value = 0;
    if (source.from != nullptr && !waits) value = load(source.from);
    if (__any_sync(all_lanes, waits))
      value = take_from_lanes(value, waits ? lane - source.back : lane);
    __syncwarp();
    if (source.from != nullptr) store(to + lane, static_cast<Byte>(value));
    __syncwarp();
  }

  // The value of the lane to which giver leads, over any number of lanes.
  __device__ __forceinline__ static std::uint32_t take_from_lanes(std::uint32_t value,
                                                                  std::uint32_t giver) {
    for (;;) {
      const std::uint32_t next = __shfl_sync(all_lanes, giver, static_cast<int>(giver));
      if (!__any_sync(all_lanes, next != giver)) break;
      giver = next;
    }
    return __shfl_sync(all_lanes, value, static_cast<int>(giver));
  }

  // The literals behind the last sequence. Those in the output are mostly in their place.
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
