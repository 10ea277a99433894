// SPDX-License-Identifier: Apache-2.0
// A write session: a random salt, and the key that is derived from it, under which records are
// sealed. It begins when its row is durable, and ends when the key has sealed as much as one key
// may (docs/FORMAT.md, "Cipher suites").
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "gpu_engine/base/result.h"
#include "gpu_engine/record/record.h"
#include "metadata/keys/keys.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// Only the two counts change after begin_write_session(). Any thread may read a session; the store
// adds to the counts.
struct WriteSession {
  engine::SessionSalt salt = {};
  std::uint32_t epoch = 0;    // of the key tree, as in the keyring
  std::uint64_t ordinal = 0;  // from 1; the upper part of the versions of its records
  std::shared_ptr<const metadata::KeyTree::SessionKey> key;
  // What is sealed or about to be sealed. The count of records is the counter of the next one.
  std::atomic<std::uint64_t> record_count{0};
  std::atomic<std::uint64_t> stored_bytes{0};
};

// A batch's place: the session, and the counter of its first record.
struct WriteTurn {
  std::shared_ptr<WriteSession> session;
  std::uint64_t counter;
};

// Draws a salt under the current epoch and makes the session's row durable, at once, whatever the
// groups of the database hold. Error: unsupported if the volume's format has no more sessions.
Result<std::shared_ptr<WriteSession>> begin_write_session(metadata::Database& database,
                                                          const metadata::KeyTree& keys);

}  // namespace nacre::fs
