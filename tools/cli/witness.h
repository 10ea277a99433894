// SPDX-License-Identifier: Apache-2.0
// What this user's machine has seen of a volume: how far its history had come. A volume that is
// older than that was put back, or its log was cut (docs/SECURITY.md, "A witness of age").
//
// File: seen/VOLUME-ID next to known_volumes, JSON. A volume is one history wherever it lies, so
// the first entry counts for all paths; others are copies that somebody took knowingly though they
// are older, each at its own path.
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
  std::string path;  // where it lay last
  Sight last;
  std::vector<Sight> closings;  // newest first, closings_max at the most
};
inline constexpr std::size_t closings_max = 8;

// What of `found` is older than `seen`, in words that say by how much; empty when nothing is.
// knows_session: whether the volume has had the session that was the newest then.
std::string what_is_older(const Sight& seen, const Sight& found, bool knows_session);
// Of seen.closings the one that the volume is back at, when it is one.
std::optional<Sight> closing_found(const SeenCopy& seen, const Sight& found);

class Witness {
 public:
  // Of this user; the errors of user_folders().
  static Result<Witness> of_volume(const std::string& volume_id);
  explicit Witness(std::string file) : file_(std::move(file)) {}
  const std::string& file() const { return file_.path(); }

  // The copy that a volume at this path is compared with; none when nothing was seen yet. corrupt.
  Result<std::optional<SeenCopy>> find(const std::string& path) const;
  Result<std::vector<SeenCopy>> read() const;

  enum class Moment : std::uint8_t { opened, in_use, closed };
  // Only of what is durable. What is noted before the closing is left to the system to write.
  Result<> note(const std::string& path, const Sight& sight, Moment moment) const;
  // Somebody knows that what lies at this path is older. It takes the first entry's place where
  // that lay there, or where nothing lies any more.
  Result<> accept(const std::string& path, const Sight& sight) const;

 private:
  UserFile file_;
};

}  // namespace nacre::tools
