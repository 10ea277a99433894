// SPDX-License-Identifier: Apache-2.0
// RocksDB's file objects over pages and frames. They only translate: calls, and errors to
// rocksdb::IOStatus. RocksDB calls one writable file from one thread at a time, and may read a
// random-access file from many.
#pragma once

#include <rocksdb/file_system.h>

#include <exception>
#include <functional>
#include <memory>

#include "metadata/backing/backing.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/log_writer.h"
#include "metadata/sealed_fs/manifest_state.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/status.h"

namespace nacre::metadata {

// RocksDB is not exception-safe, so an exception below it becomes a status.
template <typename F>
rocksdb::IOStatus without_exceptions(F&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return to_io_status(Error{ErrorCode::out_of_memory, "out of memory below RocksDB"});
  } catch (const std::exception& error) {
    return to_io_status(Error{ErrorCode::io, error.what()});
  }
}

// For the content of a frames file, which is read as a whole when the file is opened. The object
// owns the content.
std::unique_ptr<rocksdb::FSSequentialFile> make_sequential_file(Bytes content);
std::unique_ptr<rocksdb::FSRandomAccessFile> make_random_access_file(Bytes content);
// For a file of pages, which are read and opened as RocksDB asks for them.
std::unique_ptr<rocksdb::FSSequentialFile> make_sequential_file(std::shared_ptr<PageReader> reader);
std::unique_ptr<rocksdb::FSRandomAccessFile> make_random_access_file(
    std::shared_ptr<PageReader> reader);
// Called before every call that writes. Its error becomes that call's error. It must be
// thread-safe, and what it refers to outlives the file.
using WriteGate = std::function<Result<void>()>;
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::unique_ptr<PageWriter> writer,
                                                            WriteGate gate,
                                                            const rocksdb::FileOptions& options);
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::unique_ptr<FrameWriter> writer,
                                                            WriteGate gate,
                                                            const rocksdb::FileOptions& options);
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::shared_ptr<ManifestWriter> writer,
                                                            WriteGate gate,
                                                            const rocksdb::FileOptions& options);
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::shared_ptr<LogWriter> writer,
                                                            const rocksdb::FileOptions& options);
// Takes no bytes. Truncate() calls trim.
std::unique_ptr<rocksdb::FSWritableFile> make_trim_only_file(std::function<Result<void>()> trim);

}  // namespace nacre::metadata
