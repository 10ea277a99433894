// SPDX-License-Identifier: Apache-2.0
// Makes the engine forget keys, for a caller that has just destroyed a key, an epoch's for example.
#pragma once

#include "gpu_engine/engine.h"

namespace nacre::engine {

// Wipes the keys and key schedules that the engine keeps from one payload to the next, and the
// memory of devices in which batches leave keys; waits for batches that devices are running. Keys
// of payloads that run meanwhile are wiped when those payloads have ended, or with the engine.
// Later payloads make their key schedules anew. Thread-safe, but must not be called from a
// payload's done().
void forget_keys(Engine& engine);

}  // namespace nacre::engine
