// SPDX-License-Identifier: Apache-2.0
// What reading and writing content asks of the tables and of the disk. The rows of a commit are the
// chunks', the inode's, that of the segment that was written to, and the volume's count of data
// bytes where that changes.
#include "tests/fs/volume_counts_fixture.h"

namespace nacre::tests {
namespace {

class VolumeDataCounts : public VolumeCounts {
 protected:
  // Makes a file whose chunks are on the disk, and another file in the same segment.
  void SetUp() override {
    VolumeCounts::SetUp();
    write(make_file(root, "first"), 0, text(2 * chunk_size));
    commit();
  }
  fs::InodeNumber stored_file(std::uint64_t size) {
    const auto file = make_file(root, "f");
    write(file, 0, text(size));
    commit();
    return file;
  }
  static std::string text(std::uint64_t size) { return std::string(size, 'x'); }
  // A commit of one flush: records with one write, rows with another, a flush of the disk for each.
  static OperationCounts records_and_rows(std::uint64_t puts, std::uint64_t rows) {
    return {.puts = puts,
            .batches = 1,
            .batch_rows = rows,
            .segment_writes = 1,
            .database_writes = 1,
            .syncs = 2};
  }
  // The most bytes that a record takes in addition to its chunk.
  static constexpr std::uint64_t record_overhead_max = 128;
  void read_at(fs::InodeNumber file, std::uint64_t offset, std::size_t size) {
    Bytes out(size);
    EXPECT_EQ(volume().read(file, offset, out), size);
  }
};

TEST_F(VolumeDataCounts, a_chunk_written_to_a_new_file) {
  const auto file = make_file(root, "f");
  commit();
  expect_nothing("write of a chunk", [&] { write(file, 0, text(chunk_size)); });
  // Chunk, inode, segment, data bytes.
  expect_commit("commit of a new chunk", records_and_rows(4, 4));
  EXPECT_LE(bytes_.segment_written, chunk_size + record_overhead_max);
  EXPECT_LE(bytes_.database_written, 1024u);
}

TEST_F(VolumeDataCounts, the_first_segment_costs_a_flush_of_its_folder) {
  forget_all();
  const auto file = make_file(root, "f");
  commit();
  write(file, 0, text(chunk_size));
  // A new segment costs a write of its header, and a row for the next segment number.
  auto expected = records_and_rows(5, 5);
  expected.segment_writes = 2;
  expected.folder_syncs = 1;
  expect_commit("commit of the first chunk of a segment", expected);
}

TEST_F(VolumeDataCounts, a_chunk_appended) {
  const auto file = stored_file(chunk_size);
  expect_nothing("append of a chunk", [&] { write(file, chunk_size, text(chunk_size)); });
  expect_commit("commit of an appended chunk", records_and_rows(4, 4));
}

TEST_F(VolumeDataCounts, sixteen_chunks_go_as_one) {
  const auto file = make_file(root, "f");
  commit();
  write(file, 0, text(16 * chunk_size));
  expect_commit("commit of 16 chunks", records_and_rows(19, 19));
  EXPECT_LE(bytes_.segment_written, 16 * (chunk_size + record_overhead_max));
  EXPECT_LE(bytes_.database_written, 4096u);
}

TEST_F(VolumeDataCounts, a_chunk_overwritten) {
  const auto file = stored_file(2 * chunk_size);
  expect_nothing("overwriting a chunk", [&] { write(file, 0, text(chunk_size)); });
  // The row in whose place the new one comes is read once; the count of data bytes stays.
  auto expected = records_and_rows(3, 3);
  expected.gets = expected.rows_read = 1;
  expect_commit("commit of an overwritten chunk", expected);
  EXPECT_LE(bytes_.segment_written, chunk_size + record_overhead_max);
}

TEST_F(VolumeDataCounts, a_chunk_changed_in_part) {
  const auto file = stored_file(2 * chunk_size);
  write(file, 100, text(chunk_size / 2));
  // Read and written anew as a whole.
  auto expected = records_and_rows(3, 3);
  expected.gets = expected.rows_read = 1;
  expected.segment_reads = 1;
  expect_commit("commit of half a chunk", expected);
  EXPECT_LE(bytes_.segment_written, chunk_size + record_overhead_max);
}

TEST_F(VolumeDataCounts, four_kilobytes_appended_and_synced) {
  const auto file = stored_file(chunk_size);
  write(file, chunk_size, text(4096));
  // Bytes, chunk, inode, data bytes, and no segment: one flush of the disk.
  expect("fsync after an append of 4 KiB", rows_only(4, 4), [&] { NACRE_EXPECT_OK(sync(file)); });
  EXPECT_GE(bytes_.database_written, 4096u);
  EXPECT_LE(bytes_.database_written, 4096u + 1024u);
}

TEST_F(VolumeDataCounts, four_kilobytes_overwritten_and_synced) {
  const auto file = stored_file(4 * chunk_size);
  write(file, chunk_size, text(4096));
  auto expected = rows_only(3, 3);
  expected.gets = expected.rows_read = 1;
  expect("fsync after overwriting 4 KiB", expected, [&] { NACRE_EXPECT_OK(sync(file)); });
  EXPECT_LE(bytes_.database_written, 4096u + 1024u);
  write(file, chunk_size, text(4096));
  // In the place of the bytes before: their row goes.
  expected.erases = 1;
  expected.batch_rows = 4;
  expect("fsync after overwriting them again", expected, [&] { NACRE_EXPECT_OK(sync(file)); });
}

TEST_F(VolumeDataCounts, a_small_file) {
  const auto make = [&](std::string_view name) {
    const auto file = make_file(root, name);
    write(file, 0, text(2048));
    return file;
  };
  expect("create and write of 2 KiB", {.gets = 1, .rows_read = 1, .puts = 1}, [&] { make("f"); });
  // Entry, chunk, inode, directory, segment, counts of inodes and data bytes.
  expect_commit("commit of a file of 2 KiB", records_and_rows(6, 7));
  EXPECT_LE(bytes_.segment_written, 2048 + record_overhead_max);
  EXPECT_LE(bytes_.database_written, 1024u);
  const auto synced = make("g");
  // The bytes are a row, too: no segment is written to, and the disk flushes once.
  expect("fsync of a new file of 2 KiB", rows_only(6, 7), [&] { NACRE_EXPECT_OK(sync(synced)); });
  EXPECT_LE(bytes_.database_written, 2048u + 1024u);
}

TEST_F(VolumeDataCounts, reads) {
  const auto file = stored_file(8 * chunk_size);
  forget_all();
  find(root, "f");
  // The second row is of the write session, once for each session of earlier mounts.
  expect("read of a chunk, cold", {.gets = 2, .rows_read = 2, .segment_reads = 1},
         [&] { read_at(file, 0, chunk_size); });
  EXPECT_LE(bytes_.segment_read, chunk_size + record_overhead_max);
  expect("read of a chunk, warm", {.gets = 1, .rows_read = 1},
         [&] { read_at(file, 0, chunk_size); });
  expect("read of six chunks, cold", {.iterators = 1, .rows_read = 6, .segment_reads = 1},
         [&] { read_at(file, chunk_size, 6 * chunk_size); });
  EXPECT_LE(bytes_.segment_read, 6 * (chunk_size + record_overhead_max));
  expect("read of six chunks, warm", {.iterators = 1, .rows_read = 6},
         [&] { read_at(file, chunk_size, 6 * chunk_size); });
}

TEST_F(VolumeDataCounts, reads_of_what_is_dirty) {
  const auto file = make_file(root, "f");
  write(file, 0, text(chunk_size));
  expect_nothing("read of dirty bytes", [&] { read_at(file, 0, chunk_size); });
}

TEST_F(VolumeDataCounts, a_noted_access_is_one_row_of_the_next_commit) {
  const auto file = stored_file(chunk_size);
  constexpr fs::Timestamp long_ago{1, 0};
  NACRE_EXPECT_OK(volume().change_attributes(
      file, {.accessed = long_ago, .modified = long_ago, .changed = long_ago}));
  commit();
  read_at(file, 0, chunk_size);
  expect_commit("commit of an access", rows_only(1, 1));
  read_at(file, 0, chunk_size);
  expect_nothing("commit of a further access", [&] { commit(); });
}

TEST_F(VolumeDataCounts, truncation) {
  const auto file = stored_file(4 * chunk_size);
  const auto truncate = [&](std::uint64_t size) {
    NACRE_EXPECT_OK(volume().change_attributes(file, {.size = size}));
  };
  expect("truncation in a chunk",
         {.gets = 1, .iterators = 2, .rows_read = 4, .puts = 1, .erases = 2},
         [&] { truncate(chunk_size + 100); });
  expect_commit("commit of a truncation", rows_only(3, 6));
  expect("truncation to nothing", {.iterators = 1, .rows_read = 2, .erases = 2},
         [&] { truncate(0); });
  expect_commit("commit of a truncation to nothing", rows_only(3, 5));
  expect_nothing("growing", [&] { truncate(10 * chunk_size); });
  // A hole and the inode.
  auto expected = rows_only(2, 2);
  expected.iterators = 1;
  expect_commit("commit of growing", expected);
}

TEST_F(VolumeDataCounts, punching_a_hole) {
  const auto file = stored_file(4 * chunk_size);
  expect("punching a chunk", {.gets = 1, .iterators = 2, .rows_read = 3, .puts = 1, .erases = 1},
         [&] {
           NACRE_EXPECT_OK(
               volume().allocate(file, fs::AllocateMode::punch_hole, chunk_size, chunk_size));
         });
  // In the chunk's row's place; inode, segment, data bytes.
  expect_commit("commit of a punched chunk", rows_only(3, 4));
}

TEST_F(VolumeDataCounts, unlink_of_a_stored_file) {
  const auto file = stored_file(4 * chunk_size);
  expect("unlink of 4 chunks", {.gets = 1, .rows_read = 1, .erases = 1},
         [&] { NACRE_EXPECT_OK(volume().unlink(root, "f")); });
  expect("forget of a file of 4 chunks", {.iterators = 1, .rows_read = 4, .erases = 5},
         [&] { volume().forget(file, 1); });
  // Entry, chunks, inode, directory, segment, both counts.
  expect_commit("commit of an unlink of 4 chunks", rows_only(4, 10));
}

TEST_F(VolumeDataCounts, unlink_of_a_file_that_never_stored_a_chunk) {
  const auto file = make_file(root, "f");
  write(file, 0, text(4 * chunk_size));
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  expect_nothing("forget of a file with dirty bytes only", [&] { volume().forget(file, 1); });
}

TEST_F(VolumeDataCounts, copy_of_a_range) {
  const auto from = stored_file(4 * chunk_size);
  const auto to = make_file(root, "copy");
  commit();
  // The scans find where data begins, where it ends, and which records hold it.
  expect("copy of 4 chunks", {.iterators = 3, .rows_read = 12, .segment_reads = 1},
         [&] { EXPECT_EQ(volume().copy_range(from, 0, to, 0, 4 * chunk_size), 4 * chunk_size); });
  // Chunks, both inodes, of which one was read, segment, data bytes.
  expect_commit("commit of a copy", records_and_rows(8, 8));
}

}  // namespace
}  // namespace nacre::tests
