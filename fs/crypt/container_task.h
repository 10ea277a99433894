// SPDX-License-Identifier: Apache-2.0
// What a run of encryption or decryption works on: files, one after the other, each with its source
// and its sink. The pipeline knows bytes only; names, descriptors and terminals are the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "fs/crypt/container_format.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

// One file. open(), read() and attributes() are called on the run's reading thread, write() and
// finish() on the thread that called the run; never two at once of either group.
class ContainerTask {
 public:
  virtual ~ContainerTask() = default;

  // Before anything is read. The sink may be made here or with the first write.
  virtual Result<> open() { return {}; }
  // Fills out, fewer bytes only where the source ends.
  virtual Result<std::size_t> read(MutableByteView out) = 0;
  // Behind the end of the source, when encrypting: what to keep of the file.
  virtual ContainerAttributes attributes() { return {}; }

  // The pieces in order: of a container, or of a plain file, of which every piece was verified.
  virtual Result<> write(std::span<const ByteView> pieces) = 0;
  // Called once, last. What was written counts only if outcome has a value: of decryption what the
  // container's end says, of encryption what was put there. Reports by itself what goes wrong here.
  virtual void finish(Result<ContainerEnd> outcome) = 0;
};

// The next file; none at the end. Called on the reading thread.
using NextContainerTask = std::function<std::unique_ptr<ContainerTask>()>;

// Plain bytes of whole payloads that were written since the last call. On the writing thread.
using ContainerProgress = std::function<void(std::uint64_t bytes)>;

}  // namespace nacre::fs
