// SPDX-License-Identifier: Apache-2.0
// Where the control sockets of a mounted volume lie, all of them named for the mount's device
// number:
//
//   RUNTIME/nacre/MAJOR-MINOR.sock      RUNTIME is /run for root, else $XDG_RUNTIME_DIR
//   /tmp/nacre-UID/nacre/…              as well: a runtime folder goes when its user logs out, and
//                                       a container may have none
//   VOLUME/control.MAJOR-MINOR.sock     next to the volume's lock, where nothing can be made in
//                                       /tmp (read-only, or somebody else has that folder)
//
// Every folder on the way that is ours must belong to the owner of the mount and be closed to all
// others, and must not be a symbolic link: /tmp is everybody's. The volume's folder may be
// somebody else's: what lies there is believed only as control_client.h says.
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
  // Makes it when it is not there: for the process that mounts, and not below its mount point,
  // where it would wait for itself.
  static Result<SocketFolder> make_own(const std::string& mountpoint = {});
  // In /tmp, whatever else there is.
  static Result<SocketFolder> make_fallback(const std::string& mountpoint = {});
  // The folder of a volume.
  static Result<SocketFolder> of_volume(const std::string& volume_directory);
  // Those that exist of a mount of this user, most likely first. owner is 0 or any other user;
  // source, from the mount table, is most often the volume's folder.
  static std::vector<SocketFolder> find(uid_t owner, const std::string& source);

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&& other) noexcept;
  ~SocketFolder();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  bool is_volume() const { return is_volume_; }
  // The socket of a mount in this folder.
  std::string name_of(unsigned device_major, unsigned device_minor) const;
  // Sockets that mounts which are gone left in a volume's folder: for who holds its lock and does
  // not listen there yet.
  void remove_stale_sockets() const;
  // What bind() takes.
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
