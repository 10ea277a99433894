// SPDX-License-Identifier: Apache-2.0
// Names, text and content of operations.
#include "tests/mount/exerciser/operation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace nacre::tests {

namespace {

constexpr std::array<std::string_view, kind_count> kind_names = {
    "read", "write", "mapped_read", "mapped_write", "truncate", "allocate", "punch", "zero",
    "copy", "fsync", "fdatasync",   "reopen",       "drop",     "check",    "upkeep"};
constexpr std::array<std::string_view, channel_count> channel_names = {
    "plain", "direct", "aio", "direct_aio", "io_uring", "direct_io_uring"};
constexpr std::array<std::string_view, filling_count> filling_names = {"text", "random", "mixed",
                                                                       "zeros"};
constexpr std::size_t run_length_max = 4;

// splitmix64.
std::uint64_t scramble(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

// The bytes of a write come in words of eight.
using Word = std::array<std::byte, 8>;

template <typename Names>
std::optional<std::size_t> index_of(const Names& names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names.begin());
}

template <typename Number>
bool parse_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string_view next_word(std::string_view& rest) {
  const std::size_t size = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, size);
  rest.remove_prefix(std::min(size + 1, rest.size()));
  return word;
}

bool set_field(Operation& operation, std::string_view word) {
  if (word == "keep_size") return operation.keep_size = true;
  if (word == "sync") return operation.sync = true;
  const std::size_t mark = word.find('=');
  if (mark == std::string_view::npos) return false;
  const std::string_view name = word.substr(0, mark), value = word.substr(mark + 1);
  if (name == "file") return parse_number(value, operation.file);
  if (name == "at") return parse_number(value, operation.offset);
  if (name == "size") return parse_number(value, operation.size);
  if (name == "to_file") return parse_number(value, operation.to_file);
  if (name == "to") return parse_number(value, operation.to_offset);
  if (name == "pieces") return parse_number(value, operation.piece_count);
  if (name == "stamp") return parse_number(value, operation.stamp);
  if (name == "via") {
    const auto index = index_of(channel_names, value);
    if (index) operation.channel = static_cast<Channel>(*index);
    return index.has_value();
  }
  if (name == "fill") {
    const auto index = index_of(filling_names, value);
    if (index) operation.filling = static_cast<Filling>(*index);
    return index.has_value();
  }
  return false;
}

bool are_alike(Operation one, Operation other) {
  one.stamp = other.stamp = 0;
  return one == other;
}

// How many times the run of that length at the place comes there, one after another.
std::size_t count_runs(const History& history, std::size_t at, std::size_t length) {
  std::size_t end = at + length;
  while (end < history.size() && are_alike(history[end], history[end - length]))
    ++end;
  return (end - at) / length;
}

}  // namespace

void fill(const Operation& write, std::uint64_t first, std::span<std::byte> out) {
  // Two words, so that a look at the file tells which write was here.
  const std::string line = fmt::format("write {:09}\n", write.stamp % 1'000'000'000);
  const std::uint64_t seed = scramble(write.stamp);
  const auto word_at = [&](std::uint64_t index) {
    Word word{};
    const bool is_text =
        write.filling == Filling::text || (write.filling == Filling::mixed && index / 64 % 2 == 0);
    if (write.filling == Filling::zeros) return word;
    if (is_text) {
      std::memcpy(word.data(), line.data() + index % 2 * word.size(), word.size());
    } else {
      word = std::bit_cast<Word>(scramble(seed + index));
    }
    return word;
  };
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t at = first + done;
    const std::size_t skipped = at % sizeof(Word);
    const std::size_t count = std::min(sizeof(Word) - skipped, out.size() - done);
    const Word word = word_at(at / sizeof(Word));
    std::memcpy(out.data() + done, word.data() + skipped, count);
    done += count;
  }
}

std::string_view to_string(Kind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::string to_string(const Operation& operation) {
  const Kind kind = operation.kind;
  std::string text(to_string(kind));
  if (kind == Kind::upkeep) return text;
  text += fmt::format(" file={}", operation.file);
  const bool transfers = kind == Kind::read || kind == Kind::write;
  const bool is_mapped = kind == Kind::mapped_read || kind == Kind::mapped_write;
  const bool allocates = kind == Kind::allocate || kind == Kind::punch || kind == Kind::zero;
  if (transfers || is_mapped || allocates || kind == Kind::copy) {
    text += fmt::format(" at={} size={}", operation.offset, operation.size);
  }
  if (kind == Kind::truncate) text += fmt::format(" size={}", operation.size);
  if (kind == Kind::copy) {
    text += fmt::format(" to_file={} to={}", operation.to_file, operation.to_offset);
  }
  if (transfers || kind == Kind::check) {
    text += fmt::format(" via={}", channel_names[static_cast<std::size_t>(operation.channel)]);
    if (operation.piece_count > 1) text += fmt::format(" pieces={}", operation.piece_count);
  }
  if (writes_bytes(kind)) {
    text +=
        fmt::format(" fill={} stamp={}", filling_names[static_cast<std::size_t>(operation.filling)],
                    operation.stamp);
  }
  if (operation.keep_size) text += " keep_size";
  if (operation.sync) text += " sync";
  return text;
}

std::optional<Operation> operation_from(std::string_view line) {
  Operation operation;
  const auto kind = index_of(kind_names, next_word(line));
  if (!kind) return std::nullopt;
  operation.kind = static_cast<Kind>(*kind);
  while (!line.empty()) {
    if (!set_field(operation, next_word(line))) return std::nullopt;
  }
  return operation;
}

std::string to_summary(const History& history) {
  std::string text;
  for (std::size_t at = 0; at < history.size();) {
    std::size_t length = 1, count = 1;
    for (std::size_t candidate = 1; candidate <= run_length_max; ++candidate) {
      if (at + candidate > history.size()) break;
      const std::size_t runs = count_runs(history, at, candidate);
      if (runs > 1 && runs * candidate > count * length) length = candidate, count = runs;
    }
    if (count > 1) text += fmt::format("{} times:\n", count);
    for (std::size_t i = at; i < at + length; ++i)
      text += fmt::format("{}{}\n", count > 1 ? "  " : "", to_string(history[i]));
    at += count * length;
  }
  return text;
}

}  // namespace nacre::tests
