// SPDX-License-Identifier: Apache-2.0
// The seven payloads of Harrison and Waldron (section 7.3, figure 7): the same messages, of a
// parallel mode (CTR) and of a serial one (CBC encryption), in seven orders.
#pragma once

#include <cstddef>
#include <vector>

namespace nacre::tools {

struct OrderedMessage {
  bool is_serial = false;
  std::size_t block_count = 0;
};

inline constexpr int payload_order_count = 7;
// number: 1 to 7. 960 parallel messages of 512 blocks, 992 of 32, and 1,024 serial ones of 16, 32,
// … 2,048 blocks.
std::vector<OrderedMessage> payload_order(int number);
// What the paper says about it, in short.
const char* payload_order_name(int number);

}  // namespace nacre::tools
