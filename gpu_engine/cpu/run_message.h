// SPDX-License-Identifier: Apache-2.0
// Runs messages of a payload on the calling thread: a single message, several serial messages
// together, or one part of a message that several threads share.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "gpu_engine/cpu/expanded_key.h"
#include "gpu_engine/payload.h"

namespace nacre::engine {

using ExpandedKeys = std::vector<ExpandedKey>;

// Checks that the message stays inside the payload's arenas and tables, runs it, and returns its
// result. Throws nothing. Messages of one payload may run at the same time.
MessageResult run_message(const Payload& payload, const ExpandedKeys& keys,
                          std::size_t message_index) noexcept;

// A message to encrypt or decrypt with the key of a block cipher. find_cipher_work() gives nothing
// for any other message, or when the message has a fault.
struct CipherWork {
  const CipherKey* key;
  Direction direction;
  ByteView input;
  MutableByteView output;
};
std::optional<CipherWork> find_cipher_work(const Payload& payload, const ExpandedKeys& keys,
                                           const Message& message);

// The bytes whose checksum the message asks for; nothing when the message has a fault.
std::optional<ByteView> find_checksum_input(const Payload& payload, const Message& message);

// Runs messages for which find_cipher_work() gives work and whose mode is serial. Throws nothing.
void run_serial_messages(Payload& payload, const ExpandedKeys& keys,
                         std::span<const std::uint32_t> message_indexes) noexcept;

// Bytes of a message that can be processed without the rest of it: bytes of find_checksum_input(),
// or of find_cipher_work() in a mode that is not serial. offset: a multiple of the block size.
struct Part {
  std::uint32_t message_index;
  std::uint64_t offset;
  std::uint64_t size;
  CipherIv iv;  // the vector that the part starts from
};

// Runs the part and returns its own result. Throws nothing.
MessageResult run_part(const Payload& payload, const ExpandedKeys& keys, const Part& part) noexcept;

// The message's result. parts and results: all of the message's parts, in order, at least one.
MessageResult combine_parts(std::span<const Part> parts, std::span<const MessageResult> results);

}  // namespace nacre::engine
