// SPDX-License-Identifier: Apache-2.0
// For who has just destroyed a key, of an epoch for example.
#pragma once

#include "gpu_engine/engine.h"

namespace nacre::engine {

// Wipes the keys and key schedules that the engine keeps from one payload to the next. Those of
// payloads that run meanwhile go when these have ended; devices' memory, in which batches leave
// keys, is wiped when the engine is destroyed. Thread-safe; what is sealed next makes its schedule
// anew.
void forget_keys(Engine& engine);

}  // namespace nacre::engine
