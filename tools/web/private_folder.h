// SPDX-License-Identifier: Apache-2.0
// A folder of mode 0700 that the server makes and removes: uploads, and results that wait for their
// download. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"
#include "metadata/backing/posix_file.h"

namespace nacre::tools::web {

// One upload that is being received. Only one thread may use it. The destructor removes the file
// unless keep() was called. Memory does not grow with the size of the file.
class UploadFile {
 public:
  UploadFile(std::string folder, std::string name, metadata::FileDescriptor file)
      : folder_(std::move(folder)), name_(std::move(name)), file_(std::move(file)) {}
  UploadFile(UploadFile&& other) noexcept;
  UploadFile& operator=(UploadFile&&) = delete;
  ~UploadFile();

  Result<> write(ByteView bytes);  // no_space, io
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  friend class PrivateFolder;
  std::string folder_;  // holds this file alone; empty: nothing to remove
  std::string name_;
  metadata::FileDescriptor file_;
  std::uint64_t size_bytes_ = 0;
};

struct Upload {
  std::string id, name, path;
  std::uint64_t size_bytes = 0;
};

class PrivateFolder {
 public:
  // Made in $XDG_CACHE_HOME/nacre or ~/.cache/nacre, else in /var/tmp: plain bytes of any size
  // lie there. Folders of servers that were killed are removed. Errors: permission, no_space, io.
  static Result<std::unique_ptr<PrivateFolder>> create();
  ~PrivateFolder();

  const std::string& path() const { return path_; }
  // A new folder for a job's results.
  Result<std::string> make_folder();
  static void remove(const std::string& folder);

  // Error: invalid_argument if name is no file name.
  Result<UploadFile> begin_upload(std::string_view name);
  Upload keep(UploadFile file);
  std::optional<Upload> find_upload(std::string_view id) const;
  bool remove_upload(std::string_view id);

 private:
  PrivateFolder(std::string path, metadata::FileDescriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  const std::string path_;
  const metadata::FileDescriptor lock_;  // held by its process alone: children do not inherit it
  mutable Mutex mutex_;
  std::list<Upload> uploads_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::tools::web
