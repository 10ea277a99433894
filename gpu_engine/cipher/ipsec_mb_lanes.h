// SPDX-License-Identifier: Apache-2.0
// Block ciphers by libipsec-mb: its keys, and the lanes in which it runs several chains of CBC at
// once.
//
// A processor can work on many blocks in the time of one, but in CBC encryption each block waits
// for the last. The library therefore runs up to 16 chains in parallel, one in each lane. OFB's
// keystream is the CBC encryption of zeros, so OFB runs in the same lanes. For DES, where the
// library has only CBC, the other modes do too: see ipsec_mb_cipher_key.cpp.
#pragma once

#include <array>
#include <span>

#include "gpu_engine/cipher/block_cipher.h"
#include "gpu_engine/cipher/ipsec_mb.h"

namespace nacre::engine {

// The number of lanes of DES and 3DES, and of AES on processors with VAES. Other processors have
// eight for AES.
inline constexpr std::size_t lane_count_max = 16;
// How many bytes one job gives to a lane: enough that the jobs themselves cost little, and few
// enough that a lane whose message has ended is soon filled again.
inline constexpr std::size_t lane_piece_size_bytes = 2048;
inline constexpr std::size_t lane_scratch_size_bytes = lane_count_max * lane_piece_size_bytes;

class IpsecMbCipherKey final : public CipherKey {
 public:
  IpsecMbCipherKey(BlockCipher cipher, CipherMode mode, ByteView key);

  void crypt(Direction direction, const CipherIv& iv, ByteView in,
             MutableByteView out) const override;
  const IpsecMbCipherKey* lane_key() const override { return this; }

  // Which key schedule a job uses. reversed: the subkeys of DES in the order with which DES
  // decryption encrypts.
  enum class Schedule : std::uint8_t { forward, reversed };
  // Fills in all fields about the key, in a job that has been zeroed.
  void set_key(IMB_JOB& job, Schedule schedule) const;

 private:
  void expand_aes(ByteView key);
  void expand_des(ByteView key);
  void crypt_aes(Direction direction, CipherIv iv, ByteView in, MutableByteView out) const;
  void crypt_des_blocks(Direction direction, ByteView in, MutableByteView out) const;
  void crypt_des_counters(const CipherIv& iv, ByteView in, MutableByteView out) const;
  void decrypt_des_chain(const CipherIv& iv, ByteView in, MutableByteView out) const;

  SecretBytes schedules_;
  std::array<std::array<const void*, 3>, 2> des_subkeys_ = {};  // into schedules_, by Schedule
};

// One chain of CBC, from in to out, starting at iv. With keystream: out is in XOR the CBC
// encryption of zeros. A run changes iv.
struct Lane {
  const IpsecMbCipherKey* key;
  Direction direction;
  IpsecMbCipherKey::Schedule schedule;
  bool keystream;
  ByteView in;
  MutableByteView out;
  CipherIv iv;
};

// Memory of the calling thread, lane_scratch_size_bytes for each purpose. Core dumps leave it out,
// and it is wiped when the thread ends. Throws std::bad_alloc.
enum class LaneScratch : std::uint8_t { keystreams, chained_blocks, counters };
MutableByteView lane_scratch(LaneScratch purpose);

// Whether the library gives each of several DES chains its own result; tried once. Version 2.0.0
// (Debian 13) fails on processors with AVX-512: two neighbours get each other's results (its issue
// 169, mended in 2.0.1). Where it fails, DES chains run one by one, and automatic means OpenSSL for
// DES.
bool des_lanes_are_sound();

// Runs the chains to their ends. Chains of one cipher and direction share the lanes.
void run_lanes(std::span<Lane> lanes);

// Completes a job that the calling thread's manager has just handed out.
void run_job(IMB_MGR* manager);

}  // namespace nacre::engine
