// SPDX-License-Identifier: Apache-2.0
// Files that appear under their names only when they are whole. They are written under another name
// in the same folder, synced, and renamed. Unfinished files are removed, also if a signal ends the
// process.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "metadata/backing/posix_file.h"

namespace nacre::tools {

// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT (unless they are ignored) remove unfinished
// files before they end the process. Only one may live at a time; make it before other threads.
class SignalCleanup {
 public:
  SignalCleanup();
  ~SignalCleanup();
  SignalCleanup(const SignalCleanup&) = delete;
  SignalCleanup& operator=(const SignalCleanup&) = delete;

 private:
  sigset_t signals_, before_;
  std::thread thread_;
};

// Whether a file is on the disk before it gets its name, or whenever the system writes it. In the
// latter case power loss may leave a name with less behind it.
enum class Durability : std::uint8_t { synced, left_to_system };

// The permissions of mode without those that the caller's umask takes away.
mode_t within_umask(mode_t mode);

// A file that is being written, mode 0600. The destructor removes it unless it was published. Only
// one thread may use it at a time.
class OutputFile {
 public:
  // Makes the file in path's folder; path itself is not touched. With make_folder, a missing folder
  // is made. Errors: not_found, permission, no_space, …
  static Result<OutputFile> create(const std::string& path, bool make_folder,
                                   Durability durability);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile() { discard(); }

  const std::string& path() const { return path_; }
  Result<> write(std::span<const ByteView> pieces);
  // Call it after the last write. Without a mode the umask decides.
  Result<> set_attributes(std::optional<mode_t> mode, const std::optional<timespec>& modified);
  void start_writeback();  // if it will be synced
  dev_t device() const;    // of its file system
  // Hands the descriptor over. Only sync() would still need it.
  metadata::FileDescriptor take_descriptor();
  Result<> sync();
  // Gives the file its name. Error: exists, if replace is not set and something has that name.
  Result<> publish(bool replace);
  void discard();

 private:
  OutputFile() = default;
  void reserve(std::uint64_t size_bytes);
  std::string path_, unfinished_;
  metadata::FileDescriptor file_;
  Durability durability_ = Durability::synced;
  std::uint64_t written_bytes_ = 0, started_bytes_ = 0;  // the latter are on their way to the disk
  std::uint64_t reserved_bytes_ = 0;                     // room was made up to here
};

// Complete files wait here to be made durable together. A few are synced one by one; many with a
// sync of their whole file system, which costs little more than a sync of one file. Files that need
// no sync do not wait.
class OutputQueue {
 public:
  // done is called once for each file: when it is durable under its name, or with the reason why
  // not.
  using Done = std::function<void(Result<> outcome)>;
  OutputQueue(bool replace, Durability durability) : replace_(replace), durability_(durability) {}

  void add(OutputFile file, Done done);
  void flush();

 private:
  struct Entry {
    OutputFile file;
    Done done;
    Result<> outcome;
  };
  void sync_files();
  void sync_folders();
  Result<> sync_devices();

  const bool replace_;
  const Durability durability_;
  std::vector<Entry> entries_;
  std::map<dev_t, metadata::FileDescriptor> devices_;  // a file on each file system
};

// Writes all bytes of the pieces, in order, to a descriptor. where: for messages.
Result<> write_all(int descriptor, std::span<const ByteView> pieces, const std::string& where);
// Makes renames and removals in the folder of path survive power loss.
Result<> sync_folder_of(const std::string& path);

}  // namespace nacre::tools
