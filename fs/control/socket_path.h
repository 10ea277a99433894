// SPDX-License-Identifier: Apache-2.0
// Where the control socket of a mounted volume lies: RUNTIME/nacre/MAJOR-MINOR.sock, named for the
// mount's device number. RUNTIME is /run for root, else $XDG_RUNTIME_DIR, else /tmp/nacre-UID.
//
// Every folder on the way that is ours must belong to the owner of the mount and be closed to all
// others, and must not be a symbolic link: /tmp is everybody's.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

// An open folder; every socket call goes through it, so that nobody can swap it, and a long path
// fits into a socket address.
class SocketFolder {
 public:
  // Makes it when it is not there: for the process that mounts.
  static Result<SocketFolder> make_own();
  // Those that exist of a mount of this user, most likely first. owner is 0 or any other user.
  static std::vector<SocketFolder> find(uid_t owner);

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&& other) noexcept;
  ~SocketFolder();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // What bind() and connect() take.
  std::string address_of(const std::string& name) const;

 private:
  SocketFolder(int descriptor, std::string path)
      : descriptor_(descriptor), path_(std::move(path)) {}
  static Result<SocketFolder> open(const std::string& path, uid_t owner, bool make);
  int descriptor_ = -1;
  std::string path_;
};

std::string socket_name(unsigned device_major, unsigned device_minor);

}  // namespace nacre::fs
