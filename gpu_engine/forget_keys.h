// SPDX-License-Identifier: Apache-2.0
// For who has just destroyed a key, of an epoch for example.
#pragma once

#include "gpu_engine/engine.h"

namespace nacre::engine {

// Wipes the keys and key schedules that the engine keeps from one payload to the next, and the
// memory of devices in which batches leave them; waits for batches that devices run. Those of
// payloads that run meanwhile go when these have ended, or with the engine. Thread-safe, but not
// for a payload's done(); what is sealed next makes its schedule anew.
void forget_keys(Engine& engine);

}  // namespace nacre::engine
