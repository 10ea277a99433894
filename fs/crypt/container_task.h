// SPDX-License-Identifier: Apache-2.0
// The files of a run of encryption or decryption, one after the other, each with a source and a
// sink. The run handles only bytes; the caller handles names, descriptors and terminals.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "fs/crypt/container_format.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

// One file. open(), read() and attributes() are called on the run's reading thread, one at a time.
// write() and finish() are called on the thread that called the run, one at a time.
class ContainerTask {
 public:
  virtual ~ContainerTask() = default;

  // Called before anything is read. The sink may be made here or with the first write.
  virtual Result<> open() { return {}; }
  // Fills out. Returns fewer bytes only at the end of the source.
  virtual Result<std::size_t> read(MutableByteView out) = 0;
  // Called at the end of the source when encrypting. Returns the attributes to keep.
  virtual ContainerAttributes attributes() { return {}; }

  // Writes the next pieces of the container, or of the plain file; the latter have been verified.
  virtual Result<> write(std::span<const ByteView> pieces) = 0;
  // The last call, made exactly once, unless the run itself fails with out_of_memory: then the task
  // is destroyed without it. The output counts only if outcome has a value, which is the content of
  // the container's end record. The task reports errors of this call itself.
  virtual void finish(Result<ContainerEnd> outcome) = 0;
};

// Returns the next file, or null at the end. Called on the reading thread.
using NextContainerTask = std::function<std::unique_ptr<ContainerTask>()>;

// Gets the number of plain bytes that were written since the last call. Called on the writing
// thread.
using ContainerProgress = std::function<void(std::uint64_t bytes)>;

}  // namespace nacre::fs
