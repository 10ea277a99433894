// SPDX-License-Identifier: Apache-2.0
// File content through the volume: the rules that the volume adds to FileData, which has tests of
// its own.
#include "tests/fs/volume_fixture.h"

#include <random>

namespace nacre::tests {
namespace {

using fs::AllocateMode;
using fs::InodeNumber;
using fs::SeekWhat;

class VolumeData : public VolumeTest {
 protected:
  std::uint32_t chunk_ = options_.store.chunk_size_bytes;
};

TEST_F(VolumeData, comes_back_at_every_odd_size) {
  std::vector<std::pair<InodeNumber, std::string>> files;
  std::mt19937 random(7);
  for (const std::uint32_t size : {0u, 1u, 7u, 31u, 32u, 33u, 4095u, 4096u, 4097u, chunk_ - 1,
                                   chunk_, chunk_ + 1, 5 * chunk_ + 3}) {
    std::string content(size, '\0');
    for (char& c : content)
      c = static_cast<char>(random());
    const InodeNumber file = make_file(root, std::to_string(size));
    write(file, 0, content);
    EXPECT_EQ(read(file), content) << size;
    files.emplace_back(file, content);
  }
  remount();
  for (const auto& [file, content] : files)
    EXPECT_EQ(read(file), content) << content.size();
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().dirty_bytes, 0u);
}

TEST_F(VolumeData, is_read_and_written_in_regular_files_alone) {
  Bytes buffer(4);
  const auto fifo = volume().make_node(root, "fifo", caller_, S_IFIFO | 0600, 0);
  EXPECT_CODE(is_directory, volume().read(root, 0, buffer));
  EXPECT_CODE(is_directory, volume().write(root, 0, as_bytes("x"), {}));
  EXPECT_CODE(invalid_argument, volume().read(fifo->inode, 0, buffer));
  EXPECT_CODE(invalid_argument, volume().allocate(fifo->inode, AllocateMode::allocate, 0, 1));
  EXPECT_CODE(is_directory, volume().seek(root, 0, SeekWhat::data));
}

TEST_F(VolumeData, ends_at_the_largest_offset) {
  const InodeNumber file = make_file(root, "f");
  constexpr std::uint64_t last = (1ull << 63) - 2;
  write(file, last, "x");
  EXPECT_EQ(stat(file).size, last + 1);
  EXPECT_CODE(too_big, volume().write(file, last, as_bytes("xy"), {}));
  EXPECT_CODE(too_big, volume().allocate(file, AllocateMode::allocate, last, 2));
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(volume().seek(file, 0, SeekWhat::data).value(), last / chunk_ * chunk_);
  Bytes buffer(2);
  EXPECT_EQ(volume().read(file, last, buffer).value(), 1u);
  EXPECT_EQ(buffer[0], 'x');
}

TEST_F(VolumeData, allocation_changes_sizes_as_asked) {
  const InodeNumber file = make_file(root, "f");
  const std::string content(3 * chunk_, 'x');
  write(file, 0, content);
  NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::allocate, 0, 100));
  EXPECT_EQ(stat(file).size, content.size()) << "never shorter";
  NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::keep_size, 0, 10 * chunk_));
  EXPECT_EQ(read(file), content);
  NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::allocate, 3 * chunk_, chunk_));
  EXPECT_EQ(read(file), content + std::string(chunk_, '\0'));

  std::string expected = content + std::string(chunk_, '\0');
  const auto zero = [&](AllocateMode mode, std::uint64_t offset, std::uint64_t length) {
    NACRE_EXPECT_OK(volume().allocate(file, mode, offset, length));
    if (mode == AllocateMode::zero) {
      expected.resize(std::max<std::size_t>(expected.size(), offset + length));
    }
    for (std::uint64_t i = offset; i < offset + length && i < expected.size(); ++i)
      expected[i] = '\0';
    EXPECT_EQ(read(file), expected);
  };
  zero(AllocateMode::punch_hole, 10, 20);
  zero(AllocateMode::punch_hole, chunk_ - 5, chunk_ + 10);
  zero(AllocateMode::zero_keep_size, 3 * chunk_ - 7, 9 * chunk_);
  zero(AllocateMode::zero, 2 * chunk_ + 3, 5 * chunk_);
  remount();
  EXPECT_EQ(read(find(root, "f")), expected);
  EXPECT_CODE(invalid_argument, volume().allocate(file, AllocateMode::allocate, 0, 0));
}

TEST_F(VolumeData, allocation_refuses_what_can_never_fit) {
  backing_->set_capacity(256u << 20);
  const InodeNumber file = make_file(root, "f");
  EXPECT_CODE(no_space, volume().allocate(file, AllocateMode::allocate, 0, 1ull << 40));
  EXPECT_CODE(no_space, volume().allocate(file, AllocateMode::keep_size, 0, 1ull << 40));
  EXPECT_EQ(stat(file).size, 0u);
  NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::allocate, 0, 1u << 20));
}

TEST_F(VolumeData, allocation_never_cuts_what_is_written_meanwhile) {
  const InodeNumber file = make_file(root, "f");
  constexpr int rounds = 300;
  std::thread writer([&] {
    for (int i = 1; i <= rounds; ++i) {
      write(file, static_cast<std::uint64_t>(i) * 1000, "0123456789");
    }
  });
  for (int i = 1; i <= rounds; ++i) {
    NACRE_EXPECT_OK(
        volume().allocate(file, AllocateMode::allocate, 0, static_cast<std::uint64_t>(i) * 1000));
  }
  writer.join();
  const std::string content = read(file);
  ASSERT_EQ(content.size(), rounds * 1000u + 10);
  for (std::size_t i = 1; i <= rounds; ++i)
    EXPECT_EQ(content.substr(i * 1000, 10), "0123456789") << i;
}

TEST_F(VolumeData, data_and_holes_are_found) {
  const InodeNumber file = make_file(root, "f");
  write(file, 4 * chunk_, "data");
  NACRE_ASSERT_OK(volume().change_attributes(file, {.size = 8 * chunk_}));
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(volume().seek(file, 0, SeekWhat::data).value(), 4 * chunk_);
    EXPECT_EQ(volume().seek(file, 0, SeekWhat::hole).value(), 0u);
    EXPECT_EQ(volume().seek(file, 4 * chunk_ + 1, SeekWhat::hole).value(), 5 * chunk_);
    EXPECT_CODE(no_position, volume().seek(file, 5 * chunk_, SeekWhat::data));
    EXPECT_CODE(no_position, volume().seek(file, 8 * chunk_, SeekWhat::hole));
    EXPECT_CODE(no_position, volume().seek(file, 1ull << 62, SeekWhat::data));
    remount();
    find(root, "f");
  }
}

TEST_F(VolumeData, ranges_are_copied_within_the_volume) {
  const InodeNumber from = make_file(root, "from");
  const InodeNumber to = make_file(root, "to");
  std::string content(2 * chunk_ + 100, 'a');
  write(from, 0, content);
  write(from, 50 * chunk_, "end");
  EXPECT_EQ(volume().copy_range(from, 5, to, 7, 1ull << 50).value(), 50ull * chunk_ + 3 - 5);
  const std::string copied = read(to);
  EXPECT_EQ(copied, std::string(7, '\0') + read(from).substr(5));
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_LE(stat(to).blocks, 6u * chunk_ / 512) << "holes stay holes";
  EXPECT_EQ(volume().copy_range(from, 1ull << 40, to, 0, 10).value(), 0u);
  EXPECT_EQ(volume().copy_range(from, 0, to, 0, 0).value(), 0u);
  // Within one file, apart.
  EXPECT_EQ(volume().copy_range(from, 0, from, 100 * chunk_, 10).value(), 10u);
  EXPECT_EQ(read(from).substr(100 * chunk_), std::string(10, 'a'));
  EXPECT_CODE(invalid_argument, volume().copy_range(from, 0, from, 5, 10));
  EXPECT_CODE(too_big, volume().copy_range(from, 0, to, (1ull << 63) - 2, 10));
  EXPECT_CODE(is_directory, volume().copy_range(from, 0, root, 0, 10));
  // A hole overwrites what is there.
  write(to, 0, std::string(3 * chunk_, 'b'));
  EXPECT_EQ(volume().copy_range(from, 10 * chunk_, to, 0, chunk_).value(), chunk_);
  EXPECT_EQ(read(to).substr(0, chunk_), std::string(chunk_, '\0'));
}

TEST_F(VolumeData, a_damaged_file_is_named_in_the_error) {
  const InodeNumber directory = make_directory(root, "d");
  const InodeNumber file = make_file(directory, "victim");
  write(file, 0, std::string(3 * chunk_, 'x'));
  unmount();
  for (const std::string& path : backing_->files()) {
    if (!path.starts_with("segments/")) continue;
    Bytes bytes = backing_->load(path).value();
    if (bytes.size() > 200) bytes[200] ^= 1;
    backing_->store(path, bytes);
  }
  mount();
  find(find(root, "d"), "victim");
  Bytes buffer(3 * chunk_);
  const auto outcome = volume().read(file, 0, buffer);
  EXPECT_CODE(corrupt, outcome);
  EXPECT_NE(outcome.error().message.find("/d/victim"), std::string::npos)
      << outcome.error().message;
}

}  // namespace
}  // namespace nacre::tests
