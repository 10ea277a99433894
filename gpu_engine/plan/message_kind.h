// SPDX-License-Identifier: Apache-2.0
// Which messages of a payload a device does, sorted by what it does with them. Looked at once a
// message: the planner deals sorted messages out, and batches are cut from what it leaves there.
// Free of CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/cipher/forms.h"
#include "gpu_engine/plan/device_limits.h"

namespace nacre::engine {

// What a device does with a message; all that two messages of a batch have in common.
struct BatchKind {
  Operation operation = Operation::seal;
  KeyForm form = KeyForm::gcm;                         // of what needs a key
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

// What the streams of a batch are coded with that are coded: where its codec is automatic, not all.
CodecChoice encoder_of(const BatchKind& kind);

KeyForm form_of(CipherSuite suite);
CipherFamily family_of(BlockCipher cipher);

// Messages of one kind.
struct KindGroup {
  BatchKind kind;
  std::vector<std::uint32_t> indexes;  // into Payload::messages
  std::vector<std::uint32_t> weights;  // what each takes of a batch's size, with its aad
  std::uint64_t input_bytes = 0;       // of all of them
};

struct Sorted {
  std::vector<KindGroup> groups;    // a kind each, messages in their order
  std::vector<std::uint32_t> rest;  // what no device can do, or the cpu has to find fault with
};

// size_max: of a message's weight, below 4 GiB; what is larger is the rest's. Throws
// std::bad_alloc.
Sorted sort_by_kind(const Payload& payload, MessageIndexes indexes,
                    std::uint64_t size_max = batch_size_bytes);

inline bool is_rsa(Operation operation) {
  return operation == Operation::rsa_public || operation == Operation::rsa_private ||
         operation == Operation::rsa_generate;
}
// Under a mode that gives each message to one thread.
bool is_serial_cipher(const BatchKind& kind);
// Likewise, as HMAC does.
bool has_serial_hash(const BatchKind& kind);

// Thousands of short messages that seem to be of one kind. To sort them would take one thread
// longer than a device needs for all of them, so nobody does: the threads that run them sort a
// stretch each, and find what does not fit in there.
struct Alike {
  BatchKind kind;
  bool has_one_size = false;     // all that were looked at stand for as many bytes (size_of())
  std::uint64_t size_bytes = 0;  // of one of them, on average
  std::uint64_t size_longest = 0;
};
// Looks at a few. None of kinds of which a batch's messages are put in order.
std::optional<Alike> find_alike(const Payload& payload);

// What a message takes of a batch's size, without its aad.
std::uint64_t batch_weight(const Message& message);
// Leaves the group its first messages: at most as many as it has.
void keep_first(KindGroup& group, std::size_t count, const Payload& payload);

}  // namespace nacre::engine
