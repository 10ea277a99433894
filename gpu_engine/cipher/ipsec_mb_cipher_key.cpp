// SPDX-License-Identifier: Apache-2.0
// Block ciphers by libipsec-mb, one message at a time.
//
// AES: one job runs a whole message in the modes whose blocks are independent. The library has two
// limits, which this code observes: a length in 16 bits for ECB, and a counter of which only the
// last 32 bits count.
//
// DES: the library has only CBC, and one message is one lane of 16. So a message is cut into as
// many chains as there are lanes:
//   CBC decryption  P_i = D(C_i) ^ C_(i-1): each chain starts from the block before it.
//   ECB decryption  = CBC decryption ^ the block before; no block before the first of a chain.
//   ECB encryption  = ECB decryption with the subkeys in reverse: encryption and decryption of DES
//                     differ in nothing else.
//                     For 3DES, D_a(E_b(D_c(x))) is to be E_k3(D_k2(E_k1(x))): a, b, c are k3, k2,
//                     k1, each reversed.
//   CTR             = ECB encryption of counters.
#include <algorithm>

#include "gpu_engine/cipher/block_cipher_parts.h"
#include "gpu_engine/cipher/ipsec_mb_lanes.h"

namespace nacre::engine {
namespace {

constexpr std::size_t des_block_size_bytes = 8;
constexpr std::size_t des_round_count = 16;
constexpr std::size_t aes_schedule_size_bytes = 16 * 15;
constexpr std::size_t aes_ecb_piece_size_bytes_max = 32u << 10;
constexpr std::size_t aes_piece_size_bytes_max = 1u << 20;
// How many bytes of one DES message run in the lanes together.
constexpr std::size_t des_chunk_size_bytes = lane_scratch_size_bytes;

using DesSchedule = std::array<std::uint64_t, des_round_count>;
static_assert(sizeof(DesSchedule) == IMB_DES_KEY_SCHED_SIZE);

std::uint32_t last_word(const CipherIv& counter) {
  return std::uint32_t{counter[12]} << 24 | std::uint32_t{counter[13]} << 16 |
         std::uint32_t{counter[14]} << 8 | counter[15];
}

// How many bytes come before the last 32 bits of the counter wrap to zero.
std::uint64_t size_before_wrap(const CipherIv& counter) {
  return ((std::uint64_t{1} << 32) - last_word(counter)) * block_size_bytes_max;
}

std::size_t chain_size(std::size_t size) {
  return round_up((size + lane_count_max - 1) / lane_count_max, des_block_size_bytes);
}

}  // namespace

IpsecMbCipherKey::IpsecMbCipherKey(BlockCipher cipher, CipherMode mode, ByteView key)
    : CipherKey(cipher, mode) {
  if (block_size_bytes(cipher) == des_block_size_bytes) {
    expand_des(key);
  } else {
    expand_aes(key);
  }
}

void IpsecMbCipherKey::expand_aes(ByteView key) {
  schedules_ = SecretBytes(2 * aes_schedule_size_bytes);
  Byte* const encrypting = schedules_.mutable_view().data();
  Byte* const decrypting = encrypting + aes_schedule_size_bytes;
  const IMB_MGR* const functions = ipsec_mb_functions();
  if (cipher() == BlockCipher::aes_128) {
    IMB_AES_KEYEXP_128(functions, key.data(), encrypting, decrypting);
  } else if (cipher() == BlockCipher::aes_192) {
    IMB_AES_KEYEXP_192(functions, key.data(), encrypting, decrypting);
  } else {
    IMB_AES_KEYEXP_256(functions, key.data(), encrypting, decrypting);
  }
}

void IpsecMbCipherKey::expand_des(ByteView key) {
  const std::size_t key_count = key.size() / des_block_size_bytes;
  schedules_ = SecretBytes(2 * key_count * sizeof(DesSchedule));
  auto* const schedules = reinterpret_cast<DesSchedule*>(schedules_.mutable_view().data());
  for (std::size_t i = 0; i < key_count; ++i) {
    DesSchedule& forward = schedules[i];
    DesSchedule& reversed = schedules[key_count + i];
    IMB_DES_KEYSCHED(ipsec_mb_functions(), forward.data(), key.data() + i * des_block_size_bytes);
    std::reverse_copy(forward.begin(), forward.end(), reversed.begin());
    des_subkeys_[0][i] = &forward;
    des_subkeys_[1][key_count - 1 - i] = &reversed;
  }
}

void IpsecMbCipherKey::set_key(IMB_JOB& job, Schedule schedule) const {
  job.chain_order = IMB_ORDER_CIPHER_HASH;
  job.hash_alg = IMB_AUTH_NULL;
  job.key_len_in_bytes = key_size_bytes(cipher());
  if (block_size_bytes(cipher()) == des_block_size_bytes) {
    const auto& subkeys = des_subkeys_[static_cast<std::size_t>(schedule)];
    const bool triple = cipher() == BlockCipher::des_ede3;
    job.cipher_mode = triple ? IMB_CIPHER_DES3 : IMB_CIPHER_DES;
    job.enc_keys = triple ? static_cast<const void*>(subkeys.data()) : subkeys[0];
    job.dec_keys = job.enc_keys;
  } else {
    job.cipher_mode = IMB_CIPHER_CBC;
    job.enc_keys = schedules_.view().data();
    job.dec_keys = schedules_.view().data() + aes_schedule_size_bytes;
  }
}

void IpsecMbCipherKey::crypt(Direction direction, const CipherIv& iv, ByteView in,
                             MutableByteView out) const {
  if (in.empty()) return;
  if (is_serial(mode(), direction)) {
    Lane lane = {.key = this,
                 .direction = Direction::encrypt,
                 .schedule = Schedule::forward,
                 .keystream = mode() == CipherMode::ofb,
                 .in = in,
                 .out = out,
                 .iv = iv};
    run_lanes({&lane, 1});
  } else if (block_size_bytes(cipher()) != des_block_size_bytes) {
    crypt_aes(direction, iv, in, out);
  } else if (mode() == CipherMode::cbc) {
    decrypt_des_chain(iv, in, out);
  } else if (mode() == CipherMode::ctr) {
    crypt_des_counters(iv, in, out);
  } else {
    crypt_des_blocks(direction, in, out);
  }
}

void IpsecMbCipherKey::crypt_aes(Direction direction, CipherIv iv, ByteView in,
                                 MutableByteView out) const {
  IMB_MGR* const manager = ipsec_mb_thread_manager();
  const std::size_t piece_max =
      mode() == CipherMode::ecb ? aes_ecb_piece_size_bytes_max : aes_piece_size_bytes_max;
  for (std::size_t at = 0; at < in.size();) {
    std::size_t piece = std::min(in.size() - at, piece_max);
    CipherIv next_iv = iv;
    IMB_JOB& job = *IMB_GET_NEXT_JOB(manager);
    job = {};
    set_key(job, Schedule::forward);
    if (mode() == CipherMode::ecb) {
      job.cipher_mode = IMB_CIPHER_ECB;
    } else if (mode() == CipherMode::ctr) {
      job.cipher_mode = IMB_CIPHER_CNTR;
      piece = static_cast<std::size_t>(std::min<std::uint64_t>(piece, size_before_wrap(iv)));
      advance_counter(next_iv, piece / block_size_bytes_max);
    } else {
      // Read before an output in the same memory overwrites it.
      std::copy_n(&in[at + piece - block_size_bytes_max], block_size_bytes_max, next_iv.begin());
    }
    job.cipher_direction = direction == Direction::encrypt || mode() == CipherMode::ctr
                               ? IMB_DIR_ENCRYPT
                               : IMB_DIR_DECRYPT;
    job.src = &in[at];
    job.dst = &out[at];
    job.msg_len_to_cipher_in_bytes = piece;
    job.iv = iv.data();
    job.iv_len_in_bytes = mode() == CipherMode::ecb ? 0 : iv.size();
    run_job(manager);
    iv = next_iv;
    at += piece;
  }
}

void IpsecMbCipherKey::decrypt_des_chain(const CipherIv& iv, ByteView in,
                                         MutableByteView out) const {
  std::array<Lane, lane_count_max> lanes;
  std::size_t count = 0;
  const std::size_t size = chain_size(in.size());
  for (std::size_t at = 0; at < in.size(); at += size) {
    const std::size_t piece = std::min(size, in.size() - at);
    Lane& lane = lanes[count++];
    lane = {.key = this,
            .direction = Direction::decrypt,
            .schedule = Schedule::forward,
            .keystream = false,
            .in = in.subspan(at, piece),
            .out = out.subspan(at, piece),
            .iv = iv};
    if (at > 0) std::copy_n(&in[at - des_block_size_bytes], des_block_size_bytes, lane.iv.begin());
  }
  run_lanes(std::span(lanes).first(count));
}

void IpsecMbCipherKey::crypt_des_blocks(Direction direction, ByteView in,
                                        MutableByteView out) const {
  const Schedule schedule =
      direction == Direction::decrypt ? Schedule::forward : Schedule::reversed;
  const MutableByteView chained = lane_scratch(LaneScratch::chained_blocks);
  for (std::size_t chunk_at = 0; chunk_at < in.size(); chunk_at += des_chunk_size_bytes) {
    const std::size_t chunk_size = std::min(des_chunk_size_bytes, in.size() - chunk_at);
    const ByteView chunk = in.subspan(chunk_at, chunk_size);
    const std::size_t size = chain_size(chunk_size);
    std::array<Lane, lane_count_max> lanes;
    std::size_t count = 0;
    for (std::size_t at = 0; at < chunk_size; at += size) {
      const std::size_t piece = std::min(size, chunk_size - at);
      lanes[count++] = {.key = this,
                        .direction = Direction::decrypt,
                        .schedule = schedule,
                        .keystream = false,
                        .in = chunk.subspan(at, piece),
                        .out = chained.subspan(at, piece),
                        .iv = {}};
    }
    run_lanes(std::span(lanes).first(count));
    std::uint64_t before = 0;
    for (std::size_t at = 0; at < chunk_size; at += des_block_size_bytes) {
      if (at % size == 0) before = 0;
      const auto block = load_le<std::uint64_t>(&chunk[at]);
      store_le(&out[chunk_at + at], load_le<std::uint64_t>(&chained[at]) ^ before);
      before = block;
    }
  }
}

void IpsecMbCipherKey::crypt_des_counters(const CipherIv& iv, ByteView in,
                                          MutableByteView out) const {
  CipherIv counter = iv;
  const MutableByteView keystream = lane_scratch(LaneScratch::counters);
  for (std::size_t at = 0; at < in.size(); at += keystream.size()) {
    const std::size_t piece = std::min(keystream.size(), in.size() - at);
    const MutableByteView blocks = keystream.first(round_up(piece, des_block_size_bytes));
    write_counter_blocks(MutableByteView(counter).first(des_block_size_bytes), blocks);
    crypt_des_blocks(Direction::encrypt, blocks, blocks);
    xor_bytes(in.subspan(at, piece), blocks, out.subspan(at, piece));
  }
}

std::shared_ptr<const CipherKey> create_ipsec_mb_cipher_key(BlockCipher cipher, CipherMode mode,
                                                            ByteView key) {
  return std::make_shared<const IpsecMbCipherKey>(cipher, mode, key);
}

}  // namespace nacre::engine
