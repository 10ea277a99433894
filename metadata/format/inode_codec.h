// SPDX-License-Identifier: Apache-2.0
// The codec that an inode asks for, in bits of InodeRow::flags. A file's codec is for chunks that
// are written from now on, a directory's for what is made in it. If an inode has none, the volume's
// codec counts. Users see it as the extended attribute user.nacre.codec: "none", "gdeflate",
// "zstd:7".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"
#include "gpu_engine/codec/codec.h"

namespace nacre::metadata {

inline constexpr std::string_view inode_codec_name = "user.nacre.codec";
// Bits 8 … 11: 0 for none, the codec's number + 1, or 15 for auto; bits 12 … 15: the level.
inline constexpr std::uint32_t inode_codec_bits = 0xff00;

struct InodeCodec {
  engine::Codec codec = engine::Codec::none;
  int level = 0;  // 0 (the codec's default) … 9
  bool operator==(const InodeCodec&) const = default;
};

// Returns none if the flags name no codec, or one that this version does not have.
std::optional<InodeCodec> inode_codec(std::uint32_t flags);
// Returns flags with that codec in place of the old one, or without a codec.
std::uint32_t with_inode_codec(std::uint32_t flags, const std::optional<InodeCodec>& codec);

std::string to_string(const InodeCodec& codec);
// Takes CODEC or CODEC:LEVEL. Error: invalid_argument.
Result<InodeCodec> inode_codec_from_text(std::string_view text);

}  // namespace nacre::metadata
