// SPDX-License-Identifier: Apache-2.0
// Translates Nacre's errors to RocksDB's and back; no other place does. RocksDB has one code,
// Corruption, for rot and tampering, and wraps messages in its own. So the verdict travels in the
// message, as "{tampered} db/000012.sst: …", and is read from there.
#pragma once

#include <rocksdb/io_status.h>
#include <rocksdb/status.h>

#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::metadata {

rocksdb::IOStatus to_io_status(const Error& error);
rocksdb::IOStatus to_io_status(const Result<void>& result);
// The same, but always an IOError, whatever the verdict: RocksDB aborts if it meets Corruption in
// IDENTITY.
rocksdb::IOStatus to_plain_io_error(const Error& error);
// where says what was tried, for example "opening the database".
Error to_error(const rocksdb::Status& status, std::string_view where);

}  // namespace nacre::metadata
