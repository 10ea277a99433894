// SPDX-License-Identifier: Apache-2.0
// Marks and recognises the threads of backends.
#include "gpu_engine/backend.h"

namespace nacre::engine {
namespace {

thread_local bool engine_thread = false;

}  // namespace

bool is_engine_thread() {
  return engine_thread;
}

void mark_engine_thread() {
  engine_thread = true;
}

}  // namespace nacre::engine
