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

  Result<> write(ByteView bytes);  // appends all bytes; errors: no_space, io
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  friend class PrivateFolder;
  std::string folder_;  // holds this file alone; empty: nothing to remove
  std::string name_;
  metadata::FileDescriptor file_;
  std::uint64_t size_bytes_ = 0;
};

// An upload that is complete. id names it in requests; name is the file's own; path is where it is.
struct Upload {
  std::string id, name, path;
  std::uint64_t size_bytes = 0;
};

class PrivateFolder {
 public:
  // Made in $XDG_CACHE_HOME/nacre or ~/.cache/nacre, else in /var/tmp: plain bytes of any size
  // lie there. Folders of servers that were killed are removed. Errors: permission, no_space, io.
  static Result<std::unique_ptr<PrivateFolder>> create();
  ~PrivateFolder();  // removes the folder and everything in it

  const std::string& path() const { return path_; }
  // The path of a new, empty folder in this one, for a job's results. Errors: those of mkdir(2).
  Result<std::string> make_folder();
  // Removes a folder that make_folder() made, with what is in it. Failures are ignored: the
  // destructor tries again.
  static void remove(const std::string& folder);

  // Makes an empty file of that name in a folder of its own. Errors: invalid_argument if name is no
  // file name; those of mkdir(2) and open(2).
  Result<UploadFile> begin_upload(std::string_view name);
  // The file is complete, and stays until remove_upload() or the end of the server.
  Upload keep(UploadFile file);
  // Nothing if no such upload was kept, or it was removed.
  std::optional<Upload> find_upload(std::string_view id) const;
  // False if there was none.
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
