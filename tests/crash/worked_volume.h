// SPDX-License-Identifier: Apache-2.0
// A volume that a script works on by path, and the history of what the script did: each call is one
// step. Answers must be right while the disk is; errors are met only where they are tolerated, and
// then the step has done nothing.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/backing/backing.h"
#include "tests/crash/history.h"
#include "tests/model/tree_model.h"
#include "tests/support/open_volume.h"

namespace nacre::tests {

// Options with small chunks, segments and flushes, so that a short script meets all kinds of
// changes.
fs::VolumeOptions worked_volume_options();

class WorkedVolume {
 public:
  // tolerated: codes that steps may fail with.
  WorkedVolume(std::shared_ptr<metadata::BackingDirectory> backing, fs::VolumeOptions options,
               std::set<ErrorCode> tolerated);
  ~WorkedVolume();  // without closing: as after a crash

  // A new empty volume.
  static void format(const std::shared_ptr<metadata::BackingDirectory>& backing);

  // The steps. A step that is impossible because an earlier one failed is left out.
  void open();
  void make_file(std::string_view path);
  void make_directory(std::string_view path);
  void make_symlink(std::string_view path, std::string_view target);
  void link(std::string_view path, std::string_view new_path);
  void unlink(std::string_view path);       // and closes the file, if it is open
  void unlink_held(std::string_view path);  // it stays open until the volume is closed
  void remove_directory(std::string_view path);
  void rename(std::string_view path, std::string_view new_path,
              fs::RenameMode mode = fs::RenameMode::replace);
  void set_xattr(std::string_view path, const std::string& name, const std::string& value);
  void remove_xattr(std::string_view path, const std::string& name);
  void change_mode(std::string_view path, std::uint32_t mode);
  void write(std::string_view path, std::uint64_t offset, std::size_t size);
  // Writes all of each chunk but its first byte, as one step. So no chunk is complete, and nothing
  // is written back before a commit.
  void write_with_gaps(std::string_view path, std::uint64_t first_chunk, std::uint64_t chunk_count);
  void write_held(std::uint64_t offset, std::size_t size);  // to the file last unlinked so
  void truncate(std::string_view path, std::uint64_t size);
  void punch(std::string_view path, std::uint64_t offset, std::uint64_t length);
  void allocate(std::string_view path, fs::AllocateMode mode, std::uint64_t offset,
                std::uint64_t length);
  void sync(std::string_view path);
  void sync_all();
  void write_checkpoint(fs::CheckpointKeep keep);
  void compact();  // until nothing dead is left
  void close();

  // The path is there, and of that kind, as far as the script got.
  bool has(std::string_view path) const { return find(path) != nullptr; }
  bool has_file(std::string_view path) const;
  bool has_directory(std::string_view path) const;
  bool is_open() const { return static_cast<bool>(volume_); }
  // Whether a step failed, or was left out because an earlier one had failed.
  bool met_errors() const { return met_errors_; }
  // From now on no step may fail.
  void tolerate_no_more() { tolerated_.clear(); }
  // The volume shows what the script did, and nothing else.
  void expect_up_to_date();

  fs::Volume& volume() { return *volume_; }
  const History& history() const { return history_; }
  // The promises of this moment. Called on any thread. For a copy of the medium, take the promises
  // (confirmed) before the copy and the step that had begun (begun) after it.
  Promises promises() const;

 private:
  struct Place {
    ModelNodePtr parent;
    std::string name;
    ModelNodePtr node;  // none: nothing of that name
  };
  std::optional<Place> place_of(std::string_view path) const;
  ModelNodePtr find(std::string_view path) const;
  StepNumber begin();
  void end(std::string what);
  // The step cannot be done.
  void leave_out();
  template <typename T>
  bool succeeded(const Result<T>& result);
  void add(const Place& place, std::uint32_t mode, std::string_view target,
           const Result<fs::Attributes>& made, StepNumber step);
  bool hold(const Place& place);
  void remove(std::string_view path, bool is_held);
  struct Extent {
    std::uint64_t offset = 0;
    std::size_t size = 0;
  };
  void write(fs::InodeNumber inode, const std::vector<Extent>& extents, std::string what);
  void forget(const ModelNodePtr& node);
  void promise_all(StepNumber step);
  std::string names() const;

  const std::shared_ptr<metadata::BackingDirectory> backing_;
  const fs::VolumeOptions options_;
  std::set<ErrorCode> tolerated_;
  OpenVolume volume_;
  TreeModel tree_;
  History history_;
  std::map<fs::InodeNumber, std::uint64_t> lookups_;
  std::map<fs::InodeNumber, std::uint64_t> written_bytes_;
  fs::InodeNumber held_;
  bool met_errors_ = false;
  bool lost_ = false;      // closing failed: what the medium holds is not known exactly
  bool was_sick_ = false;  // before the step under way

  mutable std::mutex mutex_;  // guards promises_
  Promises promises_;
};

}  // namespace nacre::tests
