// SPDX-License-Identifier: Apache-2.0
// A whole volume in memory, keyring and superblock included, with files whose content is known: to
// rotate its keys, interrupt that, and look at what is left.
#pragma once

#include <map>
#include <string>

#include <fmt/format.h>

#include "fs/check/checker.h"
#include "fs/rotation/rotation.h"
#include "metadata/volume_files.h"
#include "tests/fs/compaction_fixture.h"
#include "tests/metadata/test_keys.h"
#include "tests/support/format_under_test.h"

namespace nacre::tests {

class RotationTest : public ::testing::Test {
 protected:
  static constexpr fs::InodeNumber root = metadata::root_inode;
  static constexpr std::uint32_t chunk_size = 4u << 10;
  static constexpr std::string_view word = "first";

  void SetUp() override { make_volume(engine::CipherSuite::aes_256_gcm); }
  void TearDown() override { close(); }

  void make_volume(engine::CipherSuite suite, metadata::EpochFormat format = format_under_test()) {
    backing_ = MemoryBacking::create();
    metadata::VolumeParameters parameters;
    parameters.chunk_size_bytes = chunk_size;
    parameters.codec = engine::Codec::none;
    parameters.cipher = suite;
    parameters.format = format;
    parameters.padding = padding_under_test();
    const auto who = recipients(passphrase(word), public_key(0));
    auto made = metadata::create_volume_files(*backing_, parameters, who);
    NACRE_ASSERT_OK(made);
    NACRE_ASSERT_OK(fs::Mounted::format(backing_, made->keys, made->keyring.generation, {},
                                        /*superblock_generation=*/0, parameters.padding));
    NACRE_ASSERT_OK(metadata::complete_volume_files(*backing_, *made));
  }

  static metadata::VolumeSecret first_secret() { return metadata::VolumeSecret(secret(word)); }
  static Result<metadata::VolumeKeys> unlock(MemoryBacking& directory) {
    return metadata::open_volume_keys(directory, first_secret());
  }

  Result<> try_open(const std::shared_ptr<MemoryBacking>& directory) {
    auto keys = unlock(*directory);
    if (!keys) return tl::unexpected(keys.error());
    keys_ = std::move(*keys);
    auto options = test_volume_options();
    options.background_compaction = false;
    options.store.chunk_size_bytes = chunk_size;
    options.store.segment_size_bytes = segment_size_bytes_;
    options.store.codec = keys_.superblock.codec;
    options.superblock_generation = metadata::generation_to_note(keys_.superblock);
    options.store.padding = keys_.superblock.padding;
    auto engine = engine::Engine::create({.thread_count = 2});
    if (!engine) return tl::unexpected(engine.error());
    auto volume = fs::Mounted::open(directory, keys_.keys, keys_.keyring.generation,
                                    std::move(*engine), options);
    if (!volume) return tl::unexpected(volume.error());
    backing_ = directory;
    volume_ = std::move(*volume);
    keyring_.emplace(directory, keys_.keys, keys_.keyring, [this](std::uint64_t generation) {
      return volume_.mounted().note_keyring_generation(generation);
    });
    rotation_ = std::make_unique<fs::Rotation>(directory, keys_.keys, *keyring_, volume_.mounted());
    return {};
  }
  void open() { NACRE_ASSERT_OK(try_open(backing_)); }
  void close() {
    rotation_.reset();
    if (volume_) NACRE_EXPECT_OK(volume_.mounted().close());
    volume_.reset();
  }
  // Ends the process as a crash does: what it did not write is gone.
  void abandon() {
    rotation_.reset();
    volume_.reset();
  }

  void write(const std::string& name, std::uint32_t seed, std::size_t chunks) {
    auto file = volume_->lookup(root, name);
    if (!file) file = volume_->make_node(root, name, {}, S_IFREG | 0644, 0);
    NACRE_ASSERT_OK(file);
    const std::string content = noise(chunks * chunk_size + seed % 100, seed);
    NACRE_EXPECT_OK(volume_->write(file->inode, 0, as_bytes(content), {}));
    volume_->forget(file->inode, 1);
    contents_[name] = content;
  }
  void fill(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      write(fmt::format("f{}", i), i + 1, 3 + i % 5);
      if (i % 4 == 0) NACRE_EXPECT_OK(volume_->sync_all());
    }
    // Now some records are dead, and some files are small.
    write("f0", 77, 4);
    NACRE_EXPECT_OK(volume_->sync_all());
  }
  // Returns whether every file has the content that was last written.
  bool holds_everything() {
    for (const auto& [name, content] : contents_) {
      const auto file = volume_->lookup(root, name);
      if (!file) return false;
      Bytes bytes(file->size);
      const auto count = volume_->read(file->inode, 0, bytes);
      volume_->forget(file->inode, 1);
      if (!count || *count != bytes.size() || as_text(bytes) != content) return false;
    }
    return true;
  }
  // Expects nothing of an older epoch to be left, and the check of the closed volume to find
  // nothing.
  void expect_rotated(std::uint32_t epoch) {
    const auto counts = fs::count_epochs(*backing_, epoch, fs::WalkDepth::everything,
                                         [](std::uint64_t) { return Result<>(); });
    NACRE_ASSERT_OK(counts);
    EXPECT_EQ(counts->other_file_count + counts->other_record_count, 0u) << counts->first_other;
    EXPECT_GT(counts->record_count, 0u);
    EXPECT_EQ(counts->damaged_place_count, 0u);
    const auto keys = unlock(*backing_);
    NACRE_ASSERT_OK(keys);
    EXPECT_EQ(keys->keyring.epochs.size(), 1u);
    EXPECT_EQ(keys->keyring.epochs.front().number, epoch);
    EXPECT_TRUE(keys->keyring.sealed_previous_volume_key.empty());
    EXPECT_TRUE(keys->warnings.empty());
    expect_sound(*keys);
  }
  void expect_sound(const metadata::VolumeKeys& keys) {
    auto engine = engine::Engine::create({.thread_count = 2});
    NACRE_ASSERT_OK(engine);
    const auto report =
        fs::check_volume(backing_, keys, **engine, {.scrub = true, .deep = true}, {});
    NACRE_ASSERT_OK(report);
    for (const auto& finding : report->findings.findings()) {
      EXPECT_NE(finding.severity, fs::Severity::error) << finding.file << ": " << finding.what;
    }
  }

  std::shared_ptr<MemoryBacking> backing_;
  metadata::VolumeKeys keys_;
  OpenVolume volume_;
  std::optional<metadata::KeyringKeeper> keyring_;
  std::unique_ptr<fs::Rotation> rotation_;
  std::map<std::string, std::string> contents_;
  std::uint64_t segment_size_bytes_ = 64u << 10;
};

}  // namespace nacre::tests
