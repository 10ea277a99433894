// SPDX-License-Identifier: Apache-2.0
// Files that appear under their names when they are whole, and not before: written under another
// name in the same folder, synced, renamed. What is not whole goes away again, also when a signal
// ends the process.
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

// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT (those that are not ignored) take away
// unfinished files before they end the process. One at a time; made before other threads are.
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

// Whether a file is on the disk before it gets its name, or when the system sees fit. Then power
// loss may leave a name with less behind it.
enum class Durability : std::uint8_t { synced, left_to_system };

// The permissions of mode that the caller's umask leaves.
mode_t within_umask(mode_t mode);

// A file that is being written, mode 0600. Removed by the destructor unless it was published. Used
// by one thread at a time.
class OutputFile {
 public:
  // In the folder where path is; path itself is not touched. With make_folder, a folder that is
  // missing is made. not_found, permission, no_space, …
  static Result<OutputFile> create(const std::string& path, bool make_folder,
                                   Durability durability);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile() { discard(); }

  const std::string& path() const { return path_; }
  Result<> write(std::span<const ByteView> pieces);
  // Behind the last write. Without a mode: as the umask says.
  Result<> set_attributes(std::optional<mode_t> mode, const std::optional<timespec>& modified);
  void start_writeback();  // where it is to be synced
  dev_t device() const;    // where it is
  // Hands the descriptor over: what is left to do needs none, but for sync().
  metadata::FileDescriptor take_descriptor();
  Result<> sync();
  // Gives the file its name. exists, where replace is not set and something has that name.
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

// Files that are whole wait here to be made durable together: a few are synced one by one, many
// with a sync of their whole file system, which costs little more than that of one file. What is
// left to the system does not wait.
class OutputQueue {
 public:
  // done: called once for each file, when it is durable under its name, or why it is not.
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
  std::map<dev_t, metadata::FileDescriptor> devices_;  // a file on each
};

// All bytes of the pieces, in order, to a descriptor. where: for messages.
Result<> write_all(int descriptor, std::span<const ByteView> pieces, const std::string& where);
// Makes what was renamed or removed in the folder of path survive power loss.
Result<> sync_folder_of(const std::string& path);

}  // namespace nacre::tools
