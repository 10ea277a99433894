// SPDX-License-Identifier: Apache-2.0
// Chooses how often each call comes, and on which ranges. Many ranges begin or end near round
// numbers, where file systems tend to have bugs.
#include "tests/mount/exerciser/history_maker.h"

#include <algorithm>
#include <utility>

#include "tests/mount/exerciser/kernel_calls.h"

namespace nacre::tests {

namespace {

constexpr std::array<std::pair<Kind, unsigned>, 12> weights = {{{Kind::read, 12},
                                                                {Kind::write, 16},
                                                                {Kind::mapped_read, 8},
                                                                {Kind::mapped_write, 12},
                                                                {Kind::truncate, 5},
                                                                {Kind::allocate, 3},
                                                                {Kind::punch, 4},
                                                                {Kind::zero, 4},
                                                                {Kind::copy, 6},
                                                                {Kind::fsync, 5},
                                                                {Kind::fdatasync, 3},
                                                                {Kind::drop, 6}}};
// The sizes of pages and of chunks.
constexpr std::array<std::uint64_t, 4> round_numbers = {4096, 16384, 65536, 262144};
constexpr std::uint64_t state_size_max = 200'000;

std::uint64_t aligned_down(std::uint64_t value, std::uint64_t boundary) {
  return value / boundary * boundary;
}

std::uint64_t boundary_of(const Operation& operation, std::uint64_t boundary) {
  return is_direct(operation.channel) && boundary == 1 ? 512 : boundary;
}

Filling draw_filling(Chance& chance) {
  constexpr std::array<Filling, 8> fillings = {Filling::text,   Filling::text,   Filling::text,
                                               Filling::random, Filling::random, Filling::mixed,
                                               Filling::mixed,  Filling::zeros};
  return fillings[chance.below(fillings.size())];
}

}  // namespace

RandomHistory::RandomHistory(HistoryOptions options)
    : options_(std::move(options)), chance_(options_.seed) {}

Kind RandomHistory::draw_kind() {
  if (chance_.one_in(options_.one_upkeep_in)) return Kind::upkeep;
  if (chance_.one_in(options_.one_check_in)) return Kind::check;
  if (chance_.one_in(options_.one_reopen_in)) return Kind::reopen;
  unsigned sum = 0;
  for (const auto& [kind, weight] : weights)
    sum += weight;
  auto drawn = static_cast<unsigned>(chance_.below(sum));
  Kind found = Kind::read;
  for (const auto& [kind, weight] : weights) {
    found = kind;
    if (drawn < weight) break;
    drawn -= weight;
  }
  if (found == Kind::mapped_read && !options_.has_mapped_reads) return Kind::read;
  if (found == Kind::mapped_write && !options_.has_mapped_writes) return Kind::write;
  return found;
}

// A range that was drawn before, or begins where one ended; or one of round numbers; or any.
RandomHistory::Range RandomHistory::draw_range(std::uint64_t end_max, std::uint64_t boundary) {
  Range range;
  const std::uint64_t way = chance_.below(4);
  if (way == 0 && drawn_range_count_ > 0) {
    range = recent_[chance_.below(std::min<std::uint64_t>(drawn_range_count_, recent_.size()))];
    if (chance_.one_in(4)) range.offset += range.size;
  } else if (way == 1) {
    const std::uint64_t unit = round_numbers[chance_.below(round_numbers.size())];
    range.offset = aligned_down(chance_.below(end_max + 1), unit);
    range.size = unit * chance_.between(1, 4) - (chance_.one_in(4) ? chance_.between(1, 8) : 0);
  } else {
    range.offset = chance_.below(end_max + 1);
    range.size = chance_.one_in(3) ? chance_.between(1, 8192)
                                   : chance_.between(1, options_.operation_size_max);
  }
  range.size = std::min(range.size, options_.operation_size_max);
  range.offset = aligned_down(range.offset, boundary);
  range.size = std::max(boundary, aligned_down(range.size, boundary));
  if (range.offset + range.size > end_max) {
    range.offset = end_max > range.size ? aligned_down(end_max - range.size, boundary) : 0;
  }
  recent_[drawn_range_count_++ % recent_.size()] = range;
  return range;
}

void RandomHistory::draw_transfer(Operation& operation) {
  operation.channel = options_.channels[chance_.below(options_.channels.size())];
  if (chance_.one_in(3)) {
    operation.piece_count =
        static_cast<std::uint32_t>(chance_.between(2, KernelCalls::piece_count_max));
  }
}

Operation RandomHistory::next(const std::function<std::uint64_t(std::size_t)>& size_of) {
  if (held_) return *std::exchange(held_, std::nullopt);
  const Operation operation = draw(size_of);
  const bool reads = operation.kind == Kind::read || operation.kind == Kind::check;
  const bool is_async = is_aio(operation.channel) || is_uring(operation.channel);
  if (!options_.syncs_first || !reads || !is_async || !is_direct(operation.channel)) {
    return operation;
  }
  held_ = operation;
  return {.kind = Kind::fdatasync, .file = operation.file};
}

Operation RandomHistory::draw(const std::function<std::uint64_t(std::size_t)>& size_of) {
  Operation operation{.kind = draw_kind()};
  if (operation.kind == Kind::upkeep) return operation;
  operation.file = static_cast<std::uint32_t>(chance_.below(options_.file_count));
  const std::uint64_t size = size_of(operation.file);
  const auto take = [&](Range range) {
    operation.offset = range.offset;
    operation.size = range.size;
  };
  switch (operation.kind) {
    case Kind::read:
      draw_transfer(operation);
      take(draw_range(size, boundary_of(operation, options_.read_boundary)));
      break;
    case Kind::write:
      draw_transfer(operation);
      take(draw_range(options_.file_size_max, boundary_of(operation, options_.write_boundary)));
      break;
    case Kind::mapped_read:
      take(draw_range(size, options_.read_boundary));
      break;
    case Kind::mapped_write:
      take(draw_range(options_.file_size_max, options_.write_boundary));
      operation.sync = chance_.one_in(3);
      break;
    case Kind::truncate:
      operation.size =
          aligned_down(chance_.below(options_.file_size_max + 1), options_.truncate_boundary);
      break;
    case Kind::allocate:
    case Kind::zero:
      take(draw_range(options_.file_size_max, options_.truncate_boundary));
      operation.keep_size = chance_.one_in(2);
      break;
    case Kind::punch:
      take(draw_range(size, options_.truncate_boundary));
      break;
    case Kind::copy:
      take(draw_range(size, options_.read_boundary));
      operation.to_file = static_cast<std::uint32_t>(chance_.below(options_.file_count));
      operation.to_offset = draw_range(options_.file_size_max, options_.write_boundary).offset;
      break;
    case Kind::check:
      draw_transfer(operation);
      operation.sync = chance_.one_in(2);
      break;
    default:
      break;
  }
  if (writes_bytes(operation.kind)) {
    operation.filling = draw_filling(chance_);
    operation.stamp = ++stamp_;
  }
  return operation;
}

History state_history(const HistoryOptions& options, std::uint64_t operation_count) {
  Chance chance(options.seed);
  History history;
  std::uint64_t stamp = 0;
  constexpr std::array<std::uint64_t, 8> sizes = {512,    4096,   4096,   10'000,
                                                  16'384, 65'536, 65'537, state_size_max};
  while (history.size() < operation_count) {
    const auto file_count = static_cast<std::uint32_t>(chance.between(1, options.file_count));
    const std::uint64_t size =
        std::min(sizes[chance.below(sizes.size())], options.operation_size_max);
    const std::uint64_t offset = chance.one_in(3) ? chance.below(3) * 4096 + chance.below(9) : 0;
    const std::uint64_t state_count = chance.between(60, 110);
    const std::uint64_t one_sync_in = chance.one_in(3) ? chance.between(2, 5) : 1;
    const std::uint64_t one_read_in = chance.one_in(3) ? chance.between(2, 5) : 1;
    const Channel channel = options.channels[chance.below(options.channels.size())];
    // Offsets and sizes of O_DIRECT writes have to be even; the readers' pages do not.
    const bool is_even = offset % 512 == 0 && size % 512 == 0;
    const Channel write_channel = is_direct(channel) && !is_even ? Channel::plain : channel;
    const Filling filling = draw_filling(chance);
    const bool reads_whole = chance.one_in(2);
    for (std::uint64_t state = 0; state < state_count; ++state) {
      for (std::uint32_t file = 0; file < file_count; ++file) {
        history.push_back({.kind = Kind::write,
                           .file = file,
                           .offset = offset,
                           .size = size,
                           .channel = write_channel,
                           .filling = filling,
                           .stamp = ++stamp});
        if (chance.one_in(one_sync_in)) {
          history.push_back(
              {.kind = chance.one_in(4) ? Kind::fdatasync : Kind::fsync, .file = file});
        }
        if (!chance.one_in(one_read_in)) continue;
        if (reads_whole) {
          history.push_back({.kind = Kind::check, .file = file, .channel = Channel::direct});
        } else {
          history.push_back({.kind = Kind::drop, .file = file});
          history.push_back({.kind = Kind::read, .file = file, .offset = offset, .size = size});
        }
      }
    }
    history.push_back({.kind = Kind::upkeep});
    for (std::uint32_t file = 0; file < file_count; ++file) {
      history.push_back({.kind = Kind::check, .file = file, .channel = Channel::direct});
      history.push_back({.kind = Kind::check, .file = file, .channel = Channel::plain});
    }
  }
  return history;
}

}  // namespace nacre::tests
