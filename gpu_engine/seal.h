// SPDX-License-Identifier: Apache-2.0
// The chain of one message: seal (compress, pad, encrypt, checksum), unseal, and reseal under
// another key. This is the definition that every backend must equal, and the code that the cpu
// backend runs.
//
// The functions use only the message's fields that describe the record, not operation, offsets and
// key index, which belong to the payload. Errors are in the result, with static text; only
// std::bad_alloc is thrown. Thread-safe.
#pragma once

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/payload.h"

namespace nacre::engine {

// Writes one record to the front of out, which has room for at least record_size_bound() bytes
// (else range). plain: at most chunk_size_bytes_max bytes (else too_big). When a stream is not
// smaller than its plain bytes, Codec::none is used instead. If out is larger than the bound, a
// codec can run without checking the room for every byte.
MessageResult seal_record(const AeadKey& key, CipherSuite suite, const VolumeId& volume_id,
                          const Message& message, ByteView plain, MutableByteView out);

// Opens record, which is one record and nothing else, into the front of out. The checks and their
// errors, in order:
//   corrupt      header or CRC wrong, or the record is not as long as the view
//   tampered     the tag does not match; or check_identity is set and the identity differs
//   unsupported  a codec that this build does not have
//   corrupt      the opened body contradicts itself, is longer than out, or its stream is
//                malformed: it was sealed that way by a holder of the key
// out, which record does not overlap, is untouched or zeroed where the result is not ok or
// std::bad_alloc is thrown.
MessageResult unseal_record(const AeadKey& key, CipherSuite suite, const VolumeId& volume_id,
                            const Message& message, ByteView record, MutableByteView out);

// Opens the record as unseal_record() does, and seals its body under another key and suite with the
// message's padding, epoch, salt and counter, to the front of out. Identity, codec and stream stay
// as they are; this build need not have the codec. Errors: those of unseal_record(), and range when
// out is smaller than the new record, for which record_size_bound() of the chunk always suffices.
MessageResult reseal_record(const AeadKey& key, CipherSuite suite, const AeadKey& new_key,
                            CipherSuite new_suite, const VolumeId& volume_id,
                            const Message& message, ByteView record, MutableByteView out);

}  // namespace nacre::engine
