// SPDX-License-Identifier: Apache-2.0
// A volume with everything that rows can say, and its salvage after db/ is gone.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/salvage/salvage.h"
#include "metadata/format/checkpoint.h"
#include "tests/crash/recovery.h"
#include "tests/fs/backup_fixture.h"

namespace nacre::tests {

class Salvage : public BackupTest {
 protected:
  static constexpr std::uint32_t chunk_size = 16u << 10;

  fs::InodeNumber make(fs::InodeNumber parent, const std::string& name, std::uint32_t type) {
    const fs::Caller caller{.uid = 1000, .gid = 100};
    const auto made = S_ISDIR(type) ? volume_->make_directory(parent, name, caller, 0750)
                                    : volume_->make_node(parent, name, caller, type | 0640, 0);
    NACRE_EXPECT_OK(made);
    return made ? made->inode : fs::InodeNumber{};
  }
  void write(fs::InodeNumber inode, std::uint64_t offset, const std::string& text) {
    NACRE_EXPECT_OK(volume_->write(inode, offset, as_bytes(text), {}));
  }
  void sync(fs::InodeNumber inode) {
    std::promise<Result<>> promise;
    volume_->sync_inode(inode, [&](Result<> result) { promise.set_value(std::move(result)); });
    NACRE_EXPECT_OK(promise.get_future().get());
  }

  // Makes files with every kind of row.
  void make_tree() {
    const auto folder = make(root, "folder", S_IFDIR);
    const auto inner = make(folder, "inner", S_IFDIR);
    large_ = make(inner, "large", S_IFREG);
    write(large_, 0, noise(9 * chunk_size + 77));
    const auto sparse = make(root, "sparse", S_IFREG);
    write(sparse, 10 * chunk_size, noise(chunk_size));
    write(make(folder, "text", S_IFREG), 0, std::string(3 * chunk_size, 't'));
    make(root, "empty", S_IFREG);
    make(folder, "pipe", S_IFIFO);
    NACRE_EXPECT_OK(volume_->make_symlink(root, "link", {}, "folder/inner/large"));
    NACRE_EXPECT_OK(volume_->link(large_, root, "second name"));
    NACRE_EXPECT_OK(volume_->set_xattr(large_, "user.note", "noted", fs::XattrMode::set, false));
    NACRE_EXPECT_OK(volume_->sync_all());
    write(large_, chunk_size + 10, noise(100));  // a patch, and inlined bytes
    sync(large_);
    write(sparse, 10 * chunk_size + 5, noise(300));
    NACRE_EXPECT_OK(volume_->sync_all());
  }
  RecoveredTree tree_of(const std::shared_ptr<MemoryBacking>& backing) {
    const auto volume = open(backing->process_kill());
    NACRE_EXPECT_OK(volume);
    return volume ? tests::read_tree(**volume) : RecoveredTree{};
  }
  void crash() {
    volume_.reset();
    source_ = source_->process_kill();
  }
  static void lose_database(MemoryBacking& backing) {
    for (const auto& path : backing.files()) {
      if (path.starts_with("db/")) backing.erase(path);
    }
  }

  Result<fs::SalvageReport> salvage(std::string_view history = {}) {
    const auto keys = metadata::open_volume_keys(*source_, metadata::VolumeSecret(identity(0)));
    NACRE_EXPECT_OK(keys);
    const auto engine = engine::Engine::create({.thread_count = 2});
    return fs::salvage_volume(*source_, *keys, target_, **engine, {}, history);
  }
  static std::string gaps_of(const fs::SalvagedFile& file) {
    std::string text;
    for (const auto& gap : file.gaps)
      text += fmt::format("{}+{} ", gap.offset, gap.size);
    return text;
  }
  static std::string list(const fs::SalvageReport& report) {
    std::string text;
    for (const auto& finding : report.findings.findings()) {
      text += fmt::format("{}: {} {}: {}\n", to_string(finding.severity),
                          to_string(finding.verdict), finding.file, finding.what);
    }
    return text;
  }
  fs::SalvageReport salvage_all() {
    auto report = salvage();
    NACRE_EXPECT_OK(report);
    if (!report) return {};
    EXPECT_EQ(report->findings.error_count(), 0u) << list(*report);
    expect_clean(*target_->process_kill());
    return std::move(*report);
  }
  void expect_same(const RecoveredTree& before) {
    const auto after = tree_of(target_);
    EXPECT_EQ(after.names, before.names);
    EXPECT_TRUE(after.contents == before.contents);
  }
  // The content of a file in lost+found of the target.
  std::string newer_content(const std::string& name) {
    const auto volume = open(target_->process_kill());
    NACRE_EXPECT_OK(volume);
    const auto folder = (*volume)->lookup(root, "lost+found");
    NACRE_EXPECT_OK(folder);
    if (!folder) return {};
    EXPECT_EQ(folder->mode, static_cast<std::uint32_t>(S_IFDIR | 0700));
    const auto file = (*volume)->lookup(folder->inode, name);
    NACRE_EXPECT_OK(file);
    std::string content(file ? file->size : 0, '\0');
    NACRE_EXPECT_OK((*volume)->read(
        file->inode, 0, MutableByteView(reinterpret_cast<Byte*>(content.data()), content.size())));
    return content;
  }

  // The checkpoints of the source, which is closed.
  std::vector<std::pair<metadata::CheckpointNumber, metadata::CheckpointRow>> checkpoints() {
    std::vector<std::pair<metadata::CheckpointNumber, metadata::CheckpointRow>> found;
    const auto keys = metadata::open_volume_keys(*source_, metadata::VolumeSecret(identity(0)));
    const auto database = metadata::Database::open(source_, keys->keys, {.read_only = true});
    NACRE_EXPECT_OK(database);
    NACRE_EXPECT_OK((*database)->scan(
        metadata::Table::system, "", "", [&](std::string_view key, std::string_view value) {
          if (key.starts_with(metadata::system_key_checkpoint_prefix)) {
            found.emplace_back(*metadata::decode_checkpoint_key(key),
                               *metadata::decode_checkpoint_row(value));
          }
          return true;
        }));
    return found;
  }
  // The place of a chunk's record in the closed source. By default it is a chunk of the large file.
  metadata::RecordLocation location_of(std::uint64_t index,
                                       std::optional<fs::InodeNumber> file = {}) {
    const auto keys = metadata::open_volume_keys(*source_, metadata::VolumeSecret(identity(0)));
    const auto database = metadata::Database::open(source_, keys->keys, {.read_only = true});
    const auto value =
        (*database)->get(metadata::Table::chunks,
                         metadata::chunk_key(file.value_or(large_), metadata::ChunkIndex{index}));
    return metadata::decode_chunk_map_row(**value)->chunk->base->location;
  }
  void damage(const metadata::RecordLocation& location) {
    const auto path = fmt::format("segments/{:012}.seg", location.segment.value);
    auto bytes = *source_->load(path);
    bytes.at(location.offset + location.stored_size / 2) ^= 1;
    source_->store(path, bytes);
  }

  fs::InodeNumber large_;
};

}  // namespace nacre::tests
