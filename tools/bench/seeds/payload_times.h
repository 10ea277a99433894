// SPDX-License-Identifier: Apache-2.0
// Payloads of many messages of AES-128, as figures 4 and 7 of Harrison and Waldron have them.
#pragma once

#include "tools/bench/seeds/run.h"

namespace nacre::tools {

struct PayloadTimes {
  std::optional<double> kernels, with_copies;  // on the device
};
// whole bytes in messages of a size, in CTR, under one key or under a key each. Compared with what
// the processor computes. Nothing without a device. io.
Result<PayloadTimes> time_counters(const SeedRun& run, std::size_t whole, std::size_t message_size,
                                   bool key_for_each);

struct OrderTimes {
  std::size_t size = 0;  // of all messages
  std::optional<double> cpu_as_given, cpu, cuda;
};
// One of the seven payloads; nothing where it is left out for its size. io.
Result<OrderTimes> time_payload_order(const SeedRun& run, int number);

}  // namespace nacre::tools
