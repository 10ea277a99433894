// SPDX-License-Identifier: Apache-2.0
#include "metadata/backing/two_copies.h"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace nacre::metadata {

namespace {

struct Copy {
  std::string path;
  Bytes text;
  std::uint64_t generation = 0;
  std::optional<Error> error;
};

Copy read_copy(BackingDirectory& directory, std::string path, std::size_t size_max,
               const std::function<Result<std::uint64_t>(ByteView)>& generation_of) {
  Copy copy{.path = fmt::format("{}/{}", directory.description(), path)};
  auto text = read_file(directory, path, size_max);
  if (!text) {
    copy.error = text.error();
    if (copy.error->code == ErrorCode::too_big) copy.error->code = ErrorCode::corrupt;
    return copy;
  }
  copy.text = std::move(*text);
  if (const auto generation = generation_of(copy.text)) {
    copy.generation = *generation;
  } else {
    copy.error = add_context(generation.error(), copy.path).value();
  }
  return copy;
}

Error warning_about(const Copy& bad) {
  Error warning = *bad.error;
  if (warning.code == ErrorCode::not_found) {
    warning = {ErrorCode::missing, fmt::format("{}: the file is missing", bad.path)};
  }
  warning.message += "; its other copy is used";
  return warning;
}

}  // namespace

std::string copy_name(std::string_view name) {
  return fmt::format("{}.copy", name);
}

Result<ChosenCopy> read_copies(
    BackingDirectory& directory, std::string_view name, std::size_t size_max,
    const std::function<Result<std::uint64_t>(ByteView)>& generation_of) {
  std::array<Copy, 2> copies = {read_copy(directory, std::string(name), size_max, generation_of),
                                read_copy(directory, copy_name(name), size_max, generation_of)};
  for (const Copy& copy : copies) {
    if (copy.error && copy.error->code == ErrorCode::unsupported) {
      return tl::unexpected(*copy.error);
    }
  }
  auto& [first, second] = copies;
  if (first.error && second.error) {
    const bool has_first = first.error->code != ErrorCode::not_found;
    const bool has_second = second.error->code != ErrorCode::not_found;
    if (!has_first && !has_second) return tl::unexpected(*first.error);
    Error error = has_first ? *first.error : *second.error;
    if (has_first && has_second) error.message += fmt::format("; and {}", second.error->message);
    if (error.code == ErrorCode::corrupt) error.message += "; put one back from a backup";
    return tl::unexpected(std::move(error));
  }
  if (first.error) return ChosenCopy{std::move(second.text), {warning_about(first)}};
  if (second.error) return ChosenCopy{std::move(first.text), {warning_about(second)}};
  if (first.text == second.text) return ChosenCopy{std::move(first.text), {}};

  if (first.generation == second.generation) {
    return fail(
        ErrorCode::tampered,
        fmt::format("{} and {} are both of generation {} but differ, so one of them was "
                    "changed. Move one away: the other opens the volume if it is the genuine "
                    "one",
                    first.path, second.path, first.generation));
  }
  Copy& newer = first.generation > second.generation ? first : second;
  const Copy& older = first.generation > second.generation ? second : first;
  Error warning{ErrorCode::rolled_back,
                fmt::format("{} is of generation {}, {} of {}: an update was interrupted, or an "
                            "older file was put back; the newer one is used",
                            older.path, older.generation, newer.path, newer.generation)};
  return ChosenCopy{std::move(newer.text), {std::move(warning)}};
}

Result<void> write_copies(BackingDirectory& directory, std::string_view name,
                          std::string_view text) {
  NACRE_TRY(replace_file(directory, name, as_bytes(text)));
  return replace_file(directory, copy_name(name), as_bytes(text));
}

}  // namespace nacre::metadata
