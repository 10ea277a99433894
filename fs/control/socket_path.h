// SPDX-License-Identifier: Apache-2.0
// The places of a mounted volume's control sockets. The sockets are named by the mount's device
// number:
//
//   RUNTIME/nacre/MAJOR-MINOR.sock      RUNTIME is /run for root, else $XDG_RUNTIME_DIR
//   /tmp/nacre-UID/nacre/…              in addition, because a runtime folder is removed when its
//                                       user logs out, and a container may have none
//   VOLUME/control.MAJOR-MINOR.sock     next to the volume's lock, if /tmp cannot be used (it is
//                                       read-only, or another user made that folder)
//
// Each folder that Nacre makes must belong to the owner of the mount, be closed to all other users,
// and be no symbolic link, because any user can write to /tmp. The volume's folder may belong to
// another user; control_client.h tells when a socket in it is believed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

// An open folder. All socket calls go through its descriptor, so that no other user can exchange
// the folder, and so that a long path fits into a socket address.
class SocketFolder {
 public:
  // Opens the runtime folder, and makes it if it does not exist. For the process that mounts. It
  // must not be below the mount point, where the process would wait for itself.
  static Result<SocketFolder> make_own(const std::string& mountpoint = {});
  // The folder in /tmp.
  static Result<SocketFolder> make_fallback(const std::string& mountpoint = {});
  // The folder of a volume.
  static Result<SocketFolder> of_volume(const std::string& volume_directory);
  // The folders that exist for a mount of this user, the most likely first. owner is the user that
  // mounted, also 0. source is the mount table's, which usually is the volume's folder.
  static std::vector<SocketFolder> find(uid_t owner, const std::string& source);

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&& other) noexcept;
  ~SocketFolder();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  bool is_volume() const { return is_volume_; }
  // The name of a mount's socket in this folder.
  std::string name_of(unsigned device_major, unsigned device_minor) const;
  // Removes sockets that ended mounts left in a volume's folder. The caller holds the volume's lock
  // and does not listen there yet.
  void remove_stale_sockets() const;
  // The path for bind() and connect().
  std::string address_of(const std::string& name) const;

 private:
  SocketFolder(int descriptor, std::string path)
      : descriptor_(descriptor), path_(std::move(path)) {}
  static Result<SocketFolder> open(const std::string& path, uid_t owner, bool make);
  int descriptor_ = -1;
  std::string path_;
  bool is_volume_ = false;
};

}  // namespace nacre::fs
