// SPDX-License-Identifier: Apache-2.0
// The key of one file under db/, and what binds its pages and frames to their place.
//
// The additional data of every page and frame are: volume id, salt, file number, file class, then
// the page's or frame's own fields. So nothing opens in another volume, at another place of its
// file, or in a file of another class, number or salt. Files without a number (CURRENT, IDENTITY
// and the like) have the number 0: as whole files they open under each other's names in format 1.
// In format 2 the key depends on the file's name as well (lasting_file_name()), and on whether the
// file is padded. An older state of a file, or a file of the same name from another branch of
// history, does open here; log_chain.h and the manifest tell these apart.
#pragma once

#include <memory>
#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/aead.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/sealed_fs/file_header.h"

namespace nacre::metadata {

// Immutable, thread-safe.
class FileSeal {
 public:
  // For a new file: takes the current epoch and draws a random salt. padding is the volume's; files
  // of format 1 are not padded, whatever it is.
  static Result<FileSeal> create(const KeyTree& keys, std::string_view path,
                                 engine::Padding padding);
  // The same with the salt of an older epoch's file, whose content the new file gets. The epochs
  // have different keys, and so have the two files. The caller takes care that no two files of one
  // name and salt are sealed under one epoch: they would share key and nonces.
  static Result<FileSeal> create_with_salt(const KeyTree& keys, std::string_view path,
                                           engine::Padding padding, const FileSalt& salt);
  // For an existing file, from its header. Errors: tampered if volume, class or format do not fit
  // keys and path, or if the file is of an older epoch and the current one is of format 2; corrupt
  // if the epoch is unknown; those of decode_file_header().
  static Result<FileSeal> open(const KeyTree& keys, std::string_view path, ByteView header_bytes);

  const FileHeader& header() const { return header_; }
  const std::string& path() const { return path_; }  // for messages

  // fields are the page's index and state, or the frame's header bytes: at most 28 bytes.
  void seal(std::uint64_t index, std::uint32_t generation, ByteView fields, ByteView plain,
            MutableByteView ciphertext, MutableByteView tag) const;
  // Returns false if the tag does not match; then plain holds zeros.
  bool open(std::uint64_t index, std::uint32_t generation, ByteView fields, ByteView ciphertext,
            ByteView tag, MutableByteView plain) const;

 private:
  FileSeal(std::string_view path, const FileHeader& header,
           std::shared_ptr<const engine::AeadKey> key);
  static Result<void> check_epoch(const KeyTree& keys, std::string_view path, std::uint32_t epoch);
  static Result<FileSeal> make(const KeyTree& keys, std::string_view path,
                               const FileHeader& header);

  static constexpr std::size_t binding_size_bytes = 48;
  static constexpr std::size_t fields_size_bytes_max = 28;
  struct Aad {
    std::array<Byte, binding_size_bytes + fields_size_bytes_max> bytes;
    std::size_t size;
    ByteView view() const { return ByteView(bytes).first(size); }
  };
  Aad aad_of(ByteView fields) const;

  std::string path_;
  FileHeader header_;
  std::array<Byte, binding_size_bytes> binding_ = {};
  std::shared_ptr<const engine::AeadKey> key_;
};

// "path: what", so that every verdict names its file.
tl::unexpected<Error> fail_in_file(ErrorCode code, std::string_view path, std::string_view what);

}  // namespace nacre::metadata
