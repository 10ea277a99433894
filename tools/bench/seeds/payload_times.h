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
// Of the seven payloads, in turns; nothing measured where they are left out for their size. io.
Result<std::vector<OrderTimes>> time_payload_orders(const SeedRun& run);

}  // namespace nacre::tools
