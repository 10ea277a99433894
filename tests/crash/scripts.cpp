// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/scripts.h"

#include <random>
#include <string>

#include <fmt/format.h>

namespace nacre::tests {

using fs::RenameMode;

namespace {

constexpr std::uint64_t chunk = 4u << 10;  // of worked_volume_options()

// Replaces a file as editors and databases do.
void replace(WorkedVolume& volume, const std::string& path, std::size_t size) {
  volume.make_file(path + ".new");
  volume.write(path + ".new", 0, size);
  volume.rename(path + ".new", path);
}

}  // namespace

void change_names(WorkedVolume& volume) {
  volume.make_directory("d");
  volume.make_directory("d/inner");
  volume.make_file("a");
  volume.write("a", 0, 300);
  volume.sync("a");
  volume.make_file("d/b");
  volume.write("d/b", 0, 3 * chunk + 7);
  volume.set_xattr("d/b", "user.note", "first");
  volume.sync("d");
  volume.make_symlink("s", "d/b");
  volume.link("d/b", "b2");
  volume.rename("a", "d/a");
  volume.sync("d/a");
  replace(volume, "d/a", 5000);
  replace(volume, "d/b", 100);
  volume.sync("s");
  volume.make_file("other");
  replace(volume, "d/a", 6 * chunk);
  volume.sync("other");
  volume.set_xattr("d", "user.note", "of a directory");
  volume.set_xattr("b2", "user.note", "second");
  volume.rename("d/a", "b2", RenameMode::exchange);
  volume.change_mode("other", 0600);
  volume.sync("other");
  volume.remove_xattr("d/a", "user.note");
  volume.unlink("s");
  volume.rename("d/inner", "inner");
  volume.make_file("inner/c");
  volume.write("inner/c", chunk, 10);
  volume.sync("inner");
  volume.unlink_held("b2");
  volume.write_held(0, 700);
  volume.unlink("inner/c");
  volume.remove_directory("inner");
  volume.sync_all();
  volume.write_held(chunk, 5000);
  volume.make_directory("d/again");
  volume.rename("d", "e");
  volume.make_file("e/again/last");
  volume.write("e/again/last", 0, 2 * chunk);
  volume.rename("e/again", "again");
  volume.sync("again/last");
  volume.unlink("again/last");
  volume.remove_directory("again");
  volume.link("e/b", "linked");
  volume.unlink("e/b");
  volume.sync("");
}

void change_contents(WorkedVolume& volume) {
  volume.make_file("small");
  volume.make_file("whole");
  volume.make_file("sparse");
  volume.write("small", 0, 40);
  volume.sync("small");
  volume.write("whole", 0, 6 * chunk);
  volume.sync("whole");
  volume.write("small", 20, 100);  // over what lies in the database
  volume.sync("small");
  volume.write("sparse", 40 * chunk + 100, 3 * chunk);
  volume.write("sparse", 3 * chunk, 10);
  volume.sync("sparse");
  volume.write("whole", 2 * chunk + 50, 60);  // patches
  volume.sync("whole");
  volume.write("whole", 2 * chunk + 10, chunk);
  volume.write("small", 0, 2 * chunk);
  volume.sync("whole");
  volume.truncate("whole", 3 * chunk - 5);
  volume.truncate("whole", 5 * chunk);  // zeros beyond
  volume.sync("whole");
  volume.punch("sparse", 40 * chunk, 2 * chunk);
  volume.sync("small");
  volume.punch("small", 100, 3000);
  volume.sync("small");
  volume.write("sparse", 10 * chunk, 20 * chunk);
  volume.truncate("sparse", 15 * chunk + 1);
  volume.sync("small");
  volume.write("sparse", 30 * chunk + 5, 5);
  volume.sync("sparse");
  volume.truncate("small", 0);
  volume.write("small", 0, 7);
  volume.sync("sparse");
  volume.write("whole", 0, 30 * chunk);
  volume.sync_all();
  volume.punch("whole", 0, 30 * chunk);
  volume.write("whole", 29 * chunk, chunk);
  volume.sync("whole");
  volume.truncate("sparse", 1);
  volume.write("small", 5 * chunk, 1);
  volume.sync("small");
}

void reopen_often(WorkedVolume& volume) {
  volume.make_directory("d");
  volume.make_file("d/kept");
  volume.write("d/kept", 0, 4 * chunk);
  volume.make_file("d/deleted");
  volume.write("d/deleted", 0, 10 * chunk);
  volume.close();
  volume.open();
  volume.write("d/kept", chunk, chunk + 1);
  volume.unlink_held("d/deleted");
  volume.write_held(0, chunk);
  volume.sync("d/kept");
  volume.make_file("inlined");
  volume.write("inlined", 0, 1000);
  volume.sync("inlined");
  volume.close();
  volume.open();
  replace(volume, "d/kept", 2 * chunk);
  volume.sync("inlined");
  volume.truncate("inlined", 10);
  volume.unlink_held("d/kept");
  volume.sync_all();
  volume.close();
  volume.open();
  volume.remove_directory("d");
}

void write_checkpoints(WorkedVolume& volume) {
  using fs::CheckpointKeep;
  volume.make_directory("d");
  volume.make_file("d/file");
  volume.write("d/file", 0, 6 * chunk);
  volume.write_checkpoint(CheckpointKeep::the_one_before);
  volume.write("d/file", chunk, 2 * chunk);
  volume.make_file("inlined");
  volume.write("inlined", 0, 1000);
  volume.sync("inlined");
  volume.write_checkpoint(CheckpointKeep::the_one_before);
  volume.unlink_held("d/file");
  volume.write_held(0, chunk);
  volume.write_checkpoint(CheckpointKeep::the_one_before);
  volume.close();
  volume.open();
  volume.rename("inlined", "d/renamed");
  volume.write_checkpoint(CheckpointKeep::only_this);
  volume.close();
  volume.open();
}

void allocate_and_zero(WorkedVolume& volume) {
  using fs::AllocateMode;
  volume.make_file("a");
  volume.make_file("b");
  volume.allocate("a", AllocateMode::allocate, 0, 10 * chunk + 3);
  volume.sync("a");
  volume.write("a", chunk + 5, 3 * chunk);
  volume.allocate("a", AllocateMode::keep_size, 8 * chunk, 20 * chunk);  // no byte changes
  volume.sync("a");
  volume.allocate("a", AllocateMode::zero, 2 * chunk + 1, chunk);
  volume.write("b", 0, 5 * chunk);
  volume.sync("b");
  volume.allocate("b", AllocateMode::zero, 7 * chunk, 2 * chunk);  // grows it
  volume.write("b", 6 * chunk, 50);
  volume.sync("b");
  volume.allocate("b", AllocateMode::zero_keep_size, 4 * chunk + 9, 30 * chunk);
  volume.link("b", "c");
  volume.sync("c");
  volume.allocate("a", AllocateMode::punch_hole, 0, 4 * chunk);
  volume.truncate("a", 3 * chunk + 1);
  volume.allocate("a", AllocateMode::allocate, 6 * chunk, 100);  // zeros where bytes once were
  volume.sync("a");
  volume.set_xattr("a", "user.note", "allocated");
  volume.write("a", 5 * chunk, 2 * chunk);
  volume.rename("a", "c");
  volume.sync("c");
  volume.allocate("c", AllocateMode::zero, chunk, 5 * chunk);
  volume.make_directory("d");
  volume.sync("d");
  volume.sync_all();
}

void compact_often(WorkedVolume& volume) {
  volume.make_file("kept");
  volume.make_file("changed");
  volume.make_file("deleted");
  volume.write("deleted", 0, 12 * chunk);
  for (std::uint64_t i = 0; i < 4; ++i) {
    volume.write("kept", 4 * i * chunk, 4 * chunk);
    volume.write("changed", 4 * i * chunk, 4 * chunk);
    volume.sync_all();
  }
  for (std::uint64_t i = 0; i < 16; i += 2)
    volume.write("changed", i * chunk, chunk);
  volume.write("kept", 3 * chunk + 17, 2000);  // a patch
  volume.sync("changed");
  volume.unlink_held("deleted");
  volume.sync("kept");
  volume.compact();
  volume.write("changed", 0, 3 * chunk);
  replace(volume, "kept", 9 * chunk);
  volume.sync("changed");
  volume.write_held(0, 5 * chunk);
  volume.compact();
  volume.truncate("changed", 5 * chunk);
  volume.close();
  volume.open();
  volume.write("kept", 2 * chunk, 2 * chunk);
  volume.sync("kept");
  volume.write_checkpoint(fs::CheckpointKeep::the_one_before);
  volume.compact();
  volume.unlink("changed");
  volume.sync_all();
  volume.compact();
}

void write_much(WorkedVolume& volume) {
  constexpr std::uint64_t mebibyte = 1u << 20;
  volume.make_file("streamed");
  volume.make_file("gappy");
  volume.write("streamed", 0, mebibyte);
  volume.sync("streamed");
  for (std::uint64_t i = 1; i < 10; ++i)
    volume.write("streamed", i * mebibyte, mebibyte);
  volume.sync("streamed");
  volume.make_file("other");
  constexpr std::uint64_t large_chunk = 64u << 10;
  volume.write_with_gaps("gappy", 0, 40);
  volume.write_with_gaps("gappy", 50, 100);
  volume.sync("gappy");
  volume.write("gappy", 500 * large_chunk, 9);
  volume.truncate("gappy", 3 * mebibyte);
  volume.sync("other");
  volume.write("gappy", 80 * large_chunk, 9);
  volume.rename("gappy", "streamed");
  volume.sync("other");
}

namespace {

class RandomWork {
 public:
  RandomWork(WorkedVolume& volume, std::uint64_t seed) : volume_(volume), random_(seed) {}

  void step() {
    const std::string file = path(), other = path();
    switch (pick(18)) {
      case 0:
      case 1:
        make(file);
        break;
      case 2:
        if (volume_.has(file) && file != other && !below(file, other)) rename(file, other);
        break;
      case 3:
        if (volume_.has_file(file) && !volume_.has(other) && has_parent(other)) {
          volume_.link(file, other);
        }
        break;
      case 4:
        if (volume_.has_file(file)) {
          pick(2) == 0 ? volume_.unlink(file) : volume_.unlink_held(file);
        }
        break;
      case 5:
        if (volume_.has_file(file)) volume_.truncate(file, pick(20 * chunk));
        break;
      case 6:
        if (volume_.has_file(file)) volume_.punch(file, pick(20 * chunk), 1 + pick(6 * chunk));
        break;
      case 7:
        if (volume_.has(file)) volume_.set_xattr(file, "user.x", fmt::format("{}", pick(1000)));
        break;
      case 8:
        if (volume_.has(file)) volume_.sync(file);
        break;
      case 9:
        if (volume_.has_directory("d")) volume_.sync("d");
        break;
      case 10:
        if (pick(4) == 0) volume_.sync_all();
        break;
      case 11:
        if (pick(8) == 0) {
          volume_.close();
          volume_.open();
        }
        break;
      case 12:
        if (volume_.has_file(file)) {
          volume_.allocate(file, static_cast<fs::AllocateMode>(pick(5)), pick(20 * chunk),
                           1 + pick(6 * chunk));
        }
        break;
      case 13:
        if (pick(8) == 0) volume_.compact();
        break;
      default:
        if (volume_.has_file(file)) {
          volume_.write(file, pick(20 * chunk), 1 + pick(pick(3) == 0 ? 8 * chunk : 600));
        }
    }
  }

 private:
  std::uint64_t pick(std::uint64_t count) { return random_() % count; }
  std::string path() {
    static constexpr const char* paths[] = {"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a"};
    return paths[pick(std::size(paths))];
  }
  static bool below(const std::string& ancestor, const std::string& path) {
    return path.starts_with(ancestor + "/");
  }
  bool has_parent(const std::string& path) const {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos || volume_.has_directory(path.substr(0, slash));
  }
  void make(const std::string& path) {
    if (volume_.has(path) || !has_parent(path)) return;
    const bool is_directory = path == "d" || path == "d/e";
    is_directory ? volume_.make_directory(path) : volume_.make_file(path);
  }
  // Renames files only, so the name of a directory never becomes that of a file.
  void rename(const std::string& path, const std::string& new_path) {
    if (!volume_.has_file(path) || !has_parent(new_path) || volume_.has_directory(new_path)) return;
    const bool exchange = volume_.has(new_path) && pick(3) == 0;
    volume_.rename(path, new_path, exchange ? RenameMode::exchange : RenameMode::replace);
  }

  WorkedVolume& volume_;
  std::mt19937_64 random_;
};

}  // namespace

void work_at_random(WorkedVolume& volume, std::uint64_t seed) {
  RandomWork work(volume, seed);
  for (int step = 0; step < 120; ++step)
    work.step();
}

}  // namespace nacre::tests
