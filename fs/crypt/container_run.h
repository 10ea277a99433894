// SPDX-License-Identifier: Apache-2.0
// Encrypting and decrypting files, as many as there are, in payloads that hold pieces of several.
//
// A run reads on a thread of its own, lets the engine work on a few payloads, and writes on the
// thread that called it, so reading, working and writing go on at once. It takes a few times
// Engine::payload_size_bytes() of memory, whatever the files' sizes and their number. A file that
// fails fails alone.
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

// Every task gets its finish(), unless the run itself fails: out_of_memory. Each container gets a
// random salt of its own.
Result<> encrypt_containers(engine::Engine& engine, const ContainerKeys& keys,
                            const ContainerPacking& packing, const NextContainerTask& next,
                            const ContainerProgress& progress = {});

// The same the other way round. A task gets verified bytes only, but gets them before the rest is
// verified: what it wrote counts when finish() says so. unlock: on the reading thread. Verdicts:
//   corrupt      not a container, cut off, damaged, or malformed by who sealed it
//   tampered     changed, or put together from parts of others
//   unsupported  of a later version, or with a suite or codec that this build does not have
//   the errors of unlock, of reading and of writing
using UnlockContainer =
    std::function<Result<std::shared_ptr<const metadata::KeyTree>>(ByteView keyring_text)>;
Result<> decrypt_containers(engine::Engine& engine, const UnlockContainer& unlock,
                            const NextContainerTask& next, const ContainerProgress& progress = {});

}  // namespace nacre::fs
