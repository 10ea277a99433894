// SPDX-License-Identifier: Apache-2.0
// Sealing works inside the output: the codec writes its stream where it will lie in the record, the
// cipher encrypts it in place, and only a stream of codec none is copied. Unsealing decrypts into
// the thread's scratch memory, which no core dump shows and which is wiped when the thread ends,
// and decodes from there into the output. A body that claims codec none, and fits, is decrypted
// straight into the output. Resealing encrypts out of the scratch memory, while the body is still
// in the cache: a body is never sealed anew before its tag has been verified.
#include "gpu_engine/seal.h"

#include <algorithm>
#include <array>
#include <functional>
#include <new>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/codec/codec.h"

namespace nacre::engine {
namespace {

constexpr std::size_t stream_offset = record_header_size_bytes + sizeof(RecordBodyHeader);

using Nonce = std::array<Byte, nonce_size_bytes>;
using RecordAad = std::array<Byte, sizeof(VolumeId) + record_aad_header_size_bytes>;

// 4 zero bytes, then the counter as u64. Unique under a write-session key.
Nonce make_nonce(std::uint32_t counter) {
  Nonce nonce = {};
  store_le(nonce.data() + 4, std::uint64_t{counter});
  return nonce;
}

RecordAad make_aad(const VolumeId& volume_id, const Byte* header) {
  RecordAad aad;
  std::copy(volume_id.begin(), volume_id.end(), aad.begin());
  std::copy_n(header, record_aad_header_size_bytes, aad.begin() + sizeof(VolumeId));
  return aad;
}

MessageResult failed(ErrorCode error, const char* detail) {
  return {.ok = false, .error = error, .detail = detail};
}

struct Stream {
  Codec codec;
  std::size_t size;
};

// room: at least plain.size() bytes.
Stream write_stream(const Message& message, ByteView plain, MutableByteView room) {
  const CodecChoice choice = choose_codec(message.codec, message.level, plain);
  if (choice.codec != Codec::none && !plain.empty()) {
    const auto size = compress_to_fit(choice.codec, choice.level, plain, room, plain.size() - 1);
    if (size) return {choice.codec, *size};
  }
  std::copy(plain.begin(), plain.end(), room.begin());
  return {Codec::none, plain.size()};
}

// The calling thread's memory of at least size bytes; valid until the thread calls this again.
MutableByteView scratch_memory(std::size_t size) {
  static thread_local Arena scratch;
  if (scratch.size() < size) {
    // Rounded up, so that slowly growing records do not each get new memory.
    constexpr std::size_t unit = 128u << 10;
    auto grown = allocate_host_arena(round_up(size, unit));
    if (!grown) throw std::bad_alloc();
    scratch = std::move(*grown);
  }
  return {scratch.data(), size};
}

// Checks the opened body's header against the body's own size and the room for its plain bytes.
// Returns the fault, or nullptr.
const char* find_body_fault(const RecordBodyHeader& header, std::size_t stream_room,
                            std::size_t plain_room) {
  if (header.reserved[0] != 0 || header.reserved[1] != 0 || header.reserved[2] != 0)
    return "reserved field of the sealed body is not zero";
  if (header.stream_size > stream_room) return "stream is longer than its record";
  if (header.plain_size > chunk_size_bytes_max) return "plain size is larger than any chunk";
  if (header.plain_size > plain_room) return "plain size is larger than expected";
  return nullptr;
}

// Puts header, tag and CRC around a body and encrypts it. The body may lie where it will be sealed.
// Returns the record's size.
std::size_t finish_record(const AeadKey& key, CipherSuite suite, const VolumeId& volume_id,
                          const Message& message, ByteView body, MutableByteView out) {
  const std::size_t tag_size = tag_size_bytes(suite);
  const std::size_t record_size = record_header_size_bytes + body.size() + tag_size;
  RecordHeader header = {.magic = record_magic,
                         .version = record_version,
                         .reserved_a = 0,
                         .reserved_b = 0,
                         .stored_size = static_cast<std::uint32_t>(record_size),
                         .epoch = message.epoch,
                         .salt = message.salt,
                         .counter = message.counter,
                         .crc32 = 0};
  store_le(out.data(), header);
  key.seal(make_nonce(message.counter), make_aad(volume_id, out.data()), body,
           out.subspan(record_header_size_bytes, body.size()),
           out.subspan(record_header_size_bytes + body.size(), tag_size));
  header.crc32 =
      crc32(crc32(0, out.first(record_aad_header_size_bytes)),
            out.subspan(record_header_size_bytes, record_size - record_header_size_bytes));
  store_le(out.data() + offsetof(RecordHeader, crc32), header.crc32);
  return record_size;
}

// A record's body in the thread's scratch memory.
struct OpenedBody {
  MessageResult result;  // ok, or why the record does not open
  RecordBodyHeader header = {};
  MutableByteView bytes = {};  // the body; what follows it, up to scratch_size, may be used too
  bool stream_is_out = false;  // the stream, of codec none, is in the output instead of in bytes
};

// Whether the body's stream may go straight into an output: it is the plain bytes, it fills the
// body after the header, and there is room. Asked before the tag is checked.
bool is_plain_stream(const RecordBodyHeader& header, std::size_t stream_room,
                     std::size_t plain_room) {
  return static_cast<Codec>(header.codec) == Codec::none && header.stream_size == stream_room &&
         header.plain_size == stream_room && stream_room <= plain_room;
}

// plain_room: bytes for the plain bytes. out: where a stream of codec none may go, or empty; when
// the result is not ok, it is untouched or holds zeros.
OpenedBody open_body(const AeadKey& key, CipherSuite suite, const VolumeId& volume_id,
                     const Message& message, ByteView record, std::size_t scratch_size,
                     std::size_t plain_room, MutableByteView out) {
  const auto header = check_record_crc(record);
  if (!header) return {failed(header.error().code, header.error().text)};
  const std::size_t tag_size = tag_size_bytes(suite);
  if (header->stored_size != record.size())
    return {failed(ErrorCode::corrupt, "record is shorter than the bytes that were read")};
  if (record.size() < stream_offset + tag_size)
    return {failed(ErrorCode::corrupt, "record size is too small for its cipher suite")};

  const ByteView sealed_body =
      record.subspan(record_header_size_bytes, record.size() - record_header_size_bytes - tag_size);
  const MutableByteView scratch = scratch_memory(std::max(scratch_size, sealed_body.size()));
  const MutableByteView body = scratch.first(sealed_body.size());
  const MutableByteView stream = body.subspan(sizeof(RecordBodyHeader));
  const Nonce nonce = make_nonce(header->counter);
  const RecordAad aad = make_aad(volume_id, record.data());
  bool stream_is_out = false;
  const auto choose = [&] {
    stream_is_out =
        is_plain_stream(load_le<RecordBodyHeader>(body.data()), stream.size(), out.size());
    return stream_is_out ? out.first(stream.size()) : stream;
  };
  const auto verified =
      out.empty() || !key.opens_in_two()
          ? key.open(nonce, aad, sealed_body, record.last(tag_size), body)
          : key.open_in_two(nonce, aad, sealed_body, record.last(tag_size),
                            body.first(sizeof(RecordBodyHeader)), std::ref(choose));
  if (!verified)
    return {failed(ErrorCode::tampered, "authentication tag of the record does not match")};

  const auto body_header = load_le<RecordBodyHeader>(body.data());
  OpenedBody opened = {failed(ErrorCode::tampered, "record is not the one that was asked for"),
                       body_header, scratch, stream_is_out};
  opened.result.codec = static_cast<Codec>(body_header.codec);
  opened.result.identity = body_header.identity;
  if (!message.check_identity || body_header.identity == message.identity) {
    opened.result.error = ErrorCode::corrupt;
    opened.result.detail = find_body_fault(body_header, stream.size(), plain_room);
    if (opened.result.detail == nullptr) {
      opened.result.ok = true;
      opened.result.detail = "";
      return opened;
    }
  }
  if (stream_is_out) wipe(out.first(stream.size()));
  return opened;
}

}  // namespace

MessageResult seal_record(const AeadKey& key, CipherSuite suite, const VolumeId& volume_id,
                          const Message& message, ByteView plain, MutableByteView out) {
  if (!codec_is_choosable(message.codec))
    return failed(ErrorCode::unsupported, "codec is not in this build");
  if (message.level < 0 || message.level > codec_level_max)
    return failed(ErrorCode::invalid_argument, "compression level is not 0 to 9");
  if (plain.size() > chunk_size_bytes_max)
    return failed(ErrorCode::too_big, "message is longer than the largest chunk");
  if (out.size() < record_size_bound(suite, message.padding, plain.size()))
    return failed(ErrorCode::range, "output is smaller than the record's bound");

  const Stream stream = write_stream(message, plain, out.subspan(stream_offset));
  const std::size_t unpadded = sizeof(RecordBodyHeader) + stream.size;
  const std::size_t body_size = sealed_body_size(suite, message.padding, unpadded);
  const MutableByteView body = out.subspan(record_header_size_bytes, body_size);
  std::fill(body.begin() + static_cast<std::ptrdiff_t>(unpadded), body.end(), Byte{0});
  store_le(body.data(), RecordBodyHeader{.codec = static_cast<std::uint8_t>(stream.codec),
                                         .reserved = {},
                                         .plain_size = static_cast<std::uint32_t>(plain.size()),
                                         .stream_size = static_cast<std::uint32_t>(stream.size),
                                         .identity = message.identity});

  const std::size_t record_size = finish_record(key, suite, volume_id, message, body, out);
  return {.ok = true, .codec = stream.codec, .output_size = record_size};
}

MessageResult unseal_record(const AeadKey& key, CipherSuite suite, const VolumeId& volume_id,
                            const Message& message, ByteView record, MutableByteView out) {
  const OpenedBody opened = open_body(key, suite, volume_id, message, record, 0, out.size(), out);
  MessageResult result = opened.result;
  if (!result.ok) return result;
  result.ok = false;
  if (!codec_is_available(result.codec)) {
    result.error = ErrorCode::unsupported;
    result.detail = "record's codec is not in this build";
    return result;
  }
  const ByteView stream =
      ByteView(opened.bytes).subspan(sizeof(RecordBodyHeader), opened.header.stream_size);
  const MutableByteView plain = out.first(opened.header.plain_size);
  if (!opened.stream_is_out && !decompress(result.codec, stream, plain)) {
    result.detail = "compressed stream of the record is malformed";
    return result;
  }
  result.ok = true;
  result.output_size = plain.size();
  return result;
}

MessageResult reseal_record(const AeadKey& key, CipherSuite suite, const AeadKey& new_key,
                            CipherSuite new_suite, const VolumeId& volume_id,
                            const Message& message, ByteView record, MutableByteView out) {
  const std::size_t scratch_size = sealed_body_size(new_suite, message.padding, record.size());
  const OpenedBody opened =
      open_body(key, suite, volume_id, message, record, scratch_size, chunk_size_bytes_max, {});
  MessageResult result = opened.result;
  if (!result.ok) return result;
  result.ok = false;
  const std::size_t unpadded = sizeof(RecordBodyHeader) + opened.header.stream_size;
  const std::size_t body_size = sealed_body_size(new_suite, message.padding, unpadded);
  const std::size_t record_size = record_header_size_bytes + body_size + tag_size_bytes(new_suite);
  if (record_size > record_size_bytes_max) {
    result.detail = "stream is longer than any record's";
    return result;
  }
  if (out.size() < record_size) {
    result.error = ErrorCode::range;
    result.detail = "output is smaller than the new record";
    return result;
  }
  const MutableByteView body = opened.bytes.first(body_size);
  std::fill(body.begin() + static_cast<std::ptrdiff_t>(unpadded), body.end(), Byte{0});
  result.output_size = finish_record(new_key, new_suite, volume_id, message, body, out);
  result.ok = true;
  return result;
}

}  // namespace nacre::engine
