// SPDX-License-Identifier: Apache-2.0
// How far this machine has seen a volume's history. If the volume is older than that, it was put
// back, or its log was cut (docs/SECURITY.md, "A witness of age").
//
// File: seen/VOLUME-ID next to known_volumes, JSON. A volume is one history wherever it lies, so
// the first entry counts for all paths. Others are older copies that the user accepted, each at its
// own path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/tables/volume_age.h"
#include "tools/cli/user_file.h"

namespace nacre::tools {

struct Sight {
  std::string time;  // RFC 3339
  metadata::VolumeAge age;
  std::uint64_t keyring_generation = 0;
  std::uint64_t superblock_generation = 0;
};

struct SeenCopy {
  std::string path;  // where it was last
  Sight last;
  std::vector<Sight> closings;  // newest first, at most closings_max
};
inline constexpr std::size_t closings_max = 8;

// In which numbers `found` is older than `seen`, in words with the differences; empty if in none.
// knows_session: whether the volume has had the session that was the newest then.
std::string what_is_older(const Sight& seen, const Sight& found, bool knows_session);
// The one of seen.closings that the volume is back at, if there is one.
std::optional<Sight> closing_found(const SeenCopy& seen, const Sight& found);

class Witness {
 public:
  // The file of this user. Errors as of user_folders().
  static Result<Witness> of_volume(const std::string& volume_id);
  explicit Witness(std::string file) : file_(std::move(file)) {}
  const std::string& file() const { return file_.path(); }

  // The entry that a volume at this path is compared with; none if nothing was seen yet. Error:
  // corrupt.
  Result<std::optional<SeenCopy>> find(const std::string& path) const;
  Result<std::vector<SeenCopy>> read() const;

  enum class Moment : std::uint8_t { opened, in_use, closed };
  // Pass only what is durable. Before the closing, the system may write this when it likes.
  Result<> note(const std::string& path, const Sight& sight, Moment moment) const;
  // The user accepts that the volume at this path is older. It replaces the first entry if that was
  // at this path, or if nothing is at the first entry's path any more.
  Result<> accept(const std::string& path, const Sight& sight) const;

 private:
  UserFile file_;
};

}  // namespace nacre::tools
