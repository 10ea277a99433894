// SPDX-License-Identifier: Apache-2.0
// Payloads of many AES-128 messages, as in figures 4 and 7 of Harrison and Waldron.
#pragma once

#include "tools/papers/run.h"

namespace nacre::tools {

struct PayloadTimes {
  std::optional<double> kernels, with_copies;  // on the device
};
struct CounterTimes {
  PayloadTimes one;       // one message of all bytes
  PayloadTimes one_key;   // messages of a size, under one key
  PayloadTimes key_each;  // the same messages, a key each
};
// Times for `whole` bytes in CTR, each way in turn with the others. Outputs are compared with what
// the processor computes. Values are missing without a device, or if the device does not take the
// messages. Error: io.
Result<CounterTimes> time_counters(const SeedRun& run, std::size_t whole, std::size_t message_size);

struct OrderTimes {
  std::size_t size = 0;  // of all messages
  std::optional<double> cpu_as_given, cpu;
  // With copies the messages are in the engine's order. In all other columns, the kernels too,
  // those of one mode follow those of the other.
  SeedTimes contenders;
};
// Times of the seven payloads, in turns; nothing if they are left out for their size. Error: io.
Result<std::vector<OrderTimes>> time_payload_orders(const SeedRun& run);

}  // namespace nacre::tools
