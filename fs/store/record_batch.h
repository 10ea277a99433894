// SPDX-License-Identifier: Apache-2.0
// How records become messages of a payload, and results become records. Everything of the volume
// that opens or seals records does it here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fs/store/record_keys.h"
#include "fs/store/write_session.h"
#include "gpu_engine/engine.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

using SessionKey = metadata::KeyTree::SessionKey;

// Where the bytes of one message lie: offsets within the arenas of the payload, sizes in bytes.
struct RecordRoom {
  std::uint64_t input_offset = 0;
  std::uint64_t input_size = 0;
  std::uint64_t output_offset = 0;
  std::uint64_t output_capacity = 0;  // to seal: at least engine::record_size_bound()
};

// What a batch of records is sealed with. first_counter is the counter of its first record.
struct RecordSeal {
  const WriteSession& session;
  std::uint64_t first_counter = 0;
  engine::Padding padding = engine::Padding::none;
};

// These add one message to a payload and return its index there. They throw bad_alloc, and then
// nothing was added.

// Opens a record. If a name is given, a record of another name is tampered.
std::size_t add_unseal(engine::Payload& payload, const SessionKey& key, const RecordRoom& room,
                       const std::optional<metadata::RecordName>& name = std::nullopt);
// Seals plain bytes as the batch's record of this index.
std::size_t add_seal(engine::Payload& payload, const RecordSeal& seal, std::uint64_t index,
                     const RecordRoom& room, const metadata::InodeCodec& codec,
                     const metadata::RecordName& name);
// Seals a record anew, without decompressing it, as the batch's record of this index. Name and
// codec stay.
std::size_t add_reseal(engine::Payload& payload, const SessionKey& old_key, const RecordSeal& seal,
                       std::uint64_t index, const RecordRoom& room);

// The name that a record has, from the result of unseal or reseal; the message's error if it
// failed.
Result<metadata::RecordName> name_in(const engine::MessageResult& result);

// Records that were opened together. Each has a name, or an error; plain is empty where there is an
// error. The plain bytes lie in memory.
struct OpenedRecords {
  std::vector<Result<metadata::RecordName>> names;
  std::vector<ByteView> plain;
  engine::Arena memory;
};
// Opens the records in one payload. Each may hold up to plain_size_bytes_max plain bytes. Checks
// session, CRC, tag and codec stream. Errors of a record: corrupt, tampered, those of the database.
// Error of the call: out_of_memory. Thread-safe.
Result<OpenedRecords> open_records(engine::Engine& engine, const RecordKeys& keys,
                                   std::uint32_t plain_size_bytes_max,
                                   std::span<const ByteView> records);

// Learns the names of sealed records by opening them, since names stand only in the sealed bodies.
// Returns one result for each record, in order; else as open_records(). Works with little memory
// whatever the number of records is.
std::vector<Result<metadata::RecordName>> names_of_records(engine::Engine& engine,
                                                           const RecordKeys& keys,
                                                           std::uint32_t chunk_size_bytes,
                                                           std::span<const ByteView> records);

}  // namespace nacre::fs
