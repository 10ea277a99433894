// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/known_volumes.h"

#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "gpu_engine/base/folder_owner.h"
#include "tools/cli/own_files.h"

namespace nacre::tools {

namespace {

constexpr std::string_view format_2_mark = " format-2";
constexpr std::string_view next_mark = " next=";

}  // namespace

Result<std::string> parse_fingerprint(std::string_view text) {
  constexpr std::size_t digits = 64;
  std::string lower;
  for (const char c : text)
    lower += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  if (lower.size() == digits && lower.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return lower;
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is not the fingerprint of a volume: a fingerprint has {} hexadecimal "
                          "digits. 'nacre key list' shows it if you give a secret",
                          text, digits));
}

Result<std::vector<KnownVolumes>> KnownVolumes::of_user() {
  NACRE_ASSIGN(const auto folders, user_folders());
  std::vector<KnownVolumes> files;
  for (const auto& folder : folders)
    files.emplace_back(folder + "/known_volumes");
  return files;
}

std::string KnownVolumes::to_line(const KnownVolume& volume) {
  return fmt::format("{} {} {}{}{}{}", escape_path(volume.path, false), volume.volume_id,
                     volume.fingerprint, volume.is_format_2 ? format_2_mark : "",
                     volume.next_fingerprint.empty() ? "" : next_mark, volume.next_fingerprint);
}

std::optional<KnownVolume> KnownVolumes::from_line(std::string_view line) {
  if (line.starts_with('#')) return std::nullopt;
  std::string next_fingerprint;
  if (const auto next = line.rfind(next_mark); next != std::string_view::npos) {
    next_fingerprint = line.substr(next + next_mark.size());
    line = line.substr(0, next);
  }
  const bool is_format_2 = line.ends_with(format_2_mark);
  if (is_format_2) line.remove_suffix(format_2_mark.size());
  const auto first = line.find(' ');
  const auto second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  return KnownVolume{.path = unescape_path(line.substr(0, first)),
                     .volume_id = std::string(line.substr(first + 1, second - first - 1)),
                     .fingerprint = std::string(line.substr(second + 1)),
                     .is_format_2 = is_format_2,
                     .next_fingerprint = std::move(next_fingerprint)};
}

namespace {

std::vector<std::string> lines_of(const std::string& content) {
  std::vector<std::string> lines;
  std::istringstream stream(content);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(std::move(line));
  return lines;
}

constexpr std::string_view what_it_may_mean =
    "An attacker may have put another volume in its place, to see what you write to it. ";

tl::unexpected<Error> is_another(const KnownVolume& volume, const KnownVolume& known,
                                 const std::string& line_to_remove) {
  return fail(
      ErrorCode::not_permitted,
      fmt::format("{} holds another volume than when it was used last: {}. {}Go on only if you "
                  "know that the volume was made anew or that its key was replaced. Then remove {}",
                  volume.path,
                  known.volume_id == volume.volume_id
                      ? fmt::format("its key has another fingerprint, {}", volume.fingerprint)
                      : fmt::format("the id is {}, and was {}", volume.volume_id, known.volume_id),
                  what_it_may_mean, line_to_remove));
}

tl::unexpected<Error> has_another_key(const KnownVolume& volume, const KnownVolume& known,
                                      const std::string& line_to_remove) {
  return fail(
      ErrorCode::not_permitted,
      fmt::format("{} says that it is the volume that is known as {} ({}), but its key has another "
                  "fingerprint, {}. {}Go on only if you know that this is a copy from before the "
                  "volume's key was replaced, or that the key was replaced elsewhere. Then name "
                  "the fingerprint that you expect here (--fingerprint HEX). If the other volume "
                  "no longer exists, you can instead remove {}",
                  volume.path, known.path, known.volume_id, volume.fingerprint, what_it_may_mean,
                  line_to_remove));
}

}  // namespace

Result<KnownVolumes::Acquaintance> KnownVolumes::check(const KnownVolume& volume,
                                                       bool is_named) const {
  NACRE_ASSIGN(const auto content, file_.read());
  const auto lines = lines_of(content);
  struct Line {
    std::size_t index;
    KnownVolume known;
  };
  std::optional<Line> of_path, newest_of_id;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto known = from_line(lines[i]);
    if (!known) continue;
    if (known->path == volume.path && !of_path) of_path = {i, *known};
    if (known->volume_id == volume.volume_id) newest_of_id = {i, *known};
  }
  const auto to_remove = [&](const Line& line) {
    return fmt::format("line {} of {} and try again: {}", line.index + 1, file(),
                       lines[line.index]);
  };
  if (of_path) {
    const bool same_id = of_path->known.volume_id == volume.volume_id;
    if (same_id && (volume.fingerprint.empty() || of_path->known.has_key(volume.fingerprint))) {
      return Acquaintance{.is_known = true, .was_format_2 = of_path->known.is_format_2};
    }
    const bool has_newer_key = same_id && newest_of_id->index > of_path->index &&
                               newest_of_id->known.has_key(volume.fingerprint);
    if (!has_newer_key) return is_another(volume, of_path->known, to_remove(*of_path));
    return Acquaintance{.is_known = true,
                        .other_path = newest_of_id->known.path,
                        .was_format_2 = newest_of_id->known.is_format_2};
  }
  if (!newest_of_id || volume.fingerprint.empty()) return Acquaintance{};
  if (newest_of_id->known.has_key(volume.fingerprint)) {
    return Acquaintance{.is_known = true,
                        .other_path = newest_of_id->known.path,
                        .was_format_2 = newest_of_id->known.is_format_2};
  }
  if (is_named) return Acquaintance{.has_another_key = true};
  return has_another_key(volume, newest_of_id->known, to_remove(*newest_of_id));
}

Result<> KnownVolumes::pin(const KnownVolume& volume) const {
  return write_line(volume, Place::end);
}

Result<> KnownVolumes::pin_copy(const KnownVolume& volume) const {
  return write_line(volume, Place::front_of_id);
}

Result<> KnownVolumes::note_format_2(const KnownVolume& volume) const {
  return write_line(volume, Place::as_before);
}

Result<std::optional<KnownVolume>> KnownVolumes::line_of(std::string_view path) const {
  NACRE_ASSIGN(const auto content, file_.read());
  for (const auto& line : lines_of(content)) {
    auto known = from_line(line);
    if (known && known->path == path) return known;
  }
  return std::nullopt;
}

Result<> KnownVolumes::note_next(const KnownVolume& volume) const {
  return write_line(volume, Place::as_before);
}

Result<> KnownVolumes::settle_next(const KnownVolume& volume) const {
  NACRE_ASSIGN(const auto known, line_of(volume.path));
  if (!known || known->next_fingerprint.empty() || known->volume_id != volume.volume_id) return {};
  if (known->next_fingerprint == volume.fingerprint) return pin(volume);
  if (known->fingerprint != volume.fingerprint) return {};
  KnownVolume settled = *known;
  settled.next_fingerprint.clear();
  return write_line(settled, Place::as_before);
}

Result<> KnownVolumes::write_line(const KnownVolume& volume, Place place) const {
  return file_.replace(
      [&](const std::string& content) -> Result<std::string> {
        const std::string own_line = to_line(volume) + '\n';
        std::string text;
        bool is_written = false;
        for (const auto& line : lines_of(content)) {
          const auto known = from_line(line);
          if (known && known->path == volume.path) {
            if (place != Place::as_before || is_written) continue;
            text += own_line;
            is_written = true;
            continue;
          }
          if (place == Place::front_of_id && !is_written && known &&
              known->volume_id == volume.volume_id) {
            text += own_line;
            is_written = true;
          }
          text += line + '\n';
        }
        if (!is_written) text += own_line;
        return text;
      },
      Durability::synced);
}

}  // namespace nacre::tools
