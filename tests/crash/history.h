// SPDX-License-Identifier: Apache-2.0
// What a script did to a volume, step by step, and from that: what a crash may leave.
//
// Steps are numbered from 1 in the order in which they begin; state 0 is the empty volume. A
// recovered volume must show, for some step k,
//   names and attributes   exactly as they were after step k: groups are committed in order and as
//                          wholes, so k is at least the last step that a sync confirmed
//   each file's content    some state of its own until step k: not older than its last confirmed
//                          sync, nor than the last rename or link of it until k
// Nothing between two states is allowed, but for chunks of files that are written back while they
// are being written (by_chunk).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fs/volume/volume.h"

namespace nacre::tests {

using StepNumber = std::uint64_t;

// The steps that were known to be durable at some moment, and the step that was under way.
struct Promises {
  StepNumber confirmed = 0;                      // names and attributes
  StepNumber begun = 0;                          // nothing of a later step can be found
  std::map<fs::InodeNumber, StepNumber> synced;  // content: with what this step wrote, or later
};

// A tree as it was found: names and attributes as one text with a line for each entry, and the
// content of each file.
struct RecoveredTree {
  std::string names;
  std::map<fs::InodeNumber, std::string> contents;
};

// Not thread-safe.
class History {
 public:
  explicit History(std::uint32_t chunk_size_bytes) : chunk_size_bytes_(chunk_size_bytes) {}

  // The names after this step; steps come in order, without gaps, from 0.
  void end_step(std::string what, std::string names);

  void add_file(StepNumber step, fs::InodeNumber inode);
  // Pieces by their offsets.
  void write(StepNumber step, fs::InodeNumber inode,
             const std::map<std::uint64_t, std::string>& pieces);
  void truncate(StepNumber step, fs::InodeNumber inode, std::uint64_t size);
  void punch(StepNumber step, fs::InodeNumber inode, std::uint64_t offset, std::uint64_t length);
  void move(StepNumber step, fs::InodeNumber inode);
  // From now on, chunks of the file may become durable independently of each other.
  void by_chunk(fs::InodeNumber inode) { files_[inode].by_chunk = true; }

  const std::string& names_after(StepNumber step) const { return *steps_[step].names; }
  const std::string& latest(fs::InodeNumber inode) const;
  // The step that wrote the latest content: what a sync of the file promises now.
  StepNumber latest_write(fs::InodeNumber inode) const;
  std::vector<fs::InodeNumber> files() const;  // that there ever were

  // Returns an empty text if the promises allow the tree. Otherwise the text says what is wrong
  // with it.
  std::string objection(const RecoveredTree& tree, const Promises& promises) const;

  // Bytes of a file that name the step that wrote them and where.
  static std::string bytes_of(StepNumber step, std::uint64_t offset, std::size_t size);

 private:
  struct Step {
    std::string what;
    std::shared_ptr<const std::string> names;  // shared with the step before when nothing changed
  };
  struct Version {
    StepNumber step = 0;   // since when it can be found
    StepNumber wrote = 0;  // the last write that it holds
    std::shared_ptr<const std::string> bytes;
  };
  struct File {
    std::vector<Version> versions;  // the last one is the latest
    std::vector<StepNumber> moves;
    bool by_chunk = false;
  };

  static StepNumber floor_of(const File& file, fs::InodeNumber inode, const Promises& promises,
                             StepNumber step);
  std::string content_objection(const File& file, std::string_view found, StepNumber floor,
                                StepNumber step) const;
  bool is_made_of_chunks(const std::vector<const Version*>& allowed, std::string_view found) const;
  std::string names_objection(const RecoveredTree& tree, const Promises& promises) const;

  const std::uint32_t chunk_size_bytes_;
  std::vector<Step> steps_;
  std::map<fs::InodeNumber, File> files_;
};

}  // namespace nacre::tests
