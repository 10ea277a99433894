// SPDX-License-Identifier: Apache-2.0
#include "metadata/text/document.h"

#include <fmt/format.h>

#include "gpu_engine/base/printable.h"
#include "gpu_engine/checksum/crc32.h"
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

namespace {

using nlohmann::json;

constexpr unsigned nesting_max = 8;
// A value takes up to a hundred times the memory of its text. The largest keyring has 40,000.
constexpr std::size_t value_count_max = 1u << 17;

std::string canonical(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string pretty(const json& object) {
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string crc_of(const json& object_without_crc) {
  return fmt::format("{:08x}", engine::crc32(0, as_bytes(canonical(object_without_crc))));
}

// The parser accepts any depth, but writing the object again recurses. It also accepts any number
// of values, and each value needs more memory than its text.
Result<void> check_shape(std::string_view text) {
  unsigned depth = 0;
  std::size_t value_count = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++value_count;
      if (++depth > nesting_max) return fail(ErrorCode::corrupt, "nested too deeply");
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    } else if (c == ',') {
      ++value_count;
    }
  }
  if (value_count > value_count_max)
    return fail(ErrorCode::corrupt, "the document holds too many values");
  return {};
}

tl::unexpected<Error> bad_field(const char* name, std::string_view why) {
  return fail(ErrorCode::corrupt, fmt::format("the field \"{}\" {}", name, why));
}

}  // namespace

std::string write_document(const DocumentKind& kind, json fields, ByteView mac_key) {
  fields["format"] = kind.format;
  fields["version"] = kind.version;
  fields["mac"] = to_hex(engine::hmac_sha256(mac_key, as_bytes(canonical(fields))));
  fields["crc32"] = crc_of(fields);
  return pretty(fields);
}

Result<Document> parse_document(const DocumentKind& kind, ByteView text) {
  if (text.size() > kind.size_bytes_max) {
    return fail(ErrorCode::corrupt, fmt::format("{} bytes are more than the {} allowed",
                                                text.size(), kind.size_bytes_max));
  }
  NACRE_TRY(check_shape(as_text(text)));
  Document document;
  document.fields = json::parse(as_text(text), nullptr, false);
  if (!document.fields.is_object()) return fail(ErrorCode::corrupt, "not a JSON object");

  // The CRC-32 is checked first: otherwise a flipped bit in "version" would pass for a newer
  // version.
  NACRE_ASSIGN(const std::string crc, get_text(document.fields, "crc32", 8));
  NACRE_TRY(get_hex(document.fields, "mac", document.seal.mac));
  json covered = document.fields;
  covered.erase("crc32");
  if (crc_of(covered) != crc) return fail(ErrorCode::corrupt, "the CRC-32 is wrong");
  covered.erase("mac");
  document.seal.text = canonical(covered);
  if (pretty(document.fields) != as_text(text)) {
    return fail(ErrorCode::corrupt, "the text is not as Nacre writes it");
  }

  NACRE_ASSIGN(const std::string format, get_text(document.fields, "format", 64));
  if (format != kind.format) {
    return fail(ErrorCode::corrupt,
                fmt::format("the format is \"{}\", not \"{}\"", format, kind.format));
  }
  NACRE_ASSIGN(const std::uint64_t version, get_number(document.fields, "version", 1, ~0ull));
  if (version > kind.version) {
    return fail(ErrorCode::unsupported,
                fmt::format("format version {} was made by a newer Nacre; this one reads up to "
                            "version {}",
                            version, kind.version));
  }
  NACRE_ASSIGN(document.generation,
               get_number(document.fields, "generation", 1, generation_end - 1));
  return document;
}

Result<void> check_generation(std::uint64_t generation, std::string_view what) {
  if (generation != generation_end) return {};
  return fail(
      ErrorCode::too_big,
      fmt::format(
          "the {0} has had the most generations that there are: a holder of the key has counted up "
          "on purpose, and the {0} cannot be changed any more; copy the files to a new volume",
          what));
}

Result<void> verify(const Seal& seal, ByteView mac_key, std::string_view what) {
  if (equal_constant_time(engine::hmac_sha256(mac_key, as_bytes(seal.text)), seal.mac)) return {};
  return fail(ErrorCode::tampered,
              fmt::format("the {} was not written by a holder of the volume key", what));
}

Result<std::string> get_text(const json& object, const char* name, std::size_t size_max) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_string()) return bad_field(name, "is missing");
  const auto& text = at->get_ref<const std::string&>();
  if (text.size() > size_max) return bad_field(name, "is too long");
  return text;
}

Result<std::uint64_t> get_number(const json& object, const char* name, std::uint64_t least,
                                 std::uint64_t most) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_unsigned()) return bad_field(name, "is missing");
  const auto number = at->get<std::uint64_t>();
  if (number < least || number > most) {
    return bad_field(name, fmt::format("is {}, not between {} and {}", number, least, most));
  }
  return number;
}

Result<Bytes> get_base64(const json& object, const char* name, std::size_t size_min,
                         std::size_t size_max) {
  NACRE_ASSIGN(const std::string text, get_text(object, name, (size_max + 2) / 3 * 4));
  auto bytes = from_base64(text);
  if (!bytes) return bad_field(name, "is not base64");
  if (bytes->size() < size_min || bytes->size() > size_max) {
    return bad_field(name, fmt::format("holds {} bytes, not between {} and {}", bytes->size(),
                                       size_min, size_max));
  }
  return std::move(*bytes);
}

Result<void> get_hex(const json& object, const char* name, MutableByteView out) {
  NACRE_ASSIGN(const std::string text, get_text(object, name, out.size() * 2));
  if (!from_hex(text, out)) {
    return bad_field(name, fmt::format("is not {} hexadecimal digits", out.size() * 2));
  }
  return {};
}

Result<const json*> get_array(const json& object, const char* name, std::size_t count_min,
                              std::size_t count_max) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_array()) return bad_field(name, "is missing");
  if (at->size() < count_min || at->size() > count_max) {
    return bad_field(name, fmt::format("has {} entries, not between {} and {}", at->size(),
                                       count_min, count_max));
  }
  return &*at;
}

Result<void> check_label(std::string_view label) {
  if (label.size() > label_size_bytes_max) {
    return fail(ErrorCode::invalid_argument, fmt::format("the label has {} bytes; {} are allowed",
                                                         label.size(), label_size_bytes_max));
  }
  // Bytes that are not UTF-8 would be replaced in JSON, and control characters cannot be printed.
  const std::string text(label);
  const bool valid =
      printable(label) == label &&
      json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)) == json(text);
  if (valid) return {};
  return fail(ErrorCode::invalid_argument,
              "the label must be UTF-8 text without control characters, also those of the "
              "direction of writing");
}

Result<std::string> get_line(const json& object, const char* name, std::size_t size_max) {
  NACRE_ASSIGN(std::string line, get_text(object, name, size_max));
  for (const char c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return bad_field(name, "has control characters, which Nacre never writes");
    }
  }
  return line;
}

}  // namespace nacre::metadata
