// SPDX-License-Identifier: Apache-2.0
#include "fs/crypt/container_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/keys/keyring.h"

namespace nacre::fs {

namespace {

constexpr std::string_view magic = "NCRY";
constexpr Byte version = 1;
constexpr std::size_t crc_at = 12;
constexpr std::string_view salt_purpose = "nacre container session";
// A session of a suite with 64-bit blocks must end before 1 GiB. 2^9 records of at most 1.04 MiB
// are below that. With other suites a session goes on for as long as the counter does.
constexpr std::uint64_t short_session_record_count = 512;
constexpr std::uint16_t mode_mask = 0777;
constexpr std::uint32_t nanoseconds_in_a_second = 1'000'000'000;
constexpr Byte flag_mode = 1, flag_modified = 2;

bool all_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](Byte byte) { return byte == 0; });
}

std::uint64_t session_record_count(engine::CipherSuite suite) {
  static_assert(short_session_record_count * engine::record_size_bytes_max <= 1ull << 30);
  return engine::is_legacy(suite) ? short_session_record_count : session_record_count_max;
}

}  // namespace

std::array<Byte, container_header_size_bytes> encode(const ContainerHeader& header) {
  std::array<Byte, container_header_size_bytes> bytes = {};
  std::copy(magic.begin(), magic.end(), bytes.begin());
  bytes[4] = version;
  bytes[5] = static_cast<Byte>(header.chunk_bits);
  store_le(bytes.data() + 8, header.keyring_size);
  store_le(bytes.data() + crc_at, engine::crc32(0, ByteView(bytes).first(crc_at)));
  return bytes;
}

Result<ContainerHeader> parse_container_header(ByteView bytes) {
  if (bytes.size() < container_header_size_bytes || as_text(bytes.first(magic.size())) != magic) {
    return fail(ErrorCode::corrupt, "this is not a container of nacre crypt");
  }
  if (engine::crc32(0, bytes.first(crc_at)) != load_le<std::uint32_t>(bytes.data() + crc_at)) {
    return fail(ErrorCode::corrupt, "the CRC-32 of the container's header is wrong");
  }
  if (bytes[4] > version) {
    return fail(ErrorCode::unsupported,
                fmt::format("container format {}: made by a newer Nacre", bytes[4]));
  }
  const ContainerHeader header{.chunk_bits = bytes[5],
                               .keyring_size = load_le<std::uint32_t>(bytes.data() + 8)};
  if (bytes[4] != version || !all_zero(bytes.subspan(6, 2)) ||
      header.chunk_bits < container_chunk_bits_min ||
      header.chunk_bits > container_chunk_bits_max || header.keyring_size == 0 ||
      header.keyring_size > metadata::keyring_size_bytes_max) {
    return fail(ErrorCode::corrupt, "the container's header is malformed");
  }
  return header;
}

engine::RecordIdentity encode(const ContainerRecordName& name) {
  engine::RecordIdentity identity = {};
  store_le(identity.data() + 8, name.index);
  identity[28] = static_cast<Byte>(name.kind);
  return identity;
}

Result<ContainerRecordName> decode_container_record_name(const engine::RecordIdentity& identity) {
  const ContainerRecordName name{.index = load_le<std::uint64_t>(identity.data() + 8),
                                 .kind = static_cast<ContainerRecordKind>(identity[28])};
  const bool is_known =
      name.kind == ContainerRecordKind::chunk || name.kind == ContainerRecordKind::end;
  if (!is_known || encode(name) != identity) {
    return fail(ErrorCode::corrupt, "a record does not belong to a container");
  }
  return name;
}

ContainerPlace container_place(engine::CipherSuite suite, std::uint64_t index) {
  const std::uint64_t count = session_record_count(suite);
  return {.session = index / count, .counter = static_cast<std::uint32_t>(index % count)};
}

engine::SessionSalt container_salt(const engine::SessionSalt& first, std::uint64_t session) {
  if (session == 0) return first;
  Bytes message(salt_purpose.size() + first.size() + sizeof session);
  std::copy(salt_purpose.begin(), salt_purpose.end(), message.begin());
  std::copy(first.begin(), first.end(), message.data() + salt_purpose.size());
  store_le(message.data() + salt_purpose.size() + first.size(), session);
  const engine::Sha256Digest digest = engine::sha256(message);
  engine::SessionSalt salt;
  std::copy_n(digest.begin(), salt.size(), salt.begin());
  return salt;
}

Bytes encode(const ContainerEnd& end) {
  const ContainerAttributes& attributes = end.attributes;
  const std::string_view name = attributes.name.size() <= container_name_size_bytes_max
                                    ? std::string_view(attributes.name)
                                    : std::string_view();
  Bytes bytes(container_end_fixed_size_bytes + name.size());
  store_le(bytes.data(), end.size_bytes);
  store_le(bytes.data() + 8, end.chunk_count);
  bytes[16] = static_cast<Byte>(end.chunk_bits);
  bytes[17] = static_cast<Byte>((attributes.mode ? flag_mode : 0) |
                                (attributes.modified ? flag_modified : 0));
  store_le(bytes.data() + 18, static_cast<std::uint16_t>(attributes.mode.value_or(0) & mode_mask));
  const ContainerTime modified = attributes.modified.value_or(ContainerTime{});
  store_le(bytes.data() + 20, modified.nanoseconds);
  store_le(bytes.data() + 24, modified.seconds);
  store_le(bytes.data() + 32, static_cast<std::uint16_t>(name.size()));
  std::copy(name.begin(), name.end(), bytes.begin() + container_end_fixed_size_bytes);
  return bytes;
}

Result<ContainerEnd> parse_container_end(ByteView bytes) {
  const auto malformed = [] { return fail(ErrorCode::corrupt, "the end record is malformed"); };
  if (bytes.size() < container_end_fixed_size_bytes) return malformed();
  ContainerEnd end{.size_bytes = load_le<std::uint64_t>(bytes.data()),
                   .chunk_count = load_le<std::uint64_t>(bytes.data() + 8),
                   .chunk_bits = bytes[16]};
  const Byte flags = bytes[17];
  const auto mode = load_le<std::uint16_t>(bytes.data() + 18);
  const ContainerTime modified{.seconds = load_le<std::int64_t>(bytes.data() + 24),
                               .nanoseconds = load_le<std::uint32_t>(bytes.data() + 20)};
  const auto name_size = load_le<std::uint16_t>(bytes.data() + 32);
  if ((flags & ~(flag_mode | flag_modified)) != 0 || mode > mode_mask ||
      modified.nanoseconds >= nanoseconds_in_a_second || !all_zero(bytes.subspan(34, 6)) ||
      name_size > container_name_size_bytes_max ||
      bytes.size() != container_end_fixed_size_bytes + name_size) {
    return malformed();
  }
  if ((flags & flag_mode) != 0) {
    end.attributes.mode = mode;
  } else if (mode != 0) {
    return malformed();
  }
  if ((flags & flag_modified) != 0) {
    end.attributes.modified = modified;
  } else if (modified != ContainerTime{}) {
    return malformed();
  }
  end.attributes.name = as_text(bytes.subspan(container_end_fixed_size_bytes));
  return end;
}

bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace nacre::fs
