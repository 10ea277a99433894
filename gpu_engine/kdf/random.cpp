// SPDX-License-Identifier: Apache-2.0
// Random bytes from the kernel. Nothing is safe without them, so the process ends if the kernel
// gives none (as kernels before 3.17 do).
#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "gpu_engine/kdf/kdf.h"

namespace nacre::engine {

void random_bytes(MutableByteView out) {
  while (!out.empty()) {
    const ssize_t count = getrandom(out.data(), out.size(), 0);
    if (count < 0) {
      if (errno == EINTR) continue;
      std::perror("nacre: getrandom");
      std::abort();
    }
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace nacre::engine
