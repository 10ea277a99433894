// SPDX-License-Identifier: Apache-2.0
// Decides how many messages a batch has.
#include "gpu_engine/cuda/batch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gpu_engine/cuda/tuning.h"

namespace nacre::engine::cuda {
namespace {

// Whether the time of a batch is that of its longest message, however few messages it has: one
// thread processes each message, and nothing else takes long.
bool is_all_waiting(const BatchKind& kind) {
  const bool crypts = kind.operation == Operation::encrypt || kind.operation == Operation::decrypt;
  return is_serial_cipher(kind) || (crypts && has_serial_hash(kind));
}

void sort_by_size(const Payload& payload, std::vector<std::uint32_t>& indexes) {
  std::ranges::stable_sort(indexes, std::greater(),
                           [&](std::uint32_t index) { return payload.messages[index].input_size; });
}

KindGroup sorted_by_size(const Payload& payload, const KindGroup& group) {
  KindGroup sorted = group;
  sort_by_size(payload, sorted.indexes);
  std::ranges::transform(sorted.indexes, sorted.weights.begin(), [&](std::uint32_t index) {
    const Message& message = payload.messages[index];
    return static_cast<std::uint32_t>(batch_weight(message) + message.aad_size);
  });
  return sorted;
}

// Whether the work has no codec.
bool is_bare(const BatchKind& kind) {
  return kind.operation == Operation::encrypt || kind.operation == Operation::decrypt ||
         kind.operation == Operation::checksum;
}

// Up to which sums a batch is filled.
struct Fill {
  std::uint64_t bytes;
  std::size_t messages;
};

Fill fill_of(std::uint64_t bytes, std::size_t messages, std::size_t batch_count) {
  const bool are_short = bytes < messages * short_message_size_bytes;
  return {.bytes = std::clamp(bytes / batch_count, batch_fill_bytes_min, batch_fill_bytes_max),
          .messages = std::clamp<std::size_t>(
              messages / batch_count,
              are_short ? batch_message_count_min_of_short : batch_message_count_min,
              batch_message_count_max)};
}

Fill fill_of(const std::vector<KindGroup>& groups, std::size_t batch_count) {
  std::uint64_t bytes = 0;
  std::size_t messages = 0;
  for (const KindGroup& group : groups) {
    messages += group.indexes.size();
    bytes += group.input_bytes;
  }
  return fill_of(bytes, messages, batch_count);
}

// For work without a codec, which needs no large number of pieces in flight. Batches of few bytes
// are not worth their calls to the driver, but there must be enough batches for copies up, kernels
// and copies down to overlap.
Fill filled_with_bytes(Fill fill, const KindGroup& group) {
  const std::size_t count = group.indexes.size();
  const std::uint64_t size_bytes = group.input_bytes / count;
  if (size_bytes < short_message_size_bytes) return fill;
  fill.messages = std::clamp<std::size_t>(
      std::min<std::size_t>(batch_fill_bytes_min / size_bytes, count / overlapping_batches),
      fill.messages, batch_message_count_max);
  // A little more, so that room lost at the ends of batches does not make another batch necessary.
  fill.bytes += fill.bytes / 16;
  return fill;
}

Batch part_of(const KindGroup& group, std::size_t begin, std::size_t end) {
  const auto at = [&](std::size_t place) {
    return group.indexes.begin() + static_cast<std::ptrdiff_t>(place);
  };
  return {.kind = group.kind, .indexes = {at(begin), at(end)}};
}

// Cuts a group into batches. ramp: if not 0, batches start small, and after every `ramp` batches
// their size doubles until it is that of `fill`.
void cut(std::vector<Batch>& batches, const KindGroup& group, const Fill& fill,
         std::size_t ramp = 0) {
  std::size_t nth = 0;
  std::uint64_t bytes = ramp == 0 ? fill.bytes : batch_fill_bytes_min;
  for (std::size_t begin = 0, end = 0; begin < group.indexes.size(); begin = end) {
    // A single message larger than a batch should be still makes a batch.
    std::uint64_t left = std::max<std::uint64_t>(group.weights[begin], bytes);
    while (end < group.indexes.size() && end - begin < fill.messages && group.weights[end] <= left)
      left -= group.weights[end++];
    batches.push_back(part_of(group, begin, end));
    if (ramp > 0 && ++nth % ramp == 0) bytes = std::min(2 * bytes, fill.bytes);
  }
}

// Sorts messages by size within a batch if one thread hashes each, since a warp is busy until the
// longest message of its threads ends. Messages do not move to other batches, because the inputs of
// a batch are contiguous.
void put_in_order(const Payload& payload, std::vector<Batch>& batches) {
  for (Batch& batch : batches) {
    if (has_serial_hash(batch.kind)) sort_by_size(payload, batch.indexes);
  }
}

// Makes one batch for each slot, or more if these would be too large.
void cut_evenly(std::vector<Batch>& batches, const KindGroup& group, std::size_t slot_count) {
  const std::size_t total = group.indexes.size();
  const std::size_t share = (total + slot_count - 1) / std::max<std::size_t>(slot_count, 1);
  const std::size_t count_max = group.kind.operation == Operation::rsa_generate
                                    ? rsa_generate_count_max
                                    : rsa_message_count_max;
  const std::size_t count = std::clamp<std::size_t>(share, 1, count_max);
  for (std::size_t at = 0; at < total; at += count)
    batches.push_back(part_of(group, at, std::min(at + count, total)));
}

}  // namespace

std::vector<Batch> cut_into_batches(const Payload& payload, const std::vector<KindGroup>& groups,
                                    std::size_t slot_count) {
  const std::size_t slots = std::max<std::size_t>(slot_count, 1);
  const Fill fill_of_many = fill_of(groups, batches_per_slot * slots);
  Fill fill_of_one = fill_of(groups, slots);
  // A little more, so that tags and room lost at the ends of batches do not make another batch
  // necessary.
  if (fill_of_one.bytes > batch_fill_bytes_min) fill_of_one.bytes += fill_of_one.bytes / 16;
  std::vector<Batch> batches;
  // Work of which a second batch would take as long as the first is cut into one batch a slot.
  const auto fill_for = [&](const KindGroup& group) {
    if (is_all_waiting(group.kind)) return fill_of_one;
    return is_bare(group.kind) ? filled_with_bytes(fill_of_many, group) : fill_of_many;
  };
  // When long payloads are sealed, the first batches are short, so that copies down begin early.
  // Batches that open records need many pieces in flight, and short ones would make them slower
  // (docs/PERFORMANCE_CUDA.md).
  const auto ramp_for = [&](const KindGroup& group) {
    const Operation operation = group.kind.operation;
    const bool seals = operation == Operation::seal || operation == Operation::reseal;
    return seals && fill_of_many.bytes == batch_fill_bytes_max ? slots : 0;
  };
  // A serial message takes equally long however few run at the same time. The longest begin first,
  // and in the same batches, since a batch ends with its longest message.
  for (const KindGroup& group : groups) {
    if (!is_serial_cipher(group.kind)) continue;
    cut(batches, sorted_by_size(payload, group), fill_for(group));
  }
  for (const KindGroup& group : groups) {
    if (is_serial_cipher(group.kind)) continue;
    if (is_rsa(group.kind.operation))
      cut_evenly(batches, group, slot_count);
    else
      cut(batches, group, fill_for(group), ramp_for(group));
  }
  put_in_order(payload, batches);
  return batches;
}

std::vector<Stretch> cut_into_stretches(std::size_t message_count, std::uint64_t size_bytes,
                                        std::size_t slot_count) {
  const Fill fill = fill_of(message_count * size_bytes, message_count,
                            batches_per_slot * std::max<std::size_t>(slot_count, 1));
  std::vector<Stretch> stretches;
  for (std::size_t at = 0; at < message_count; at += fill.messages)
    stretches.push_back(
        {.first = static_cast<std::uint32_t>(at),
         .count = static_cast<std::uint32_t>(std::min(fill.messages, message_count - at))});
  return stretches;
}

std::vector<Batch> fill_batches(const Payload& payload, std::vector<KindGroup> groups) {
  constexpr Fill fill = {.bytes = batch_fill_bytes_max, .messages = batch_message_count_max};
  std::vector<Batch> batches;
  for (KindGroup& group : groups) {
    if (is_serial_cipher(group.kind)) group = sorted_by_size(payload, group);
    const std::uint64_t weight =
        std::accumulate(group.weights.begin(), group.weights.end(), std::uint64_t{0});
    if (is_rsa(group.kind.operation))
      cut_evenly(batches, group, 1);
    else if (weight > fill.bytes || group.indexes.size() > fill.messages)
      cut(batches, group, fill);
    else
      batches.push_back({.kind = group.kind, .indexes = std::move(group.indexes)});
  }
  put_in_order(payload, batches);
  return batches;
}

}  // namespace nacre::engine::cuda
