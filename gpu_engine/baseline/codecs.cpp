// SPDX-License-Identifier: Apache-2.0
// Compression libraries: liblz4 and libzstd on their own formats, which the engine uses too;
// libdeflate and zlib on deflate, which GDeflate is made of.
#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>
#if NACRE_HAS_LIBDEFLATE
#include <libdeflate.h>
#endif
#if NACRE_HAS_ZLIB
#include <zlib.h>
#endif

#include <fmt/format.h>

#include "gpu_engine/baseline/baseline_parts.h"

namespace nacre::engine {
namespace {

using Size = std::optional<std::size_t>;

const char* chars(ByteView bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(MutableByteView bytes) {
  return reinterpret_cast<char*>(bytes.data());
}

// The acceleration of the fast matcher, or the level of the thorough one, as in codec/lz77.cpp.
std::unique_ptr<Baseline> make_lz4_encoder(int level) {
  constexpr int accelerations[5] = {1, 8, 4, 2, 1};
  constexpr int thorough_levels[5] = {3, 4, 6, 9, LZ4HC_CLEVEL_MAX};
  if (level < 5) {
    return each_piece([acceleration = accelerations[level]](ByteView in, MutableByteView out) {
      const int size = LZ4_compress_fast(chars(in), chars(out), static_cast<int>(in.size()),
                                         static_cast<int>(out.size()), acceleration);
      return size > 0 ? Size(static_cast<std::size_t>(size)) : std::nullopt;
    });
  }
  return each_piece([thorough = thorough_levels[level - 5]](ByteView in, MutableByteView out) {
    const int size = LZ4_compress_HC(chars(in), chars(out), static_cast<int>(in.size()),
                                     static_cast<int>(out.size()), thorough);
    return size > 0 ? Size(static_cast<std::size_t>(size)) : std::nullopt;
  });
}

std::unique_ptr<Baseline> make_lz4_decoder() {
  return each_piece([](ByteView in, MutableByteView out) {
    const int size = LZ4_decompress_safe(chars(in), chars(out), static_cast<int>(in.size()),
                                         static_cast<int>(out.size()));
    return size >= 0 ? Size(static_cast<std::size_t>(size)) : std::nullopt;
  });
}

std::unique_ptr<Baseline> make_zstd_encoder(int level) {
  constexpr int levels[10] = {1, -3, 1, 2, 3, 5, 7, 10, 15, 19};  // as in codec/zstd.cpp
  std::shared_ptr<ZSTD_CCtx> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  return each_piece([context, level = levels[level]](ByteView in, MutableByteView out) {
    const std::size_t size =
        ZSTD_compressCCtx(context.get(), out.data(), out.size(), in.data(), in.size(), level);
    return ZSTD_isError(size) ? std::nullopt : Size(size);
  });
}

std::unique_ptr<Baseline> make_zstd_decoder() {
  std::shared_ptr<ZSTD_DCtx> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  return each_piece([context](ByteView in, MutableByteView out) {
    const std::size_t size =
        ZSTD_decompressDCtx(context.get(), out.data(), out.size(), in.data(), in.size());
    return ZSTD_isError(size) ? std::nullopt : Size(size);
  });
}

std::function<std::unique_ptr<Baseline>()> libdeflate_maker([[maybe_unused]] bool encodes,
                                                            [[maybe_unused]] int level) {
#if NACRE_HAS_LIBDEFLATE
  if (encodes) {
    return [level = level == 0 ? 6 : level] {
      std::shared_ptr<libdeflate_compressor> compressor(libdeflate_alloc_compressor(level),
                                                        libdeflate_free_compressor);
      return each_piece([compressor](ByteView in, MutableByteView out) {
        const std::size_t size = libdeflate_deflate_compress(compressor.get(), in.data(), in.size(),
                                                             out.data(), out.size());
        return size == 0 ? std::nullopt : Size(size);
      });
    };
  }
  return [] {
    std::shared_ptr<libdeflate_decompressor> decompressor(libdeflate_alloc_decompressor(),
                                                          libdeflate_free_decompressor);
    return each_piece([decompressor](ByteView in, MutableByteView out) {
      const auto verdict = libdeflate_deflate_decompress(decompressor.get(), in.data(), in.size(),
                                                         out.data(), out.size(), nullptr);
      return verdict == LIBDEFLATE_SUCCESS ? Size(out.size()) : std::nullopt;
    });
  };
#else
  return {};
#endif
}

#if NACRE_HAS_ZLIB
// Raw deflate of literals alone. The state is made once and reset for each piece.
struct ZlibStream {
  z_stream stream = {};
  bool encodes;

  explicit ZlibStream(bool encoder) : encodes(encoder) {
    if (encodes)
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9, Z_HUFFMAN_ONLY);
    else
      inflateInit2(&stream, -MAX_WBITS);
  }
  ZlibStream(const ZlibStream&) = delete;
  ZlibStream& operator=(const ZlibStream&) = delete;
  ~ZlibStream() {
    if (encodes)
      deflateEnd(&stream);
    else
      inflateEnd(&stream);
  }

  Size run(ByteView in, MutableByteView out) {
    if ((encodes ? deflateReset(&stream) : inflateReset(&stream)) != Z_OK) return std::nullopt;
    stream.next_in = const_cast<Byte*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    const int outcome = encodes ? deflate(&stream, Z_FINISH) : inflate(&stream, Z_FINISH);
    return outcome == Z_STREAM_END ? Size(stream.total_out) : std::nullopt;
  }
};
#endif

std::function<std::unique_ptr<Baseline>()> zlib_maker([[maybe_unused]] bool encodes) {
#if NACRE_HAS_ZLIB
  return [encodes] {
    auto stream = std::make_shared<ZlibStream>(encodes);
    return each_piece([stream](ByteView in, MutableByteView out) { return stream->run(in, out); });
  };
#else
  return {};
#endif
}

std::string libdeflate_name() {
#if NACRE_HAS_LIBDEFLATE
  return "libdeflate " LIBDEFLATE_VERSION_STRING;
#else
  return "libdeflate";
#endif
}
std::string zlib_name() {
#if NACRE_HAS_ZLIB
  return fmt::format("zlib {}", zlibVersion());
#else
  return "zlib";
#endif
}

}  // namespace

void add_codec_baselines(const BaselineTask& task, BaselineLibraries& libraries) {
  const bool encodes = task.operation == Operation::compress;
  const int level = task.level;
  switch (task.codec) {
    case Codec::lz77:
      libraries.push_back(
          {fmt::format("liblz4 {}", LZ4_versionString()), "", !encodes, "liblz4-dev",
           [encodes, level] { return encodes ? make_lz4_encoder(level) : make_lz4_decoder(); }});
      break;
    case Codec::zstd:
      libraries.push_back(
          {fmt::format("libzstd {}", ZSTD_versionString()), "", !encodes, "libzstd-dev",
           [encodes, level] { return encodes ? make_zstd_encoder(level) : make_zstd_decoder(); }});
      break;
    case Codec::huffman:
      libraries.push_back({zlib_name(), "deflate with Z_HUFFMAN_ONLY", !encodes, "zlib1g-dev",
                           zlib_maker(encodes)});
      break;
    case Codec::gdeflate:
      libraries.push_back({libdeflate_name(), "deflate of the same level", !encodes,
                           "libdeflate-dev", libdeflate_maker(encodes, level)});
      break;
    default:
      break;
  }
}

}  // namespace nacre::engine
