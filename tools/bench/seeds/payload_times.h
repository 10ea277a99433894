// SPDX-License-Identifier: Apache-2.0
// Payloads of many messages of AES-128, as figures 4 and 7 of Harrison and Waldron have them.
#pragma once

#include "tools/bench/seeds/run.h"

namespace nacre::tools {

struct PayloadTimes {
  std::optional<double> kernels, with_copies;  // on the device
};
struct CounterTimes {
  PayloadTimes one;       // message of all bytes
  PayloadTimes one_key;   // for messages of a size
  PayloadTimes key_each;  // for the same messages
};
// whole bytes in CTR, each way in turn with the others. Compared with what the processor computes.
// Nothing of what a device does not take, or without one. io.
Result<CounterTimes> time_counters(const SeedRun& run, std::size_t whole, std::size_t message_size);

struct OrderTimes {
  std::size_t size = 0;  // of all messages
  std::optional<double> cpu_as_given, cpu;
  // With copies in the engine's order; all others, the kernels too, the messages of one mode after
  // those of the other.
  SeedTimes contenders;
};
// Of the seven payloads, in turns; nothing measured where they are left out for their size. io.
Result<std::vector<OrderTimes>> time_payload_orders(const SeedRun& run);

}  // namespace nacre::tools
