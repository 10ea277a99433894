// SPDX-License-Identifier: Apache-2.0
// The input of kernels: arrays of tasks in device memory. The host or an earlier kernel of the same
// stream writes them, so sizes that only the device knows need not go to the host.
//
// Pointers are device pointers with no alignment, unless a launcher asks for one. Every launcher
// takes the array, its length and a stream. It returns the error of the launch and does not wait
// for the kernels; errors of running kernels show when the caller synchronises the stream.
// Launchers are thread-safe, if calls that may run at the same time share no output and no
// workspace. A task of size 0 is valid. The outputs of tasks must not overlap each other.
#pragma once

#include <cstdint>

namespace nacre::engine::cuda {

using Byte = std::uint8_t;

// Bytes to encrypt or decrypt with a block cipher; the mode is an argument of the launcher. in ==
// out is allowed. size: whole blocks for ECB and CBC.
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

// Bytes to checksum. before: the checksum of the bytes that come before them, 0 if there are none.
struct ChecksumTask {
  const Byte* data;
  std::uint64_t size;
  std::uint32_t before;
};

// A piece of at most 64 KiB to encode or decode, or a whole zstd frame of at most 1 MiB to decode.
// A piece's code is what docs/FORMAT.md, "Sub-blocks", has after a sub-block's word. Encode:
// results[i] becomes the size of the code, or 0 if it would not be smaller than the piece or does
// not fit in out_size. Decode: results[i] becomes 1 if `in` is exactly the code of out_size bytes,
// else 0. Whatever `in` holds, nothing outside `out` is written, and nothing outside the two is
// read except bytes that share an aligned word with them (codecs.h).
struct CodecTask {
  const Byte* in;
  Byte* out;
  std::uint32_t in_size;
  std::uint32_t out_size;
};

}  // namespace nacre::engine::cuda
