// SPDX-License-Identifier: Apache-2.0
// The part of a container that can be read without keys: header, keyring and the headers of
// records, which must follow each other in the order of one container.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fs/crypt/container_format.h"
#include "gpu_engine/record/record.h"

namespace nacre::fs {

// Fills out. Returns fewer bytes only at the end.
using ReadContainer = std::function<Result<std::size_t>(MutableByteView out)>;

// Reads header and keyring text. Errors: those of parse_container_header(); corrupt if the
// container is cut off there; those of read.
Result<ContainerHeader> read_container_start(const ReadContainer& read, Bytes& keyring_text);

// The message for a container that is cut off behind this many whole records.
std::string cut_off_text(std::uint64_t whole_record_count);

// Checks the headers of a container's records. Only the tags prove that the records are right; this
// check finds errors earlier and can name them.
class RecordSequence {
 public:
  RecordSequence() = default;
  explicit RecordSequence(engine::CipherSuite suite) : suite_(suite) {}

  // bytes are the container's next bytes, as far as they have been read. Returns the size of the
  // record at their front, or 0 if more bytes are needed. Errors: corrupt; tampered if a sound
  // record belongs elsewhere.
  Result<std::size_t> next_record_size(ByteView bytes);
  // Accepts that record as the next one. Returns true if its key differs from that of the last one.
  bool take();

  std::uint64_t count() const { return count_; }
  const engine::SessionSalt& salt() const { return salt_; }  // of the record that was accepted last

 private:
  engine::CipherSuite suite_ = engine::CipherSuite::aes_256_gcm;
  std::uint64_t count_ = 0;
  std::uint64_t session_ = 0;
  engine::SessionSalt first_salt_ = {}, salt_ = {};
  engine::SessionSalt seen_salt_ = {};  // in the header that was checked last
};

}  // namespace nacre::fs
