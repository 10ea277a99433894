// SPDX-License-Identifier: Apache-2.0
// A payload of any messages under any keys, in the engine's memory, that can be run repeatedly.
#pragma once

#include <memory>
#include <vector>

#include "gpu_engine/engine.h"

namespace nacre::tools {

struct SeedKey {
  engine::KeyUse use;
  Bytes key;
};

struct SeedMessage {
  engine::Message message;  // its key_index names one of the keys; offsets are filled in
  ByteView input;           // copied
  std::size_t output_size = 0;
};

class EngineWork {
 public:
  // keys may be empty if no message needs one. Error: out_of_memory.
  static Result<std::unique_ptr<EngineWork>> make(
      engine::Engine& engine, const std::vector<SeedKey>& keys,
      const std::vector<SeedMessage>& messages,
      engine::MessageOrder order = engine::MessageOrder::soonest);

  // Runs everything once. An error names the first message that failed.
  Result<> run();
  // Whether a device did all messages of the last run.
  bool ran_on_device() const { return ran_on_device_; }
  // The engine's time for the last run, without the look at its results.
  double last_seconds() const { return last_seconds_; }
  // The output of the last run; for a checksum its value, u32 little-endian.
  ByteView output(std::size_t index) const;
  // The codec that a message was encoded with.
  engine::Codec codec(std::size_t index) const { return payload_.results[index].codec; }
  // Runs a device's kernels with everything on the device, and returns their seconds. Errors as of
  // Engine::measure_resident().
  Result<double> resident_seconds(unsigned repetitions);

 private:
  explicit EngineWork(engine::Engine& engine) : engine_(engine) {}
  Result<> look_at_results() const;

  engine::Engine& engine_;
  engine::Arena input_, output_;
  engine::Payload payload_;
  bool ran_on_device_ = false;
  double last_seconds_ = 0;
};

}  // namespace nacre::tools
