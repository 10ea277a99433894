// SPDX-License-Identifier: Apache-2.0
#include "fs/control/rotation_requests.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "metadata/superblock.h"
#include "metadata/text/text_bytes.h"

namespace nacre::fs {

namespace {

using nlohmann::json;

tl::unexpected<Error> bad_field(const char* name) {
  return fail(ErrorCode::invalid_argument,
              std::string("the request's field \"") + name + "\" is not what it may be");
}

Result<std::optional<std::string>> text(const json& message, const char* name) {
  const auto at = message.find(name);
  if (at == message.end()) return std::optional<std::string>();
  if (!at->is_string()) return bad_field(name);
  return std::optional(at->get<std::string>());
}

Result<bool> optional_bool(const json& message, const char* name) {
  const auto at = message.find(name);
  if (at == message.end()) return false;
  if (!at->is_boolean()) return bad_field(name);
  return at->get<bool>();
}

Result<std::optional<std::uint64_t>> optional_number(const json& message, const char* name) {
  const auto at = message.find(name);
  if (at == message.end()) return std::optional<std::uint64_t>();
  if (!at->is_number_unsigned()) return bad_field(name);
  return std::optional(at->get<std::uint64_t>());
}

constexpr std::size_t seal_part_size_bytes = 32;
constexpr std::size_t seal_size_bytes = 3 * seal_part_size_bytes;

Result<json> begin(Rotation& rotation, const json& message,
                   std::vector<metadata::RecipientSeal> seals) {
  NACRE_ASSIGN(RotationOptions options, parse_rotation_options(message));
  options.seals = std::move(seals);
  NACRE_ASSIGN(const bool is_surveyed, rotation.begin_in_background(std::move(options)));
  json reply = {{"rotation", to_json(rotation.status())}};
  if (is_surveyed) {
    reply["survey"] = true;
    reply["format"] = static_cast<unsigned>(metadata::EpochFormat::two);
    return reply;
  }
  reply["format"] = static_cast<unsigned>(rotation.format());
  reply["fingerprint"] = metadata::to_hex(rotation.fingerprint());
  return reply;
}

}  // namespace

Result<RotationOptions> parse_rotation_options(const json& message) {
  RotationOptions options;
  NACRE_ASSIGN(const auto cipher, text(message, "cipher"));
  if (cipher) {
    NACRE_ASSIGN(options.suite, engine::suite_from_name(*cipher));
  }
  NACRE_ASSIGN(const auto codec, text(message, "codec"));
  if (codec) {
    NACRE_ASSIGN(options.codec, engine::codec_from_name(*codec));
  }
  NACRE_ASSIGN(const auto level, optional_number(message, "level"));
  if (level.value_or(0) > metadata::codec_level_max) return bad_field("level");
  options.level = static_cast<int>(level.value_or(0));
  NACRE_ASSIGN(const auto rate, optional_number(message, "rate"));
  options.rate_bytes_per_second = rate.value_or(0);
  NACRE_ASSIGN(const auto format, optional_number(message, "format"));
  if (format.value_or(2) != 2) return bad_field("format");
  options.to_format_2 = options.to_format_2 || format.has_value();
  NACRE_ASSIGN(options.accept_unreadable, optional_bool(message, "accept_unreadable"));
  return options;
}

Result<std::size_t> seals_size_bytes(const json& message) {
  NACRE_ASSIGN(const auto size, optional_number(message, "seals_size_bytes"));
  const std::uint64_t bytes = size.value_or(0);
  if (bytes % seal_size_bytes != 0 || bytes > metadata::passphrase_count_max * seal_size_bytes) {
    return bad_field("seals_size_bytes");
  }
  return static_cast<std::size_t>(bytes);
}

SecretBytes encode_seals(std::span<const metadata::RecipientSeal> seals) {
  std::vector<const metadata::RecipientSeal*> sent;
  for (const metadata::RecipientSeal& seal : seals) {
    if (seal.sealed_private_key.empty()) sent.push_back(&seal);
  }
  SecretBytes bytes(sent.size() * seal_size_bytes);
  std::size_t at = 0;
  const auto put = [&](ByteView part) {
    std::copy(part.begin(), part.end(), bytes.mutable_view().subspan(at).begin());
    at += seal_part_size_bytes;
  };
  for (const metadata::RecipientSeal* seal : sent) {
    put(seal->fingerprint);
    put(seal->check);
    put(seal->key.view());
  }
  return bytes;
}

std::vector<metadata::RecipientSeal> decode_seals(ByteView bytes) {
  std::vector<metadata::RecipientSeal> seals(bytes.size() / seal_size_bytes);
  std::size_t at = 0;
  const auto next = [&] {
    const ByteView part = bytes.subspan(at, seal_part_size_bytes);
    at += seal_part_size_bytes;
    return part;
  };
  for (metadata::RecipientSeal& seal : seals) {
    const ByteView fingerprint = next();
    std::copy(fingerprint.begin(), fingerprint.end(), seal.fingerprint.begin());
    const ByteView check = next();
    std::copy(check.begin(), check.end(), seal.check.begin());
    seal.key = SecretBytes(next());
  }
  return seals;
}

json to_json(const RotationStatus& status) {
  const bool is_none = !status.is_under_way;
  const bool is_paused = status.state == RotationState::paused;
  json fields = {{"rotation", is_none     ? "none"
                              : is_paused ? "paused"
                                          : "running"},
                 {"state", to_string(status.state)},
                 {"stage", status.stage},
                 {"epoch", status.epoch},
                 {"done_bytes", status.done_bytes},
                 {"total_bytes", status.total_bytes},
                 {"bytes_per_second", status.bytes_per_second},
                 {"damaged_segment_count", status.damaged_segment_count},
                 {"message", status.message}};
  if (status.bytes_per_second > 0) {
    fields["eta_seconds"] = (status.total_bytes - status.done_bytes) / status.bytes_per_second;
  }
  return fields;
}

json to_json(const EpochCounts& counts) {
  return {{"file_count", counts.file_count},
          {"record_count", counts.record_count},
          {"record_bytes", counts.record_bytes},
          {"older_file_count", counts.other_file_count},
          {"older_record_count", counts.other_record_count},
          {"damaged_place_count", counts.damaged_place_count},
          {"first_older", counts.first_other}};
}

std::optional<Result<json>> handle_rotation(Rotation* rotation, std::string_view command,
                                            const json& message,
                                            std::vector<metadata::RecipientSeal> seals) {
  const bool is_known = command == "rotate" || command == "rotation" ||
                        command == "rotation_pause" || command == "rotation_resume" ||
                        command == "rotation_verify";
  if (!is_known) return std::nullopt;
  if (rotation == nullptr) {
    return Result<json>(fail(ErrorCode::unsupported, "this mount cannot rotate keys"));
  }
  return [&]() -> Result<json> {
    if (command == "rotate") return begin(*rotation, message, std::move(seals));
    if (command == "rotation_pause") {
      NACRE_TRY(rotation->pause());
    }
    if (command == "rotation_resume") {
      NACRE_ASSIGN(const auto rate, optional_number(message, "rate"));
      NACRE_TRY(rotation->resume(rate));
    }
    json reply = {{"rotation", to_json(rotation->status())},
                  {"format", static_cast<unsigned>(rotation->format())},
                  {"fingerprint", metadata::to_hex(rotation->fingerprint())}};
    if (command == "rotation_verify") {
      NACRE_ASSIGN(const EpochCounts counts, rotation->verify());
      reply["verification"] = to_json(counts);
    }
    return reply;
  }();
}

}  // namespace nacre::fs
