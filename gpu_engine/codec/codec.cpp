// SPDX-License-Identifier: Apache-2.0
// The registry: names, numbers, and the checks that every codec shares. The stream of no bytes is
// empty under every codec, so no codec ever sees an empty message.
#include "gpu_engine/codec/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec_parts.h"

namespace nacre::engine {
namespace {

struct Entry {
  Codec codec;
  std::string_view name;
  const CodecParts* parts;
};

// In the order of their numbers.
constexpr std::array<Entry, 7> entries = {{
    {Codec::none, "none", &none_codec},
    {Codec::lz77, "lz77", &lz77_codec},
    {Codec::zstd, "zstd", &zstd_codec},
    {Codec::rle, "rle", &rle_codec},
    {Codec::huffman, "huffman", &huffman_codec},
    {Codec::gdeflate, "gdeflate", &gdeflate_codec},
    {Codec::lzw, "lzw", &lzw_codec},
}};

constexpr std::string_view automatic_name = "auto";

const Entry* find_entry(Codec codec) {
  const auto number = static_cast<std::size_t>(codec);
  return number < entries.size() ? &entries[number] : nullptr;
}

const CodecParts* find_parts(Codec codec) {
  const Entry* entry = find_entry(codec);
  return entry == nullptr ? nullptr : entry->parts;
}

std::string all_names() {
  std::string names;
  for (const Entry& entry : entries)
    names += fmt::format("{}, ", entry.name);
  return names.append(automatic_name);
}

tl::unexpected<Error> fail_unavailable(Codec codec) {
  return fail(ErrorCode::unsupported, fmt::format("codec {} ({}) is not in this build",
                                                  to_string(codec), static_cast<unsigned>(codec)));
}

}  // namespace

std::string_view to_string(Codec codec) {
  if (codec == Codec::automatic) return automatic_name;
  const Entry* entry = find_entry(codec);
  return entry == nullptr ? "unknown" : entry->name;
}

Result<Codec> codec_from_name(std::string_view name) {
  if (name == automatic_name) return Codec::automatic;
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.codec;
  return fail(ErrorCode::invalid_argument,
              fmt::format("unknown codec \"{}\"; use one of {}", name, all_names()));
}

bool codec_is_available(Codec codec) {
  return find_parts(codec) != nullptr;
}

bool codec_is_choosable(Codec codec) {
  return codec == Codec::automatic || codec_is_available(codec);
}

std::size_t stream_size_bound(Codec codec, std::size_t plain_size) {
  if (codec == Codec::automatic) {
    std::size_t bound = 0;
    for (const Entry& entry : entries)
      bound = std::max(bound, stream_size_bound(entry.codec, plain_size));
    return bound;
  }
  const CodecParts* parts = find_parts(codec);
  return parts == nullptr || plain_size == 0 ? 0 : parts->stream_size_bound(plain_size);
}

std::optional<std::size_t> compress_to_fit(Codec codec, int level, ByteView plain,
                                           MutableByteView out, std::size_t size_max) {
  const CodecParts* parts = find_parts(codec);
  if (parts == nullptr || level < 0 || level > codec_level_max ||
      plain.size() > message_size_bytes_max)
    return std::nullopt;
  if (plain.empty()) return 0;
  return parts->compress(level, plain, out, size_max);
}

Result<std::size_t> compress(Codec codec, int level, ByteView plain, MutableByteView out) {
  if (!codec_is_available(codec)) return fail_unavailable(codec);
  if (level < 0 || level > codec_level_max)
    return fail(ErrorCode::invalid_argument,
                fmt::format("compression level {} is not 0 to {}", level, codec_level_max));
  if (plain.size() > message_size_bytes_max)
    return fail(ErrorCode::too_big, "message is longer than 1 GiB");
  if (out.size() < stream_size_bound(codec, plain.size()))
    return fail(ErrorCode::range, "output is smaller than the codec's bound");
  const std::optional<std::size_t> size = compress_to_fit(codec, level, plain, out);
  // A stream that fits by its bound fails only when the codec gets no memory for its tables.
  if (!size) return fail(ErrorCode::out_of_memory, "no memory for the codec's tables");
  return *size;
}

Result<void> decompress(Codec codec, ByteView stream, MutableByteView plain) {
  const CodecParts* parts = find_parts(codec);
  if (parts == nullptr) return fail_unavailable(codec);
  if (plain.size() > message_size_bytes_max)
    return fail(ErrorCode::too_big, "message is longer than 1 GiB");
  bool decoded = false;
  try {
    decoded = plain.empty() ? stream.empty() : parts->decompress(stream, plain);
  } catch (const std::bad_alloc&) {
    wipe(plain);
    throw;
  }
  if (decoded) return {};
  wipe(plain);
  return fail(ErrorCode::corrupt, "compressed stream is malformed");
}

}  // namespace nacre::engine
