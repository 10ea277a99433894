// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/publickey/openssl_memory.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <string.h>

#include <cstdlib>
#include <cstring>

namespace nacre::engine {

namespace {

void* allocate(std::size_t size, const char*, int) {
  return std::malloc(size);
}

void wipe_and_free(void* memory, const char*, int) {
  if (memory == nullptr) return;
  ::explicit_bzero(memory, ::malloc_usable_size(memory));
  std::free(memory);
}

// Does not use realloc(3), which leaves the old bytes behind when it moves memory.
void* resize(void* memory, std::size_t size, const char* file, int line) {
  if (memory == nullptr) return std::malloc(size);
  if (size == 0) {
    wipe_and_free(memory, file, line);
    return nullptr;
  }
  const std::size_t old_size = ::malloc_usable_size(memory);
  if (size <= old_size) return memory;
  void* larger = std::malloc(size);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, memory, old_size);
  wipe_and_free(memory, file, line);
  return larger;
}

}  // namespace

bool wipe_what_openssl_frees() {
  static const bool is_set = CRYPTO_set_mem_functions(allocate, resize, wipe_and_free) == 1;
  return is_set;
}

}  // namespace nacre::engine
