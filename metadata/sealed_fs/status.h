// SPDX-License-Identifier: Apache-2.0
// The one place where our errors become RocksDB's and come back. RocksDB has one word, Corruption,
// for rot and tampering, and wraps messages in its own: so the verdict travels in the message, as
// "{tampered} db/000012.sst: …", and is found there again.
#pragma once

#include <rocksdb/io_status.h>
#include <rocksdb/status.h>

#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::metadata {

rocksdb::IOStatus to_io_status(const Error& error);
rocksdb::IOStatus to_io_status(const Result<void>& result);
// The same as an IOError whatever the verdict (RocksDB aborts when it meets Corruption in
// IDENTITY).
rocksdb::IOStatus to_plain_io_error(const Error& error);
// where: what was tried, e.g. "opening the database".
Error to_error(const rocksdb::Status& status, std::string_view where);

}  // namespace nacre::metadata
