// SPDX-License-Identifier: Apache-2.0
// Deriving a file's key and building the additional data of its pages and frames.
#include "metadata/sealed_fs/file_seal.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_engine/base/check.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/sealed_fs/page_layout.h"

namespace nacre::metadata {
namespace {

using Nonce = std::array<Byte, engine::nonce_size_bytes>;

Nonce nonce_of(std::uint64_t index, std::uint32_t generation) {
  Nonce nonce;
  store_le(&nonce[0], index);
  store_le(&nonce[8], generation);
  return nonce;
}

}  // namespace

tl::unexpected<Error> fail_in_file(ErrorCode code, std::string_view path, std::string_view what) {
  return fail(code, fmt::format("{}: {}", path, what));
}

FileSeal::FileSeal(std::string_view path, const FileHeader& header,
                   std::shared_ptr<const engine::AeadKey> key)
    : path_(path), header_(header), key_(std::move(key)) {
  // volume id[16] | salt[16] | number u64 | class | 0[7]
  std::copy(header.volume_id.begin(), header.volume_id.end(), binding_.begin());
  std::copy(header.salt.begin(), header.salt.end(), binding_.begin() + 16);
  store_le(&binding_[32], parse_file_name(path).number);
  binding_[40] = static_cast<Byte>(header.file_class);
}

Result<FileSeal> FileSeal::make(const KeyTree& keys, std::string_view path,
                                const FileHeader& header) {
  auto key =
      keys.database_file_key(header.epoch, header.salt, lasting_file_name(path), header.is_padded);
  if (!key) return add_context(key.error(), path);
  NACRE_ASSIGN(auto aead, engine::AeadKey::create(engine::CipherSuite::aes_256_gcm, key->view()));
  return FileSeal(path, header, std::move(aead));
}

Result<FileSeal> FileSeal::create(const KeyTree& keys, std::string_view path,
                                  engine::Padding padding) {
  FileSalt salt;
  engine::random_bytes(salt);
  return create_with_salt(keys, path, padding, salt);
}

Result<FileSeal> FileSeal::create_with_salt(const KeyTree& keys, std::string_view path,
                                            engine::Padding padding, const FileSalt& salt) {
  FileHeader header;
  header.file_class = parse_file_name(path).file_class;
  header.epoch = keys.current_epoch_number();
  NACRE_ASSIGN(header.format, keys.epoch_format(header.epoch));
  header.is_padded = padding != engine::Padding::none && header.format != EpochFormat::one;
  header.page_size = header.file_class == FileClass::table ? page_size_bytes : 0;
  header.volume_id = keys.volume_id();
  header.salt = salt;
  return make(keys, path, header);
}

Result<FileSeal> FileSeal::open(const KeyTree& keys, std::string_view path, ByteView header_bytes) {
  auto header = decode_file_header(header_bytes);
  if (!header) return add_context(header.error(), path);
  if (header->volume_id != keys.volume_id()) {
    return fail_in_file(ErrorCode::tampered, path, "the file belongs to another volume");
  }
  if (header->file_class != parse_file_name(path).file_class) {
    return fail_in_file(ErrorCode::tampered, path,
                        fmt::format("the file was written as a {}", to_string(header->file_class)));
  }
  const auto format = keys.epoch_format(header->epoch);
  if (!format) return add_context(format.error(), path);
  if (header->format != *format) {
    return fail_in_file(
        ErrorCode::tampered, path,
        fmt::format("its header says format {}, but the keys of its epoch are of format {}",
                    static_cast<unsigned>(header->format), static_cast<unsigned>(*format)));
  }
  NACRE_TRY(check_epoch(keys, path, header->epoch));
  return make(keys, path, *header);
}

// A rotation to an epoch of format 2 begins by sealing all of db/ anew (epoch_switch.h).
Result<void> FileSeal::check_epoch(const KeyTree& keys, std::string_view path,
                                   std::uint32_t epoch) {
  const std::uint32_t current = keys.current_epoch_number();
  NACRE_ASSIGN(const EpochFormat format, keys.epoch_format(current));
  if (format == EpochFormat::one || epoch == current) return {};
  return fail_in_file(ErrorCode::tampered, path,
                      "the file is sealed under an older key, which no file of the database is any "
                      "more: it was put back, or was made with that key");
}

FileSeal::Aad FileSeal::aad_of(ByteView fields) const {
  NACRE_CHECK(fields.size() <= fields_size_bytes_max, "{} bytes of additional data", fields.size());
  Aad aad;
  std::copy(binding_.begin(), binding_.end(), aad.bytes.begin());
  std::copy(fields.begin(), fields.end(), aad.bytes.begin() + binding_size_bytes);
  aad.size = binding_size_bytes + fields.size();
  return aad;
}

void FileSeal::seal(std::uint64_t index, std::uint32_t generation, ByteView fields, ByteView plain,
                    MutableByteView ciphertext, MutableByteView tag) const {
  key_->seal(nonce_of(index, generation), aad_of(fields).view(), plain, ciphertext, tag);
}

bool FileSeal::open(std::uint64_t index, std::uint32_t generation, ByteView fields,
                    ByteView ciphertext, ByteView tag, MutableByteView plain) const {
  return key_->open(nonce_of(index, generation), aad_of(fields).view(), ciphertext, tag, plain)
      .has_value();
}

}  // namespace nacre::metadata
