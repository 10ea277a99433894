// SPDX-License-Identifier: Apache-2.0
// The hash of a plan, by which a repair can be held to a plan that was shown: if today's plan has
// another hash, the volume has changed since.
//
// Some rows of a plan need random bytes and a time, such as the salt of a write session. They
// follow from the plan's seed, so a plan that is made again with the seed of the first is the same
// plan, bit by bit, unless the volume changed. The hash is the seed and an HMAC of the whole plan
// under a subkey of the volume: names and rows are secret, and the hash tells nothing of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fs/repair/repair_plan.h"
#include "gpu_engine/base/bytes.h"
#include "metadata/keys/keys.h"

namespace nacre::fs {

// 6 bytes of the time, in seconds since 1970, then 10 random bytes. It is no secret.
using PlanSeed = std::array<Byte, 16>;
PlanSeed new_plan_seed();

// What a plan draws from its seed. One thread may use it. The same order of calls gives the same
// bytes.
class PlanDraw {
 public:
  PlanDraw(const metadata::KeyTree& keys, const PlanSeed& seed) : keys_(keys), seed_(seed) {}

  // Fills `to` with bytes that cannot be told from random ones without the volume's keys.
  void fill(MutableByteView to);
  std::int64_t seconds() const;  // the time of the seed

 private:
  const metadata::KeyTree& keys_;
  const PlanSeed seed_;
  std::uint64_t count_ = 0;
};

// 64 hexadecimal digits. They depend on every step and every loss of the plan, and on the text of
// what else was shown with it. The time at which the plan was made and the name of a new db/ do not
// count.
std::string plan_hash(const RepairPlan& plan, std::string_view also_shown,
                      const metadata::KeyTree& keys, const PlanSeed& seed);
// The seed in a hash. Nothing if the text is no hash.
std::optional<PlanSeed> seed_of_hash(std::string_view hash);

}  // namespace nacre::fs
