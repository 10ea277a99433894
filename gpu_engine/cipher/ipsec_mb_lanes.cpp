// SPDX-License-Identifier: Apache-2.0
// The queue of chains that share the library's lanes. The library hands jobs back in the order in
// which they came, so pieces of one size keep all lanes busy.
#include "gpu_engine/cipher/ipsec_mb_lanes.h"

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>
#include <vector>

#include "gpu_engine/base/arena.h"
#include "gpu_engine/cipher/block_cipher_parts.h"

namespace nacre::engine {
namespace {

constexpr std::array<Byte, lane_piece_size_bytes> zeros = {};

// What a lane is working on.
struct Progress {
  Lane* lane;
  std::size_t done = 0;
  std::size_t piece = 0;
  std::size_t slot = 0;
  CipherIv next_iv = {};  // of a decryption: the piece's last block, which its result may overwrite
};

// The chains that wait for a lane, first come, first served. Its capacity is the number of chains
// that it was made for.
class ReadyRing {
 public:
  explicit ReadyRing(std::size_t capacity) : places_(capacity) {}

  bool empty() const { return count_ == 0; }
  void push(Progress& progress) {
    places_[(first_ + count_) % places_.size()] = &progress;
    ++count_;
  }
  Progress& pop() {
    Progress& progress = *places_[first_];
    first_ = (first_ + 1) % places_.size();
    --count_;
    return progress;
  }

 private:
  std::vector<Progress*> places_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

// The chains of one call; the slots hold keystreams in progress. All memory exists before the first
// job: jobs point into it and into the caller's memory, so no job may outlive the call.
class LaneRun {
 public:
  // width: how many chains run at a time, at most lane_count_max.
  LaneRun(std::span<Lane> lanes, std::size_t width)
      : manager_(ipsec_mb_thread_manager()),
        width_(width),
        slots_(lane_scratch(LaneScratch::keystreams)),
        ready_(lanes.size()) {
    progress_.reserve(lanes.size());
    for (Lane& lane : lanes) {
      if (!lane.in.empty()) progress_.push_back({.lane = &lane});
    }
    for (Progress& progress : progress_)
      ready_.push(progress);
    for (std::size_t slot = 0; slot < lane_count_max; ++slot)
      free_slots_[slot] = slot;
  }
  // After a run no job is left in the library. After an exception there may be some.
  ~LaneRun() {
    while (IMB_FLUSH_JOB(manager_) != nullptr) {
    }
  }
  LaneRun(const LaneRun&) = delete;
  LaneRun& operator=(const LaneRun&) = delete;

  void run() {
    std::size_t under_way = 0;
    while (!ready_.empty() || under_way > 0) {
      IMB_JOB* finished = nullptr;
      if (!ready_.empty() && under_way < width_) {
        fill(*IMB_GET_NEXT_JOB(manager_), ready_.pop());
        finished = IMB_SUBMIT_JOB(manager_);
        ++under_way;
      } else {
        finished = IMB_FLUSH_JOB(manager_);
      }
      for (; finished != nullptr; finished = IMB_GET_COMPLETED_JOB(manager_)) {
        --under_way;
        finish(*finished);
      }
    }
    if (failed_) throw std::logic_error("ipsec-mb refused a job");
  }

 private:
  MutableByteView slot(const Progress& progress) {
    return slots_.subspan(progress.slot * lane_piece_size_bytes, lane_piece_size_bytes);
  }

  void fill(IMB_JOB& job, Progress& progress) {
    Lane& lane = *progress.lane;
    const std::size_t block = block_size_bytes(lane.key->cipher());
    progress.slot = free_slots_[--free_slot_count_];
    progress.piece = std::min(lane.in.size() - progress.done, lane_piece_size_bytes);
    const ByteView in = lane.in.subspan(progress.done, progress.piece);
    if (lane.direction == Direction::decrypt)
      std::copy_n(in.end() - static_cast<std::ptrdiff_t>(block), block, progress.next_iv.begin());
    job = {};
    lane.key->set_key(job, lane.schedule);
    job.cipher_direction = lane.direction == Direction::encrypt ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
    job.src = lane.keystream ? zeros.data() : in.data();
    job.dst = lane.keystream ? slot(progress).data() : &lane.out[progress.done];
    job.msg_len_to_cipher_in_bytes = round_up(progress.piece, block);
    job.iv = lane.iv.data();
    job.iv_len_in_bytes = block;
    job.user_data = &progress;
  }

  void finish(const IMB_JOB& job) {
    Progress& progress = *static_cast<Progress*>(job.user_data);
    Lane& lane = *progress.lane;
    free_slots_[free_slot_count_++] = progress.slot;
    if (job.status != IMB_STATUS_COMPLETED) {
      failed_ = true;
      return;
    }
    const std::size_t block = block_size_bytes(lane.key->cipher());
    if (lane.direction == Direction::decrypt) {
      lane.iv = progress.next_iv;
    } else {
      std::copy_n(job.dst + job.msg_len_to_cipher_in_bytes - block, block, lane.iv.begin());
    }
    if (lane.keystream)
      xor_bytes(lane.in.subspan(progress.done, progress.piece), slot(progress),
                lane.out.subspan(progress.done, progress.piece));
    progress.done += progress.piece;
    if (progress.done < lane.in.size()) ready_.push(progress);
  }

  IMB_MGR* const manager_;
  const std::size_t width_;
  const MutableByteView slots_;
  std::vector<Progress> progress_;
  ReadyRing ready_;
  std::array<std::size_t, lane_count_max> free_slots_;
  std::size_t free_slot_count_ = lane_count_max;
  bool failed_ = false;
};

// Whether several chains of size bytes each give the same results together as one by one.
bool des_lanes_agree(BlockCipher cipher, Direction direction, std::size_t count, std::size_t size) {
  Bytes key(key_size_bytes(cipher));
  for (std::size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<Byte>(31 * i + 1);
  const IpsecMbCipherKey cipher_key(cipher, CipherMode::cbc, key);
  Bytes in(count * size);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<Byte>(i / size * 17 + i * 5);
  Bytes together(in.size());
  Bytes alone(in.size());
  const auto lanes_to = [&](Bytes& out) {
    std::vector<Lane> lanes;
    for (std::size_t at = 0; at < in.size(); at += size)
      lanes.push_back({.key = &cipher_key,
                       .direction = direction,
                       .schedule = IpsecMbCipherKey::Schedule::forward,
                       .keystream = false,
                       .in = ByteView(in).subspan(at, size),
                       .out = MutableByteView(out).subspan(at, size),
                       .iv = {}});
    return lanes;
  };
  auto lanes = lanes_to(together);
  LaneRun(lanes, lane_count_max).run();
  lanes = lanes_to(alone);
  LaneRun(lanes, 1).run();
  return together == alone;
}

bool has_wide_instructions(std::uint64_t features) {
  return ipsec_mb_is_available() && (ipsec_mb_functions()->features & features) == features;
}

}  // namespace

MutableByteView lane_scratch(LaneScratch purpose) {
  constexpr std::size_t purpose_count = 3;
  static thread_local Arena scratch;
  if (scratch.size() == 0) {
    auto made = allocate_host_arena(purpose_count * lane_scratch_size_bytes);
    if (!made) throw std::bad_alloc();
    scratch = std::move(*made);
  }
  return {scratch.data() + static_cast<std::size_t>(purpose) * lane_scratch_size_bytes,
          lane_scratch_size_bytes};
}

bool des_lanes_are_sound() {
  static const bool sound = [] {
    for (const BlockCipher cipher : {BlockCipher::des, BlockCipher::des_ede3}) {
      for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        for (const std::size_t count : {std::size_t{2}, lane_count_max}) {
          // The library handles 64 bytes at a time in one way and the rest in another.
          for (const std::size_t size : {8, 72}) {
            if (!des_lanes_agree(cipher, direction, count, size)) return false;
          }
        }
      }
    }
    return true;
  }();
  return sound;
}

void run_lanes(std::span<Lane> lanes) {
  const bool is_des = !lanes.empty() && block_size_bytes(lanes.front().key->cipher()) == 8;
  LaneRun(lanes, is_des && !des_lanes_are_sound() ? 1 : lane_count_max).run();
}

void run_job(IMB_MGR* manager) {
  IMB_JOB* finished = IMB_SUBMIT_JOB(manager);
  if (finished == nullptr) finished = IMB_FLUSH_JOB(manager);
  if (finished == nullptr || finished->status != IMB_STATUS_COMPLETED)
    throw std::logic_error("ipsec-mb refused a job");
}

std::size_t serial_lane_count(BlockCipher cipher) {
  if (chosen_crypto_implementation() != CryptoImplementation::ipsec_mb) return 1;
  if (block_size_bytes(cipher) == 8)
    return has_wide_instructions(IMB_FEATURE_AVX512_SKX) && des_lanes_are_sound() ? lane_count_max
                                                                                  : 1;
  return has_wide_instructions(IMB_FEATURE_AVX512_SKX | IMB_FEATURE_VAES) ? lane_count_max
                                                                          : lane_count_max / 2;
}

void crypt_serial_streams(std::span<SerialStream> streams) {
  std::vector<Lane> lanes;
  for (const BlockCipher cipher : {BlockCipher::aes_128, BlockCipher::aes_192, BlockCipher::aes_256,
                                   BlockCipher::des, BlockCipher::des_ede3}) {
    lanes.clear();
    const SerialStream* last = nullptr;
    for (const SerialStream& stream : streams) {
      if (stream.key->cipher() != cipher) continue;
      const IpsecMbCipherKey* const key = stream.key->lane_key();
      if (key == nullptr) {
        stream.key->crypt(Direction::encrypt, stream.iv, stream.in, stream.out);
        continue;
      }
      last = &stream;
      lanes.push_back({.key = key,
                       .direction = Direction::encrypt,
                       .schedule = IpsecMbCipherKey::Schedule::forward,
                       .keystream = key->mode() == CipherMode::ofb,
                       .in = stream.in,
                       .out = stream.out,
                       .iv = stream.iv});
    }
    if (lanes.size() == 1) {
      last->key->crypt(Direction::encrypt, last->iv, last->in, last->out);
    } else if (!lanes.empty()) {
      run_lanes(lanes);
    }
  }
}

}  // namespace nacre::engine
