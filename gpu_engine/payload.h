// SPDX-License-Identifier: Apache-2.0
// A payload: a batch of messages handed to the engine at once (data model of Harrison and Waldron,
// 2008). One input arena, one output arena, one key arena; descriptors hold offsets, never
// pointers, so a payload can be sent to a device as it is. Operations, codecs, suites, modes, keys
// and lengths (0 bytes to 1 GiB; plain bytes of seal, unseal and reseal to 1 MiB) may mix. Each
// message has its own result: a bad message never fails its neighbours. Results are in the order of
// the messages. MessageOrder says in which order the messages run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu_engine/base/arena.h"
#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/key_use.h"
#include "gpu_engine/cipher/suite.h"
#include "gpu_engine/codec/codec.h"
#include "gpu_engine/record/record.h"

namespace nacre::engine {

enum class Operation : std::uint8_t {
  // plain bytes -> record. Uses codec, level, padding, key, epoch, salt, counter, identity.
  seal,
  // record -> plain bytes. Order: CRC, tag, identity, decompress. Uses key. When check_identity is
  // set, the record's identity must equal identity (else tampered). The stream must decode to
  // exactly the plain size that the record names, which must fit output_capacity. codec is a hint,
  // the codec that the record probably has; Codec::none if that is not known.
  unseal,
  // plain bytes -> codec stream, and back (output_capacity = exact plain size for decompress).
  compress,
  decompress,
  // input bytes -> value in MessageResult::crc32 or crc32c. Uses checksum.
  checksum,
  // bytes -> bytes under key and iv. With the key of a block cipher and a mode, the output is as
  // long as the input, which is whole blocks for ECB and CBC. With the key of a suite, the output
  // is the ciphertext and then the tag, over aad too; the nonce is the first nonce_size_bytes of
  // iv, and must never be used twice under one key, nor be that of a record (seal, reseal) under
  // the same key. Input and output may be the same memory.
  encrypt,
  // The reverse of encrypt. tampered when a tag does not match; the output is then zeros.
  decrypt,
  // record -> record under another key, without decompressing. Uses key (the old record's),
  // new_key, padding, epoch, salt, counter; check_identity as in unseal. The new record has the old
  // one's identity, codec and stream.
  reseal,
  // RSA with a public or private key. Numbers are big-endian and as long as the modulus.
  // rsa_padding: none: the bare operation. oaep_sha256: wraps (public) or unwraps (private) with
  // aad as the label.
  rsa_public,
  rsa_private,
  // nothing -> DER PKCS#8 of a new private key of rsa_bits. Output: rsa_private_key_size_bound().
  rsa_generate,
};

enum class Checksum : std::uint8_t { crc32, crc32c };
enum class RsaPadding : std::uint8_t { none, oaep_sha256 };

// Offsets and sizes are bytes within the payload's arenas. Outputs of different messages must not
// overlap.
struct Message {
  Operation operation = Operation::seal;
  Codec codec = Codec::none;
  std::int8_t level = 0;
  Padding padding = Padding::none;
  bool check_identity = false;
  std::uint32_t key_index = 0;  // from Payload::add_key
  std::uint64_t input_offset = 0;
  std::uint64_t input_size = 0;
  std::uint64_t output_offset = 0;
  std::uint64_t output_capacity = 0;  // seal: at least record_size_bound()
  std::uint32_t epoch = 0;
  std::uint32_t counter = 0;  // seal, reseal: the nonce is this alone, so never twice under one key
  SessionSalt salt = {};      // stored and authenticated; no part of the nonce
  RecordIdentity identity = {};
  CipherIv iv = {};
  std::uint64_t aad_offset = 0;  // within the input arena
  std::uint64_t aad_size = 0;
  std::uint32_t new_key_index = 0;
  std::uint32_t rsa_bits = 0;
  Checksum checksum = Checksum::crc32;
  RsaPadding rsa_padding = RsaPadding::none;
};

struct MessageResult {
  bool ok = false;
  // error and detail have a meaning only where ok is false.
  ErrorCode error = ErrorCode::invalid_argument;
  const char* detail = "";    // static text for messages: what was wrong
  Codec codec = Codec::none;  // seal, compress: what was used in the end; unseal: what was found
  std::uint64_t output_size = 0;
  std::uint32_t crc32 = 0;       // checksum
  RecordIdentity identity = {};  // unseal, reseal: the record's (only when the tag verified)
  std::uint32_t crc32c = 0;      // checksum
};

enum class MessageOrder : std::uint8_t {
  // The order in which the payload ends soonest: the longest serial messages come first.
  soonest,
  // Messages begin in the order of Payload::messages, each on one thread, on the cpu. With one
  // thread, each message ends before the next begins, with one exception: of neighbours that are
  // serial messages of one block cipher, serial_lane_count() begin together.
  as_given,
};

// Filled by the caller, run by Engine::run() or submit(), then read by the caller. Not thread-safe.
// The payload does not own the arenas of input and output; they must outlive the run.
struct Payload {
  const Byte* input = nullptr;
  std::uint64_t input_size = 0;
  Byte* output = nullptr;
  std::uint64_t output_size = 0;
  VolumeId volume_id = {};  // first part of each record's AAD; no other operation uses it
  MessageOrder order = MessageOrder::soonest;
  std::vector<Message> messages;
  // The results of the last run, in the order of messages. If all messages came by add(), there is
  // one for each. A caller that fills messages itself must look at the size first: if a run gets no
  // memory for results, there are none.
  std::vector<MessageResult> results;

  // Adds the message with a result of its own, and returns their index. Until a run has ended, the
  // result is an error; without memory for the run it becomes out_of_memory. Throws bad_alloc, and
  // then nothing was added.
  std::size_t add(const Message& message);
  // Copies the raw key into the key arena and returns its index; equal keys share one index. RSA
  // keys are DER: a public key's SubjectPublicKeyInfo, a private key's PKCS#8.
  std::uint32_t add_key(CipherSuite suite, ByteView key);
  std::uint32_t add_key(BlockCipher cipher, CipherMode mode, ByteView key);
  std::uint32_t add_rsa_public_key(ByteView der);
  std::uint32_t add_rsa_private_key(ByteView der);
  std::uint32_t add_key(const KeyUse& use, ByteView key);
  void clear();  // keeps arenas, volume_id, order and capacity, wipes the key arena
  // Ends the process when a message's input or output lies outside the arenas. It is for callers
  // that lay out the messages themselves. (A run without this check gives such a message an error
  // as its result.)
  void check_bounds() const;

  struct Key {
    KeyUse use;
    std::uint32_t offset;  // into keys
    std::uint32_t size;
  };
  std::vector<Key> key_table;
  SecretBytes keys;
  std::size_t keys_used = 0;
};

}  // namespace nacre::engine
