// SPDX-License-Identifier: Apache-2.0
// Which messages of a payload a device can run, sorted by kind. Each message is looked at once: the
// planner deals out sorted messages, and batches are cut from the ones that it gives to devices.
// Free of CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/cipher/forms.h"
#include "gpu_engine/plan/device_limits.h"

namespace nacre::engine {

// What a device does with a message: everything that all messages of a batch have in common.
struct BatchKind {
  Operation operation = Operation::seal;
  KeyForm form = KeyForm::gcm;                         // of operations that need a key
  KeyForm new_form = KeyForm::gcm;                     // reseal
  CipherFamily family = CipherFamily::aes;             // of all its keys
  CryptMode mode = CryptMode::ctr;                     // of form block_cipher
  CryptDirection direction = CryptDirection::encrypt;  // of form block_cipher
  Codec codec = Codec::none;                           // seal, compress, decompress
  int level = 0;                                       // seal, compress
  Checksum checksum = Checksum::crc32;
  std::uint32_t rsa_bits = 0;  // rsa_generate
  bool operator==(const BatchKind&) const = default;
};

// The codec of a batch's coded streams. If kind.codec is automatic, some streams stay uncoded.
CodecChoice encoder_of(const BatchKind& kind);

KeyForm form_of(CipherSuite suite);
CipherFamily family_of(BlockCipher cipher);

// Messages of one kind.
struct KindGroup {
  BatchKind kind;
  std::vector<std::uint32_t> indexes;  // into Payload::messages
  std::vector<std::uint32_t> weights;  // each message's batch_weight() and aad
  std::uint64_t input_bytes = 0;       // the sum over all of them
};

struct Sorted {
  std::vector<KindGroup> groups;    // one for each kind; messages of a kind keep their order
  std::vector<std::uint32_t> rest;  // for the cpu: a device cannot run them, or they have a fault
};

// size_max: the largest weight of a message, below 4 GiB; larger messages go to the rest. Throws
// std::bad_alloc.
Sorted sort_by_kind(const Payload& payload, MessageIndexes indexes,
                    std::uint64_t size_max = batch_size_bytes);

inline bool is_rsa(Operation operation) {
  return operation == Operation::rsa_public || operation == Operation::rsa_private ||
         operation == Operation::rsa_generate;
}
// Whether one thread of a device encrypts or decrypts a whole message.
bool is_serial_cipher(const BatchKind& kind);
// Whether one thread of a device hashes a whole message, for an HMAC.
bool has_serial_hash(const BatchKind& kind);

// Thousands of short messages that seem to be of one kind. Sorting them on one thread would take
// longer than a device needs to run them. So each thread that runs a stretch of them sorts the
// stretch, and finds the messages in it that are of another kind.
struct Alike {
  BatchKind kind;
  bool has_one_size = false;     // size_of() is the same for all messages of the sample
  std::uint64_t size_bytes = 0;  // the average over the sample
  std::uint64_t size_longest = 0;
};
// Looks at a sample of the payload. Nothing when the payload is not of that sort, and for kinds
// whose messages a batch orders by length.
std::optional<Alike> find_alike(const Payload& payload);

// How many bytes of batch_size_bytes a message needs, without its aad.
std::uint64_t batch_weight(const Message& message);
// Shortens the group to its first count messages; a shorter group stays as it is.
void keep_first(KindGroup& group, std::size_t count, const Payload& payload);

}  // namespace nacre::engine
