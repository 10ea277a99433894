// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/cuda/piece_codecs.h"

#include "gpu_engine/cuda/kernels/codecs.h"

namespace nacre::engine::cuda {

const std::array<PieceCodec, device_codecs.size()> piece_codecs = {
    PieceCodec{lz4_encode_workspace_size, lz4_encode, lz4_decode_workspace_size, lz4_decode},
    PieceCodec{rle_encode_workspace_size, rle_encode, rle_decode_workspace_size, rle_decode},
    PieceCodec{lzw_encode_workspace_size, lzw_encode, lzw_decode_workspace_size, lzw_decode},
    PieceCodec{gdeflate_encode_workspace_size, gdeflate_encode, gdeflate_decode_workspace_size,
               gdeflate_decode},
    PieceCodec{huffman_encode_workspace_size, huffman_encode, gdeflate_decode_workspace_size,
               gdeflate_decode},
    PieceCodec{nullptr, nullptr, zstd_decode_workspace_size, zstd_decode},
};

static_assert(CodecPlaces::whole_number == static_cast<std::uint32_t>(Codec::zstd));

DecodedCodecs::DecodedCodecs(Codec codec) {
  for (std::size_t i = 0; i < device_codecs.size(); ++i) {
    if (codec != Codec::automatic && codec != device_codecs[i].codec) continue;
    codecs_[count_] = &piece_codecs[i];
    places_.place[static_cast<std::uint8_t>(device_codecs[i].codec)] =
        static_cast<std::int8_t>(count_++);
  }
}

}  // namespace nacre::engine::cuda
