// SPDX-License-Identifier: Apache-2.0
// The form that superblock and keyring share: one JSON object that a person can read, with a CRC-32
// that needs no key and a MAC that only holders of the volume key can verify. Internal to
// metadata/.
//
// The canonical dump of an object: keys sorted by their bytes, no white space, UTF-8 not escaped.
//   "mac"    64 hex digits: HMAC-SHA256 of the canonical dump without "mac" and "crc32"
//   "crc32"  8 hex digits: CRC-32 of the canonical dump without "crc32"; so it covers the MAC, and
//            rot in there does not look like forgery
// The file holds the same object with an indent of 2 and a newline at its end, and nothing else:
// any other text of the same object is refused, so every change of a byte is noticed.
//
// Every object has "format" (a name), "version" and "generation" (counts its updates, from 1). All
// versions keep the rules on this page, so an older Nacre can tell a newer document from rot.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/text/generation.h"
#include "metadata/text/unverified.h"

namespace nacre::metadata {

struct DocumentKind {
  std::string_view format;
  std::uint64_t version;
  std::size_t size_bytes_max;
};

struct Document {
  nlohmann::json fields;  // all of them
  std::uint64_t generation = 0;
  Seal seal;
};

// Adds format, version, crc32 and mac to fields (which hold generation) and returns the file's
// text.
std::string write_document(const DocumentKind& kind, nlohmann::json fields, ByteView mac_key);

// Does not check the MAC. Errors: corrupt for everything that write_document() does not write;
// unsupported for a later version.
Result<Document> parse_document(const DocumentKind& kind, ByteView text);

// Typed access to fields. Error: corrupt, with the field's name, if it is missing or out of bounds.
Result<std::string> get_text(const nlohmann::json& object, const char* name, std::size_t size_max);
Result<std::uint64_t> get_number(const nlohmann::json& object, const char* name,
                                 std::uint64_t least, std::uint64_t most);
Result<Bytes> get_base64(const nlohmann::json& object, const char* name, std::size_t size_min,
                         std::size_t size_max);
Result<void> get_hex(const nlohmann::json& object, const char* name, MutableByteView out);
Result<const nlohmann::json*> get_array(const nlohmann::json& object, const char* name,
                                        std::size_t count_min, std::size_t count_max);

// A text of one line. Error: corrupt if it has control characters. (Labels of earlier versions may
// have those past U+007F.)
Result<std::string> get_line(const nlohmann::json& object, const char* name, std::size_t size_max);

// Checks a label that a user gives. It must be UTF-8 without control characters (printable.h), of
// at most label_size_bytes_max bytes. Error: invalid_argument.
inline constexpr std::size_t label_size_bytes_max = 255;
Result<void> check_label(std::string_view label);

}  // namespace nacre::metadata
