// SPDX-License-Identifier: Apache-2.0
// The part of a container that can be read without its keys: header, keyring, and the records' own
// headers, which must follow each other as one container's do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fs/crypt/container_format.h"
#include "gpu_engine/record/record.h"

namespace nacre::fs {

// Fills out, fewer bytes only at the end.
using ReadContainer = std::function<Result<std::size_t>(MutableByteView out)>;

// Reads header and keyring text. The errors of parse_container_header(); corrupt where it is cut
// off; those of read.
Result<ContainerHeader> read_container_start(const ReadContainer& read, Bytes& keyring_text);

// "it is cut off behind …"
std::string cut_off_text(std::uint64_t whole_record_count);

// Whether the records of a container have the headers that they must have. Only the tags prove
// it; this finds what is wrong early, and can say what it is.
class RecordSequence {
 public:
  RecordSequence() = default;
  explicit RecordSequence(engine::CipherSuite suite) : suite_(suite) {}

  // bytes: the container's from here on, as far as they are known. The size of the record at their
  // front; 0 where more bytes are needed to know. corrupt; tampered: a sound record that belongs
  // elsewhere.
  Result<std::size_t> next_record_size(ByteView bytes);
  // That record is the container's next one. True when its key is another than the last one's.
  bool take();

  std::uint64_t count() const { return count_; }
  const engine::SessionSalt& salt() const { return salt_; }  // of the last one taken

 private:
  engine::CipherSuite suite_ = engine::CipherSuite::aes_256_gcm;
  std::uint64_t count_ = 0;
  std::uint64_t session_ = 0;
  engine::SessionSalt first_salt_ = {}, salt_ = {};
  engine::SessionSalt seen_salt_ = {};  // in the header that was looked at last
};

}  // namespace nacre::fs
