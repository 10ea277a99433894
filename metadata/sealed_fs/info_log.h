// SPDX-License-Identifier: Apache-2.0
// RocksDB's information log: warnings and errors, sealed like every other file, in db/LOG. The file
// is made with the first message. At 1 MiB it becomes LOG.old, and a new one begins. If it cannot
// be written, messages are dropped without an error. (RocksDB's own logger aborts then.)
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

#include "gpu_engine/base/mutex.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {

class InfoLog final : public rocksdb::Logger {
 public:
  // folder is "db". padding is the volume's.
  InfoLog(std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys,
          std::string folder, engine::Padding padding);
  ~InfoLog() override;

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override;
  void LogHeader(const char* format, va_list arguments) override;  // writes nothing
  // Seals the files of an older epoch anew, and removes a file for which that fails.
  Result<void> reseal();

 private:
  bool begin_file() NACRE_REQUIRES(mutex_);

  const std::shared_ptr<BackingDirectory> directory_;
  const std::shared_ptr<const KeyTree> keys_;
  const std::string path_;
  const engine::Padding padding_;
  Mutex mutex_;
  std::unique_ptr<FrameWriter> writer_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::metadata
