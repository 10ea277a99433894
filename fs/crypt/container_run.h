// SPDX-License-Identifier: Apache-2.0
// Encrypts and decrypts any number of files, in payloads that hold pieces of several files.
//
// A run reads on a thread of its own, has the engine work on a few payloads, and writes on the
// thread that called it, so the three go on at once. It takes a few times
// Engine::payload_size_bytes() of memory, whatever the size and number of the files. A file that
// fails does not affect the others.
#pragma once

#include <memory>

#include "fs/crypt/container_keys.h"
#include "fs/crypt/container_task.h"
#include "gpu_engine/codec/codec.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

struct ContainerPacking {
  engine::Codec codec = engine::Codec::lz77;
  int level = 0;
  engine::Padding padding = engine::Padding::none;
};

// Calls finish() of each task, unless the run itself fails with out_of_memory. Each container gets
// a random salt of its own.
Result<> encrypt_containers(engine::Engine& engine, const ContainerKeys& keys,
                            const ContainerPacking& packing, const NextContainerTask& next,
                            const ContainerProgress& progress = {});

// Decrypts. A task gets only verified bytes, but it gets them before the rest of the container is
// verified, so its output counts only if finish() gets a value. unlock is called on the reading
// thread. Errors that tasks get:
//   corrupt      not a container, cut off, damaged, or sealed in a malformed way
//   tampered     changed, or put together from parts of others
//   unsupported  of a later version, or with a suite or codec that this build does not have
//   the errors of unlock, of reading and of writing
using UnlockContainer =
    std::function<Result<std::shared_ptr<const metadata::KeyTree>>(ByteView keyring_text)>;
Result<> decrypt_containers(engine::Engine& engine, const UnlockContainer& unlock,
                            const NextContainerTask& next, const ContainerProgress& progress = {});

}  // namespace nacre::fs
