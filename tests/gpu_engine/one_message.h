// SPDX-License-Identifier: Apache-2.0
// Runs one message at a time through an engine, like a function call. So tests of a record's
// verdicts apply to every backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/engine.h"

namespace nacre::engine {

struct SuiteKey {
  CipherSuite suite;
  Bytes key;
};

class OneMessage {
 public:
  explicit OneMessage(EngineChoice choice)
      : engine_(Engine::create({.choice = choice, .thread_count = 2}).value()),
        input_(engine_->allocate(record_size_bytes_max).value()),
        output_(engine_->allocate(record_size_bytes_max).value()) {}

  // out is the message's whole room: what it held before is there while the message runs.
  MessageResult run(Message message, const VolumeId& volume_id, const SuiteKey& key, ByteView in,
                    MutableByteView out, const SuiteKey* new_key = nullptr) {
    Payload payload;
    payload.input = input_.data();
    payload.input_size = input_.size();
    payload.output = output_.data();
    payload.output_size = output_.size();
    payload.volume_id = volume_id;
    EXPECT_LE(in.size(), input_.size());
    EXPECT_LE(out.size(), output_.size());
    std::ranges::copy(in, input_.data());
    std::ranges::copy(out, output_.data());
    message.input_offset = message.output_offset = 0;
    message.input_size = in.size();
    message.output_capacity = out.size();
    message.key_index = payload.add_key(key.suite, key.key);
    if (new_key != nullptr) message.new_key_index = payload.add_key(new_key->suite, new_key->key);
    payload.messages.push_back(message);
    engine_->run(payload);
    std::copy_n(output_.data(), out.size(), out.begin());
    return payload.results.at(0);
  }
  Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
  Arena input_;
  Arena output_;
};

}  // namespace nacre::engine
