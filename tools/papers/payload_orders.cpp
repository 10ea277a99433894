// SPDX-License-Identifier: Apache-2.0
// See payload_orders.h. Random orders are always the same ones.
#include "tools/papers/payload_orders.h"

#include <algorithm>
#include <random>

namespace nacre::tools {
namespace {

using Messages = std::vector<OrderedMessage>;

constexpr std::size_t long_count = 960, long_blocks = 512;
constexpr std::size_t short_count = 992, short_blocks = 32;
constexpr std::size_t serial_count = 1024, serial_kinds = 8, serial_blocks_min = 16;
constexpr std::size_t warp = 32;
constexpr std::uint32_t seed = 2008;

void shuffle(Messages& messages) {
  std::mt19937 random(seed);
  for (std::size_t i = messages.size(); i > 1; --i)
    std::swap(messages[i - 1], messages[random() % i]);
}

Messages serial_messages() {
  Messages messages;
  for (std::size_t i = 0; i < serial_count; ++i)
    messages.push_back({true, serial_blocks_min << i % serial_kinds});
  shuffle(messages);
  return messages;
}

Messages parallel_messages() {
  Messages messages(long_count, {false, long_blocks});
  messages.insert(messages.end(), short_count, {false, short_blocks});
  shuffle(messages);
  return messages;
}

// Groups of this many serial messages, spread evenly among the others.
Messages spread(const Messages& serial, const Messages& parallel, std::size_t group_size) {
  Messages messages;
  const std::size_t group_count = serial.size() / group_size;
  std::size_t placed = 0;
  for (std::size_t group = 0; group < group_count; ++group) {
    const std::size_t until = parallel.size() * group / group_count;
    for (; placed < until; ++placed)
      messages.push_back(parallel[placed]);
    for (std::size_t i = 0; i < group_size; ++i)
      messages.push_back(serial[group * group_size + i]);
  }
  messages.insert(messages.end(), parallel.begin() + static_cast<std::ptrdiff_t>(placed),
                  parallel.end());
  return messages;
}

// Whole groups at random places.
Messages scatter_groups(const Messages& serial, const Messages& parallel) {
  Messages places(parallel);
  places.insert(places.end(), serial.size() / warp, {true, 0});
  shuffle(places);
  Messages messages;
  std::size_t next = 0;
  for (const OrderedMessage& place : places) {
    if (!place.is_serial) {
      messages.push_back(place);
      continue;
    }
    for (std::size_t i = 0; i < warp; ++i)
      messages.push_back(serial[next++]);
  }
  return messages;
}

}  // namespace

std::vector<OrderedMessage> payload_order(int number) {
  Messages serial = serial_messages();
  Messages parallel = parallel_messages();
  switch (number) {
    case 1: {
      // Each serial message stands in front, followed by a short one whose blocks fill the threads
      // next to its own.
      std::stable_partition(parallel.begin(), parallel.end(), [](const OrderedMessage& message) {
        return message.block_count == short_blocks;
      });
      Messages messages;
      std::size_t next = 0;
      for (const OrderedMessage& message : serial) {
        messages.push_back(message);
        if (next < short_count) messages.push_back(parallel[next++]);
      }
      messages.insert(messages.end(), parallel.begin() + static_cast<std::ptrdiff_t>(next),
                      parallel.end());
      return messages;
    }
    case 2:
      return spread(serial, parallel, 1);
    case 3:
      serial.insert(serial.end(), parallel.begin(), parallel.end());
      return serial;
    case 4:
      serial.insert(serial.end(), parallel.begin(), parallel.end());
      shuffle(serial);
      return serial;
    case 5:
      return scatter_groups(serial, parallel);
    case 7:
      std::stable_sort(serial.begin(), serial.end(),
                       [](const OrderedMessage& a, const OrderedMessage& b) {
                         return a.block_count > b.block_count;
                       });
      [[fallthrough]];
    default:
      return spread(serial, parallel, warp);
  }
}

const char* payload_order_name(int number) {
  constexpr const char* names[] = {"1: a serial message per 32 threads, all in front",
                                   "2: a serial message per 32 threads, spread evenly",
                                   "3: all serial messages in front",
                                   "4: random",
                                   "5: random, serial messages in groups of 32",
                                   "6: groups of 32, spread evenly",
                                   "7: as 6, in the order of their sizes"};
  return names[number - 1];
}

}  // namespace nacre::tools
