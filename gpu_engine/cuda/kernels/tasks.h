// SPDX-License-Identifier: Apache-2.0
// The input of kernels: arrays of tasks in device memory, written by the host or by an earlier
// kernel of the same stream (so that sizes which only the device knows never wait for the host).
//
// Pointers are device pointers with no alignment, unless a launcher asks for one. Every launcher
// takes the array, its length and a stream, returns the launch's error, and synchronises nothing. A
// task of size 0 is valid. Tasks' outputs do not overlap each other.
#pragma once

#include <cstdint>

namespace nacre::engine::cuda {

using Byte = std::uint8_t;

// Bytes to encrypt or decrypt under a block cipher in one mode, which the launcher names. in == out
// is allowed. size: whole blocks for ECB and CBC.
struct CryptTask {
  const Byte* in;
  Byte* out;
  std::uint64_t size;
  std::uint32_t key;  // index into the table of expanded keys
  Byte iv[16];        // CBC, OFB: the IV; CTR: the first counter block, a number of 128 bits
};

// Bytes to seal or open under a suite that authenticates. in == out is allowed.
struct AeadTask {
  const Byte* in;
  Byte* out;
  std::uint64_t size;
  const Byte* aad;
  std::uint32_t aad_size;
  std::uint32_t key;
  Byte nonce[12];
  Byte* tag;  // seal: written; open: compared
};

// Bytes to checksum, continuing from the checksum of the bytes before them (0 when there are none).
struct ChecksumTask {
  const Byte* data;
  std::uint64_t size;
  std::uint32_t before;
};

// A piece of at most 64 KiB to code or decode (docs/FORMAT.md, "Sub-blocks": the bytes after a
// sub-block's word). Encode: results[i] is the code's size, or 0 when it would not be smaller than
// the piece or does not fit in out_size. Decode: results[i] is 1 when in is exactly the code of
// out_size bytes, else 0; whatever in holds, nothing outside the two ranges is read or written.
struct CodecTask {
  const Byte* in;
  Byte* out;
  std::uint32_t in_size;
  std::uint32_t out_size;
};

}  // namespace nacre::engine::cuda
