// SPDX-License-Identifier: Apache-2.0
// Payloads for the engine's tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/engine.h"

namespace nacre::engine {

// A payload with its arenas, built message by message.
class TestPayload {
 public:
  static constexpr CipherSuite suite = CipherSuite::aes_256_gcm;  // of add_seal(), add_unseal()

  explicit TestPayload(Engine& engine, std::size_t size = 8u << 20)
      : input_(engine.allocate(size).value()), output_(engine.allocate(2 * size).value()) {
    payload_.input = input_.data();
    payload_.input_size = input_.size();
    payload_.output = output_.data();
    payload_.output_size = output_.size();
    payload_.volume_id.fill(0x33);
  }

  Message& add(Operation operation, ByteView input, std::size_t capacity) {
    EXPECT_LE(input_used_ + input.size(), input_.size());
    EXPECT_LE(output_used_ + capacity, output_.size());
    std::copy(input.begin(), input.end(), input_.data() + input_used_);
    Message& message = payload_.messages.emplace_back();
    message.operation = operation;
    message.input_offset = input_used_;
    message.input_size = input.size();
    message.output_offset = output_used_;
    message.output_capacity = capacity;
    input_used_ += input.size();
    output_used_ += capacity;
    return message;
  }

  Message& add_seal(ByteView plain, ByteView key, Codec codec, std::uint32_t counter) {
    Message& message =
        add(Operation::seal, plain, record_size_bound(suite, Padding::none, plain.size()));
    message.codec = codec;
    message.counter = counter;
    message.key_index = payload_.add_key(suite, key);
    return message;
  }

  Message& add_unseal(ByteView record, ByteView key, std::size_t plain_size) {
    Message& message = add(Operation::unseal, record, plain_size);
    message.key_index = payload_.add_key(suite, key);
    message.check_identity = true;
    return message;
  }

  // Puts additional data for a message into the input.
  void set_aad(Message& message, ByteView aad) {
    EXPECT_LE(input_used_ + aad.size(), input_.size());
    std::copy(aad.begin(), aad.end(), input_.data() + input_used_);
    message.aad_offset = input_used_;
    message.aad_size = aad.size();
    input_used_ += aad.size();
  }

  ByteView output(std::size_t index) const {
    return {output_.data() + payload_.messages[index].output_offset,
            payload_.results[index].output_size};
  }

  Payload& get() { return payload_; }
  const MessageResult& result(std::size_t index) const { return payload_.results[index]; }

 private:
  Arena input_;
  Arena output_;
  std::size_t input_used_ = 0;
  std::size_t output_used_ = 0;
  Payload payload_;
};

}  // namespace nacre::engine
