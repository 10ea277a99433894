// SPDX-License-Identifier: Apache-2.0
// One way to do a task on a set of messages: a backend of the engine, or a library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/base/result.h"
#include "gpu_engine/baseline/baseline.h"
#include "gpu_engine/engine.h"

namespace nacre::tools {

// What is done to every message, in the engine's terms, and its key.
struct BenchTask {
  engine::Message message;
  engine::KeyUse key_use = {};
  Bytes key = {};
  bool has_key = false;
  Bytes new_key = {};  // for the engine's reseal; empty: the same key
};

// One contender's messages.
struct BenchMessages {
  std::vector<ByteView> inputs;  // must outlive the contender
  std::vector<std::size_t> output_sizes;
  std::vector<engine::Codec> codecs =
      {};  // one for each message, for the engine; empty: the task's
};

// Used by one thread.
class Contender {
 public:
  virtual ~Contender() = default;
  // From now on run() takes messages 0, stride, 2 · stride, ….
  virtual Result<> select(std::size_t stride) = 0;
  // Runs each selected message once. An error names the message that failed, and the reason.
  virtual Result<> run() = 0;
  // The output of a message of the last run.
  virtual ByteView output(std::size_t index) const = 0;
  // The codec that it was encoded with, if the task has Codec::automatic.
  virtual engine::Codec codec(std::size_t /*index*/) const { return engine::Codec::automatic; }
  // Whether it is measured with all messages at once, however long that takes, because a part of
  // them would not keep a device busy.
  virtual bool takes_all() const { return false; }
  // Seconds that a CUDA device's kernels take for all messages, everything being on the device.
  // Error: unsupported without a device, or if the device cannot do it.
  virtual Result<double> resident_seconds() {
    return fail(ErrorCode::unsupported, "it has no device");
  }
};

Result<std::unique_ptr<Contender>> make_engine_contender(engine::Engine& engine,
                                                         const BenchTask& task,
                                                         BenchMessages messages, bool takes_all);
// A library on this many threads, each with a state of its own. task must outlive the contender.
Result<std::unique_ptr<Contender>> make_library_contender(const engine::BaselineLibrary& library,
                                                          unsigned thread_count,
                                                          BenchMessages messages);

// The task in the libraries' terms; it refers to the task's key.
engine::BaselineTask to_baseline_task(const BenchTask& task);

}  // namespace nacre::tools
