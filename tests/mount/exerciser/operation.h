// SPDX-License-Identifier: Apache-2.0
// One call on one of the files that file_exerciser works on, as numbers that mean the same whatever
// was called before: any part of a history can be replayed, on files of any size. A line of text
// each, in the order of the fields:
//
//   write file=0 at=4096 size=128000 via=io_uring pieces=3 fill=random stamp=77
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nacre::tests {

enum class Kind : std::uint8_t {
  read,
  write,
  mapped_read,
  mapped_write,
  truncate,
  allocate,
  punch,
  zero,
  copy,
  fsync,
  fdatasync,
  reopen,  // closes every descriptor of the file and opens it again
  drop,    // posix_fadvise(DONTNEED): clean pages go, so that the file system is asked again
  check,   // reads the whole file through a descriptor of its own
  upkeep,  // the command that lets the file system put itself in order
};
inline constexpr std::size_t kind_count = 15;

// The way that bytes take to and from the kernel.
enum class Channel : std::uint8_t { plain, direct, aio, direct_aio, io_uring, direct_io_uring };
inline constexpr std::size_t channel_count = 6;

// What a write consists of: text packs well, random bytes do not, mixed are both in turns.
enum class Filling : std::uint8_t { text, random, mixed, zeros };
inline constexpr std::size_t filling_count = 4;

struct Operation {
  Kind kind = Kind::read;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  // for truncate: the new size
  // For copy: the target.
  std::uint32_t to_file = 0;
  std::uint64_t to_offset = 0;
  // For read, write and check.
  Channel channel = Channel::plain;
  std::uint32_t piece_count =
      1;  // all are in flight at once, but on the channels plain and direct one by one
  // For write and mapped_write.
  Filling filling = Filling::text;
  std::uint64_t stamp = 0;  // which write it is: no two of a history have the same bytes
  // For allocate and zero: the size of the file stays.
  bool keep_size = false;
  // For mapped_write: an msync follows. For check: an fsync comes first.
  bool sync = false;

  bool operator==(const Operation&) const = default;
};

using History = std::vector<Operation>;

constexpr bool is_direct(Channel channel) {
  return channel == Channel::direct || channel == Channel::direct_aio ||
         channel == Channel::direct_io_uring;
}
constexpr bool is_aio(Channel channel) {
  return channel == Channel::aio || channel == Channel::direct_aio;
}
constexpr bool is_uring(Channel channel) {
  return channel == Channel::io_uring || channel == Channel::direct_io_uring;
}
constexpr bool writes_bytes(Kind kind) {
  return kind == Kind::write || kind == Kind::mapped_write;
}

// The bytes of a write from its byte first on.
void fill(const Operation& write, std::uint64_t first, std::span<std::byte> out);

std::string_view to_string(Kind kind);
std::string to_string(const Operation& operation);
std::optional<Operation> operation_from(std::string_view line);

// A line each, but runs of alike ones (but for their stamps) only once: "64 times: …".
std::string to_summary(const History& history);

}  // namespace nacre::tests
