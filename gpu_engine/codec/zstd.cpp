// SPDX-License-Identifier: Apache-2.0
// Codec zstd: one zstd frame (RFC 8878) for the whole message, by libzstd. The stream of no bytes
// is empty.
//
// - The frame names its content size and has no dictionary and no checksum (the record has its
//   own).
// - The window is at most window_size_log_max, so that any decoder needs a bounded window, however
//   long the message is.
// - Nothing may stand before or after the frame, and its content size must be the plain size that
//   the caller expects; both are checked before a byte is decoded. Decoding goes straight into the
//   caller's memory.
// - A thread keeps its contexts: no allocation per message. They hold plain bytes, so core dumps
//   leave them out and they are wiped when the thread ends.
#define ZSTD_STATIC_LINKING_ONLY  // for contexts in memory of our own
#include <zstd.h>

#include <memory>
#include <new>
#include <utility>

#include "gpu_engine/base/arena.h"
#include "gpu_engine/codec/codec_parts.h"
#include "gpu_engine/codec/sample.h"

namespace nacre::engine {
namespace {

constexpr int window_size_log_max = 20;

// The frame header (RFC 8878, 3.1.1.1): the magic number, a descriptor, and, unless the frame is a
// single segment, the size of its window.
constexpr std::uint32_t frame_magic = 0xfd2fb528;
constexpr std::size_t descriptor_offset = 4;
constexpr std::size_t window_offset = 5;
constexpr unsigned single_segment_bit = 0x20;
constexpr unsigned refused_bits = 0x0f;  // reserved, checksum, and the size of a dictionary's id

// The zstd level for each of our levels. The default is zstd 1: the fastest that entropy-codes
// literals as well.
constexpr int zstd_levels[10] = {1, -3, 1, 2, 3, 5, 7, 10, 15, 19};

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Memory for libzstd: each allocation begins with the arena that owns its pages.
constexpr std::size_t arena_room = 64;
static_assert(sizeof(Arena) <= arena_room);

// libzstd calls this, so nothing may be thrown.
void* allocate_pages(void* /*opaque*/, std::size_t size) noexcept {
  if (size > SIZE_MAX - arena_room) return nullptr;
  try {
    auto made = allocate_host_arena(arena_room + size);
    if (!made) return nullptr;
    Byte* const pages = made->data();
    new (pages) Arena(std::move(*made));
    return pages + arena_room;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void free_pages(void* /*opaque*/, void* memory) {
  if (memory == nullptr) return;
  // Moved out, since the arena wipes the pages that it stood in.
  const Arena pages(
      std::move(*std::launder(reinterpret_cast<Arena*>(static_cast<Byte*>(memory) - arena_room))));
}

constexpr ZSTD_customMem wiped_memory = {allocate_pages, free_pages, nullptr};

// The thread's own context. nullptr when there is no memory; the next call then tries again.
ZSTD_CCtx* compression_context() {
  static thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context;
  if (!context) context.reset(ZSTD_createCCtx_advanced(wiped_memory));
  return context.get();
}

ZSTD_DCtx* decompression_context() {
  static thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context;
  if (!context) context.reset(ZSTD_createDCtx_advanced(wiped_memory));
  return context.get();
}

std::size_t zstd_size_bound(std::size_t plain_size) {
  return ZSTD_compressBound(plain_size);
}

std::optional<std::size_t> compress_zstd(int level, ByteView plain, MutableByteView out,
                                         std::size_t size_max) {
  if (size_max < plain.size() && !looks_compressible(plain)) return std::nullopt;
  ZSTD_CCtx* const context = compression_context();
  if (context == nullptr) return std::nullopt;
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, zstd_levels[level]);
  if (plain.size() > std::size_t{1} << window_size_log_max)
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_size_log_max);
  const std::size_t size =
      ZSTD_compress2(context, out.data(), out.size(), plain.data(), plain.size());
  if (ZSTD_isError(size) || size > size_max) return std::nullopt;
  return size;
}

// Whether the stream begins with a header that compress_zstd() may write for plain_size bytes.
// libzstd itself may also accept frames from before the RFC.
bool has_our_frame_header(ByteView stream, std::size_t plain_size) {
  if (stream.size() <= window_offset || load_le<std::uint32_t>(stream.data()) != frame_magic ||
      (stream[descriptor_offset] & refused_bits) != 0)
    return false;
  constexpr std::size_t window_size_max = std::size_t{1} << window_size_log_max;
  if (stream[descriptor_offset] & single_segment_bit) return plain_size <= window_size_max;
  const unsigned exponent = stream[window_offset] >> 3;
  const unsigned eighths = stream[window_offset] & 7;
  return (std::uint64_t{8 + eighths} << exponent) <= window_size_max / 1024 * 8;
}

bool decompress_zstd(ByteView stream, MutableByteView plain) {
  if (!has_our_frame_header(stream, plain.size())) return false;
  if (ZSTD_getFrameContentSize(stream.data(), stream.size()) != plain.size()) return false;
  if (ZSTD_findFrameCompressedSize(stream.data(), stream.size()) != stream.size()) return false;
  ZSTD_DCtx* const context = decompression_context();
  if (context == nullptr) throw std::bad_alloc();
  const std::size_t size =
      ZSTD_decompressDCtx(context, plain.data(), plain.size(), stream.data(), stream.size());
  return size == plain.size();
}

}  // namespace

const CodecParts zstd_codec = {zstd_size_bound, compress_zstd, decompress_zstd};

}  // namespace nacre::engine
