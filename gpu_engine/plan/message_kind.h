// SPDX-License-Identifier: Apache-2.0
// Which messages of a payload a device does, sorted by what it does with them. Each message is
// looked at once: the planner deals sorted messages out, and batches are cut from those that it
// leaves to devices. Free of CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/cipher/forms.h"
#include "gpu_engine/plan/device_limits.h"

namespace nacre::engine {

// What a device does with a message: everything that two messages of a batch have in common.
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

// The codec of those streams of a batch that are coded. If the batch's codec is automatic, some are
// not coded.
CodecChoice encoder_of(const BatchKind& kind);

KeyForm form_of(CipherSuite suite);
CipherFamily family_of(BlockCipher cipher);

// Messages of one kind.
struct KindGroup {
  BatchKind kind;
  std::vector<std::uint32_t> indexes;  // into Payload::messages
  std::vector<std::uint32_t> weights;  // what each takes of a batch's size, with its aad
  std::uint64_t input_bytes = 0;       // the sum over all of them
};

struct Sorted {
  std::vector<KindGroup> groups;    // one for each kind; its messages keep their order
  std::vector<std::uint32_t> rest;  // those that no device does, or whose fault the cpu has to find
};

// size_max: the largest weight of a message, below 4 GiB; larger messages go to the rest. Throws
// std::bad_alloc.
Sorted sort_by_kind(const Payload& payload, MessageIndexes indexes,
                    std::uint64_t size_max = batch_size_bytes);

inline bool is_rsa(Operation operation) {
  return operation == Operation::rsa_public || operation == Operation::rsa_private ||
         operation == Operation::rsa_generate;
}
// Whether the mode gives each message to one thread.
bool is_serial_cipher(const BatchKind& kind);
// The same for a hash, as HMAC does.
bool has_serial_hash(const BatchKind& kind);

// Thousands of short messages that seem to be of one kind. Sorting them on one thread would take
// longer than a device needs for all of them. So they are not sorted in advance: each thread that
// runs them sorts a stretch, and finds the messages in it that do not fit.
struct Alike {
  BatchKind kind;
  bool has_one_size = false;     // all messages of the sample stand for as many bytes (size_of())
  std::uint64_t size_bytes = 0;  // the average over the sample
  std::uint64_t size_longest = 0;
};
// Looks at a sample. Nothing for kinds whose messages are put in order within a batch.
std::optional<Alike> find_alike(const Payload& payload);

// What a message takes of a batch's size, without its aad.
std::uint64_t batch_weight(const Message& message);
// Leaves the group only its first messages: count of them, or all if it has fewer.
void keep_first(KindGroup& group, std::size_t count, const Payload& payload);

}  // namespace nacre::engine
