// SPDX-License-Identifier: Apache-2.0
// The bits and the text of an inode's codec.
#include "metadata/format/inode_codec.h"

#include <fmt/format.h>

#include "gpu_engine/codec/codec.h"

namespace nacre::metadata {
namespace {

constexpr unsigned codec_shift = 8;
constexpr unsigned level_shift = 12;
constexpr std::uint32_t field_mask = 15;
constexpr std::uint32_t automatic = 15;

}  // namespace

std::optional<InodeCodec> inode_codec(std::uint32_t flags) {
  const std::uint32_t number = flags >> codec_shift & field_mask;
  const auto level = static_cast<int>(flags >> level_shift & field_mask);
  if (number == 0 || level > engine::codec_level_max) return std::nullopt;
  const auto codec =
      number == automatic ? engine::Codec::automatic : static_cast<engine::Codec>(number - 1);
  if (!engine::codec_is_choosable(codec)) return std::nullopt;
  return InodeCodec{codec, level};
}

std::uint32_t with_inode_codec(std::uint32_t flags, const std::optional<InodeCodec>& codec) {
  flags &= ~inode_codec_bits;
  if (!codec) return flags;
  const std::uint32_t number = codec->codec == engine::Codec::automatic
                                   ? automatic
                                   : static_cast<std::uint32_t>(codec->codec) + 1;
  return flags | number << codec_shift | static_cast<std::uint32_t>(codec->level) << level_shift;
}

std::string to_string(const InodeCodec& codec) {
  const std::string_view name = engine::to_string(codec.codec);
  return codec.level == 0 ? std::string(name) : fmt::format("{}:{}", name, codec.level);
}

Result<InodeCodec> inode_codec_from_text(std::string_view text) {
  const std::size_t colon = text.find(':');
  InodeCodec result;
  NACRE_ASSIGN(result.codec, engine::codec_from_name(text.substr(0, colon)));
  if (!engine::codec_is_choosable(result.codec)) return fail(ErrorCode::invalid_argument);
  if (colon == std::string_view::npos) return result;
  const std::string_view level = text.substr(colon + 1);
  if (level.size() != 1 || level[0] < '0' || level[0] > '9') {
    return fail(ErrorCode::invalid_argument, "a level is a digit, 0 to 9");
  }
  result.level = level[0] - '0';
  return result;
}

}  // namespace nacre::metadata
