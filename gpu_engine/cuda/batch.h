// SPDX-License-Identifier: Apache-2.0
// Cuts a payload into batches: messages of one kind, so that each of a batch's launches does the
// same to all of them, and no more than a slot holds. Sizes, keys and key lengths mix in a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/keys.h"

namespace nacre::engine::cuda {

// What a device does with a message; all that two messages of a batch have in common.
struct BatchKind {
  Operation operation = Operation::seal;
  KeyForm form = KeyForm::gcm;                         // of what needs a key
  KeyForm new_form = KeyForm::gcm;                     // reseal
  CryptMode mode = CryptMode::ctr;                     // of form block_cipher
  CryptDirection direction = CryptDirection::encrypt;  // of form block_cipher
  Codec codec = Codec::none;                           // seal, compress, decompress
  int level = 0;                                       // seal, compress
  Checksum checksum = Checksum::crc32;
  bool operator==(const BatchKind&) const = default;
};

KeyForm form_of(CipherSuite suite);

// The kind of a message that a device can do; nothing for others, and for messages that the cpu
// has to find fault with.
std::optional<BatchKind> find_kind(const Payload& payload, const Message& message);

struct Batch {
  BatchKind kind;
  std::vector<std::uint32_t> indexes;  // into Payload::messages
};

struct Cut {
  std::vector<Batch> batches;
  std::vector<std::uint32_t> rest;  // what no device can do
};

// What a message takes of a batch's size.
std::uint64_t batch_weight(const Message& message);

// Throws std::bad_alloc.
Cut cut_into_batches(const Payload& payload, MessageIndexes indexes);

}  // namespace nacre::engine::cuda
