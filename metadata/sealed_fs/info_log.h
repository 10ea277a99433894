// SPDX-License-Identifier: Apache-2.0
// RocksDB's information log: warnings and errors, sealed as everything else, in db/LOG. It is made
// when there is something to say, and bounded: at 1 MiB it becomes LOG.old and a new one begins. It
// is a convenience: when it cannot be written, it is silent. (RocksDB's own logger aborts then.)
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
  // folder: "db". padding: the volume's.
  InfoLog(std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys,
          std::string folder, engine::Padding padding);
  ~InfoLog() override;

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override;
  void LogHeader(const char* format, va_list arguments) override;  // says nothing
  // Seals what is there of an older epoch anew; removes it where that cannot be done.
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
