// SPDX-License-Identifier: Apache-2.0
// Rotation of keys on a volume in memory: what it leaves, what it keeps, how it goes on.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "metadata/format/inode_codec.h"
#include "tests/fs/rotation_fixture.h"

namespace nacre::tests {
namespace {

using State = fs::RotationState;

TEST_F(RotationTest, leaves_nothing_under_the_older_epoch) {
  open();
  fill(20);
  const auto before = keys_.keys->fingerprint();
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_NE(keys_.keys->fingerprint(), before);
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_EQ(rotation_->status().state, State::none);
  EXPECT_FALSE(keys_.keys->is_rotating());
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
  open();
  EXPECT_TRUE(holds_everything());
}

TEST_F(RotationTest, may_follow_another_one) {
  open();
  fill(10);
  for (std::uint32_t epoch = 2; epoch < 5; ++epoch) {
    NACRE_ASSERT_OK(rotation_->begin({}));
    write("between", epoch, 9);
    NACRE_ASSERT_OK(rotation_->run({}));
  }
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(4);
}

TEST_F(RotationTest, changes_the_cipher_suite_either_way) {
  using Suite = engine::CipherSuite;
  for (const auto& [from, to] : {std::pair(Suite::aes_256_cbc, Suite::aes_128_gcm),
                                 std::pair(Suite::aes_256_gcm, Suite::aes_192_cbc)}) {
    contents_.clear();
    make_volume(from);
    open();
    fill(12);
    NACRE_ASSERT_OK(rotation_->begin({.suite = to}));
    EXPECT_TRUE(holds_everything());
    NACRE_ASSERT_OK(rotation_->run({}));
    EXPECT_TRUE(holds_everything());
    close();
    expect_rotated(2);
    open();
    EXPECT_EQ(keys_.superblock.cipher, to);
    EXPECT_EQ(keys_.keys->current_epoch().suite, to);
    EXPECT_TRUE(holds_everything());
    close();
  }
}

TEST_F(RotationTest, compresses_anew_when_a_codec_is_given) {
  open();
  write("text", 1, 1);
  auto file = volume_->lookup(root, "text");
  const std::string zeros(40 * chunk_size, 'z');
  NACRE_ASSERT_OK(volume_->write(file->inode, 0, as_bytes(zeros), {}));
  volume_->forget(file->inode, 1);
  contents_["text"] = zeros;
  fill(6);
  const std::uint64_t before = volume_.mounted().stats().segments.live_bytes;
  NACRE_ASSERT_OK(rotation_->begin({.codec = engine::Codec::lz77}));
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_LT(volume_.mounted().stats().segments.live_bytes, before - 30 * chunk_size);
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
  EXPECT_EQ(unlock(*backing_)->superblock.codec, engine::Codec::lz77);
}

// A rotation decompresses nothing, even if the codec of the volume or of the file has changed
// since.
TEST_F(RotationTest, leaves_everything_compressed_as_it_is_when_no_codec_is_given) {
  open();
  const auto file = volume_->make_node(root, "text", {}, S_IFREG | 0644, 0);
  NACRE_ASSERT_OK(file);
  const std::string zeros(40 * chunk_size, 'z');
  NACRE_ASSERT_OK(volume_->set_xattr(file->inode, metadata::inode_codec_name, "lz77",
                                     fs::XattrMode::set, false));
  NACRE_ASSERT_OK(volume_->write(file->inode, 0, as_bytes(zeros), {}));
  NACRE_ASSERT_OK(volume_->sync_all());
  NACRE_ASSERT_OK(volume_->remove_xattr(file->inode, metadata::inode_codec_name));
  volume_->forget(file->inode, 1);
  contents_["text"] = zeros;
  const std::uint64_t before = volume_.mounted().stats().segments.live_bytes;
  ASSERT_LT(before, 20 * chunk_size);
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_LT(volume_.mounted().stats().segments.live_bytes, before + 10 * chunk_size);
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// A rotation must not compress content that is mixed with an attacker's bytes either.
TEST_F(RotationTest, compresses_anew_with_the_codec_that_a_file_asks_for) {
  open();
  const std::string zeros(40 * chunk_size, 'z');
  for (const std::string name : {"ours", "volume's"}) {
    const auto file = volume_->make_node(root, name, {}, S_IFREG | 0644, 0);
    NACRE_ASSERT_OK(file);
    if (name == "ours")
      NACRE_ASSERT_OK(volume_->set_xattr(file->inode, metadata::inode_codec_name, "none",
                                         fs::XattrMode::set, false));
    NACRE_ASSERT_OK(volume_->write(file->inode, 0, as_bytes(zeros), {}));
    volume_->forget(file->inode, 1);
    contents_[name] = zeros;
  }
  NACRE_EXPECT_OK(volume_->sync_all());
  const std::uint64_t before = volume_.mounted().stats().segments.live_bytes;
  NACRE_ASSERT_OK(rotation_->begin({.codec = engine::Codec::lz77}));
  NACRE_ASSERT_OK(rotation_->run({}));
  const std::uint64_t after = volume_.mounted().stats().segments.live_bytes;
  EXPECT_LT(after, before - 30 * chunk_size);
  EXPECT_GT(after, 40 * chunk_size) << "one of them as it is";
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationTest, is_refused_while_one_is_under_way) {
  open();
  fill(4);
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_CODE(busy, rotation_->begin({}));
}

// Only a rotation writes the superblock of an open volume. So the new key must not vouch for
// another one that has taken its place.
TEST_F(RotationTest, is_not_begun_over_a_superblock_that_changed_while_the_volume_was_open) {
  open();
  fill(4);
  auto forged = keys_.superblock;
  forged.codec = engine::Codec::lz77;
  ++forged.generation;
  NACRE_ASSERT_OK(metadata::save_superblock(*backing_, forged, *keys_.keys));
  const auto begun = rotation_->begin({});
  ASSERT_FALSE(begun);
  EXPECT_EQ(to_string(begun.error().code), to_string(ErrorCode::tampered));
  NACRE_ASSERT_OK(metadata::save_superblock(*backing_, keys_.superblock, *keys_.keys));
  NACRE_EXPECT_OK(rotation_->begin({}));
  NACRE_EXPECT_OK(rotation_->run({}));
  close();
  expect_rotated(2);
}

TEST_F(RotationTest, is_refused_while_a_backup_is_under_way) {
  open();
  fill(4);
  auto backup = volume_.mounted().begin_backup();
  NACRE_ASSERT_OK(backup);
  EXPECT_CODE(busy, rotation_->begin({}));
  backup->hold.reset();
  NACRE_EXPECT_OK(rotation_->begin({}));
}

TEST_F(RotationTest, goes_on_in_the_background_after_a_mount_and_stays_paused_when_it_was) {
  open();
  fill(12);
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->pause());
  close();
  open();
  rotation_->start();
  EXPECT_EQ(rotation_->status().state, State::paused);
  EXPECT_TRUE(keys_.keys->is_rotating());
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->resume(std::nullopt));
  while (keys_.keys->is_rotating())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// The rotation moves one byte a second and would never end. Meanwhile a second rotation is refused,
// and another rate takes effect at once.
TEST_F(RotationTest, refuses_another_one_and_takes_another_rate_while_it_runs) {
  open();
  fill(40);
  rotation_->start();
  NACRE_ASSERT_OK(rotation_->begin({.rate_bytes_per_second = 1}));
  while (rotation_->status().stage != "records")
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto refused = rotation_->begin({});
  EXPECT_CODE(busy, refused);
  EXPECT_NE(refused.error().message.find("under way already"), std::string::npos);
  NACRE_ASSERT_OK(rotation_->pause());
  EXPECT_NE(rotation_->begin({}).error().message.find("--resume"), std::string::npos);
  NACRE_ASSERT_OK(rotation_->resume(1));
  NACRE_ASSERT_OK(rotation_->resume(1u << 30));
  while (keys_.keys->is_rotating())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationTest, keeps_the_older_key_while_a_record_cannot_be_opened) {
  open();
  fill(12);
  close();
  // One byte of the first record of the first segment.
  std::string victim;
  for (const auto& path : backing_->files()) {
    if (path.starts_with("segments/")) {
      victim = path;
      break;
    }
  }
  auto content = *backing_->load(victim);
  content[metadata::segment_header_size_bytes + 60] ^= 1;
  backing_->store(victim, content);
  open();
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_CODE(corrupt, rotation_->run({}));
  EXPECT_TRUE(keys_.keys->is_rotating());
  EXPECT_EQ(rotation_->status().damaged_segment_count, 1u);
  // Once the damaged files are removed, the rotation comes to its end.
  for (const auto& [name, text] : contents_)
    NACRE_EXPECT_OK(volume_->unlink(root, name));
  contents_.clear();
  write("after", 5, 5);
  NACRE_EXPECT_OK(volume_->sync_all());
  close();
  open();
  NACRE_EXPECT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// The damage that a repair leaves: bytes that are no record and belong to no file.
TEST_F(RotationTest, is_not_held_up_by_damage_that_nothing_names) {
  open();
  fill(12);
  close();
  std::string victim;
  for (const auto& path : backing_->files()) {
    if (path.starts_with("segments/")) {
      victim = path;
      break;
    }
  }
  auto content = *backing_->load(victim);
  for (std::size_t i = 0; i < 3000; ++i)
    content[metadata::segment_header_size_bytes + i] = Byte{0xff};
  backing_->store(victim, content);
  open();
  std::size_t hit = 0;
  for (auto it = contents_.begin(); it != contents_.end();) {
    const auto file = volume_->lookup(root, it->first);
    NACRE_ASSERT_OK(file);
    Bytes bytes(file->size);
    const bool is_good = volume_->read(file->inode, 0, bytes).has_value();
    volume_->forget(file->inode, 1);
    if (is_good) {
      ++it;
      continue;
    }
    NACRE_ASSERT_OK(volume_->unlink(root, it->first));
    it = contents_.erase(it);
    ++hit;
  }
  ASSERT_GT(hit, 0u);
  ASSERT_GT(contents_.size(), 0u);
  NACRE_ASSERT_OK(volume_->sync_all());
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// The header of a segment is damaged: its records are looked at all the same.
TEST_F(RotationTest, is_not_said_to_be_complete_where_damage_hides_an_epoch) {
  open();
  fill(12);
  close();
  const auto count = [&](std::uint32_t epoch) {
    const auto counts = fs::count_epochs(*backing_, epoch, fs::WalkDepth::everything,
                                         [](std::uint64_t) { return Result<>(); });
    NACRE_EXPECT_OK(counts);
    return *counts;
  };
  const auto first = [&](std::string_view folder) {
    for (const auto& path : backing_->files())
      if (path.starts_with(folder)) return path;
    return std::string();
  };
  const auto sound = count(2);
  EXPECT_EQ(sound.damaged_place_count, 0u);
  EXPECT_EQ(sound.other_record_count, sound.record_count);
  std::uint64_t damaged = 0;
  for (const std::string& path : {first("segments/"), first("db/IDENTITY"), first("db/MANIFEST")}) {
    SCOPED_TRACE(path);
    auto content = *backing_->load(path);
    content[5] ^= 1;
    backing_->store(path, content);
    const auto counts = count(2);
    EXPECT_EQ(counts.damaged_place_count, ++damaged);
    EXPECT_EQ(counts.other_record_count, sound.record_count);
    EXPECT_EQ(counts.other_file_count, sound.other_file_count - damaged);
  }
}

TEST_F(RotationTest, keeps_what_is_written_and_deleted_beside_it) {
  open();
  fill(20);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint32_t seed = 100; !done; ++seed) {
      write(fmt::format("w{}", seed), seed, 1 + seed % 5);
      // The new content is as long as the old one, so nothing of the old one is left in the file.
      const std::uint32_t old = 1 + seed % 19;
      write(fmt::format("f{}", old), old + 1 + 100 * seed, 3 + old % 5);
      if (seed % 8 == 0) NACRE_EXPECT_OK(volume_->sync_all());
      if (seed < 106) continue;
      const std::string gone = fmt::format("w{}", seed - 6);
      NACRE_EXPECT_OK(volume_->unlink(root, gone));
      contents_.erase(gone);
    }
  });
  for (int i = 0; i < 3; ++i) {
    NACRE_EXPECT_OK(rotation_->begin({}));
    NACRE_EXPECT_OK(rotation_->run({}));
  }
  done = true;
  writer.join();
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(4);
}

// A disk that has no room to move many segments at once: fewer are taken, and it ends all the same.
TEST_F(RotationTest, ends_on_a_disk_with_little_room) {
  open();
  fill(60);
  close();
  std::uint64_t used = 0;
  for (const auto& path : backing_->files())
    used += backing_->load(path)->size();
  backing_->set_capacity(used + (1u << 20));
  open();
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationTest, says_where_room_is_missing_for_its_checkpoint_and_goes_on_with_room) {
  open();
  fill(12);
  NACRE_ASSERT_OK(rotation_->begin({}));
  std::uint64_t used = 0;
  for (const auto& path : backing_->files())
    used += backing_->load(path)->size();
  backing_->set_capacity(used + (16u << 10));
  const auto without_room = rotation_->run({});
  EXPECT_CODE(no_space, without_room);
  for (const std::string& part : {backing_->description(), std::string("checkpoint"),
                                  std::string("Make room"), std::string("nacre key rotate")}) {
    EXPECT_NE(without_room.error().message.find(part), std::string::npos)
        << without_room.error().message;
  }
  EXPECT_TRUE(holds_everything());
  EXPECT_TRUE(keys_.keys->is_rotating());
  backing_->set_capacity(1u << 30);
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

#ifndef NACRE_SANITIZER
// Counts how often these bytes occur in the writable memory of the process. They are passed with
// all bits flipped, so that the argument itself is not counted. Stacks are left out, since they are
// not wiped. Other threads may free memory meanwhile, so it is read through the kernel, which then
// returns an error.
std::size_t count_in_memory(const Bytes& flipped) {
  std::size_t found = 0;
  const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  EXPECT_GE(memory, 0);
  Bytes piece(1u << 20);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char access[5] = {};
    if (sscanf(line.c_str(), "%zx-%zx %4s", &begin, &end, access) != 3) continue;
    if (std::string_view(access).substr(0, 2) != "rw" || line.ends_with("]")) continue;
    // Pieces overlap by what could begin at the end of one. Nothing found stays in this one.
    for (; begin + flipped.size() <= end; begin += piece.size() - (flipped.size() - 1)) {
      const auto size = ::pread(memory, piece.data(), std::min(piece.size(), end - begin),
                                static_cast<off_t>(begin));
      if (size <= 0) break;
      const Byte* const last = piece.data() + size;
      for (const Byte* at = piece.data(); last - at >= std::ssize(flipped); ++at) {
        at = static_cast<const Byte*>(::memchr(at, flipped[0] ^ 0xff, last - at));
        if (at == nullptr || last - at < std::ssize(flipped)) break;
        found += std::equal(flipped.begin(), flipped.end(), at,
                            [](Byte one, Byte other) { return (one ^ 0xff) == other; });
      }
      std::fill(piece.begin(), piece.end(), Byte{0});
    }
  }
  ::close(memory);
  return found;
}

TEST_F(RotationTest, leaves_no_older_key_in_memory) {
  open();
  fill(8);
  Bytes flipped;
  for (const auto& path : backing_->files()) {
    if (!path.ends_with(".seg")) continue;
    const auto header = metadata::decode_segment_header(*backing_->load(path));
    NACRE_ASSERT_OK(header);
    const auto key = keys_.keys->session_key(header->epoch, header->salt);
    NACRE_ASSERT_OK(key);
    flipped.assign((*key)->key.view().begin(), (*key)->key.view().end());
    for (Byte& byte : flipped)
      byte ^= 0xff;
  }
  ASSERT_FALSE(flipped.empty());
  EXPECT_GT(count_in_memory(flipped), 0u);
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_EQ(count_in_memory(flipped), 0u);
  EXPECT_TRUE(holds_everything());
}
#endif

// The attacker was a recipient before the rotation, and has a secret, the keyring from then, and
// all files of now.
TEST_F(RotationTest, gives_nothing_written_or_resealed_since_to_whoever_was_removed) {
  open();
  fill(8);
  const Bytes old_keyring = *backing_->load("keyring");
  // Removed: recipients() made him the second one.
  metadata::Keyring without = keys_.keyring;
  without.recipients.erase(without.recipients.begin() + 1);
  without.generation++;
  NACRE_ASSERT_OK(keyring_->replace(without));
  NACRE_ASSERT_OK(rotation_->begin({}));
  write("since", 1, 6);
  NACRE_ASSERT_OK(rotation_->run({}));
  close();
  expect_rotated(2);

  const auto removed = [] {
    return metadata::VolumeSecret(
        std::move(*engine::RsaPrivateKey::from_der(identity(0).to_der()->view())));
  };
  EXPECT_CODE(wrong_key, metadata::open_volume_keys(*backing_, removed()));
  // The keys that he has open no record and no file of db/.
  const auto parsed = metadata::parse_keyring(old_keyring);
  NACRE_ASSERT_OK(parsed);
  const auto old_keys = metadata::open_keyring(*parsed, removed());
  NACRE_ASSERT_OK(old_keys);
  EXPECT_FALSE(old_keys->keys->session_key(2, {}));
  EXPECT_FALSE(old_keys->keys->database_file_key(2, Bytes(16), "CURRENT"));
  // The old keyring is put back. It is refused, also with the secret of a recipient who stays.
  backing_->store("keyring", old_keyring);
  backing_->store("keyring.copy", old_keyring);
  EXPECT_CODE(tampered, metadata::open_volume_keys(*backing_, removed()));
  EXPECT_CODE(tampered, unlock(*backing_));
}

}  // namespace
}  // namespace nacre::tests
