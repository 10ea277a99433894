// SPDX-License-Identifier: Apache-2.0
// Older bytes are put back into a volume, or a volume and its own copy both continue.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "fs/check/checker.h"
#include "fs/repair/repair.h"
#include "tests/fs/store_fixture.h"
#include "tests/hostile/mutation.h"
#include "tests/hostile/specimen.h"

namespace nacre::tests {
namespace {

constexpr std::uint64_t chunk_size = 4u << 10;

class PutBack : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    specimens();
  }

  OpenVolume mount(const std::shared_ptr<MemoryBacking>& backing) {
    const auto keys = open_specimen_keys(*backing);
    NACRE_EXPECT_OK(keys);
    auto volume = open_specimen(backing, *keys);
    NACRE_EXPECT_OK(volume);
    return volume ? std::move(*volume) : OpenVolume();
  }
  static std::set<std::string> segments_of(const MemoryBacking& backing) {
    std::set<std::string> segments;
    for (const auto& path : backing.files()) {
      if (path.ends_with(".seg")) segments.insert(path);
    }
    return segments;
  }
};

// The older record has the same inode, chunk and size, and the same session sealed it under the
// same key. Only its version tells it from the one that the row names.
TEST_F(PutBack, an_older_record_of_the_same_chunk_is_tampering_and_never_read) {
  const auto backing = specimens().closed.backing->process_kill();
  const auto before = segments_of(*backing);
  auto volume = mount(backing);
  ASSERT_TRUE(volume);
  const auto made = volume->make_node(metadata::root_inode, "paid", {}, S_IFREG | 0644, 0);
  NACRE_ASSERT_OK(made);
  std::string noise(chunk_size, '\0');
  std::mt19937 random(1);
  for (int version = 0; version < 2; ++version) {
    for (char& c : noise)
      c = static_cast<char>(random());
    NACRE_ASSERT_OK(volume->write(made->inode, 0, as_bytes(noise), {}));
    NACRE_ASSERT_OK(volume->sync_all());
  }
  // The records are read before the volume is closed: a checkpoint would have records of its own.
  std::string path;
  std::vector<Piece> records;
  for (const auto& segment : segments_of(*backing)) {
    if (before.contains(segment)) continue;
    path = segment;
    for (const Piece& piece : pieces_of(segment, *backing->load(segment))) {
      if (piece.kind == PieceKind::record) records.push_back(piece);
    }
  }
  ASSERT_EQ(records.size(), 2u);
  ASSERT_EQ(records[0].size, records[1].size);
  NACRE_EXPECT_OK(volume.mounted().close());
  volume.reset();

  Bytes bytes = *backing->load(path);
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(records[0].offset), records[0].size,
              bytes.begin() + static_cast<std::ptrdiff_t>(records[1].offset));
  backing->store(path, bytes);
  const auto keys = open_specimen_keys(*backing);
  const auto engine = engine::Engine::create({.thread_count = 1});
  const auto report = fs::check_volume(backing, *keys, **engine, {.deep = true}, {});
  NACRE_ASSERT_OK(report);
  EXPECT_EQ(report->findings.error_count(), 1u);
  for (const auto& finding : report->findings.findings()) {
    if (finding.severity == fs::Severity::note) continue;
    EXPECT_EQ(to_string(finding.verdict), to_string(fs::Verdict::tampered)) << finding.what;
    EXPECT_EQ(finding.paths, std::vector<std::string>{"/paid"});
  }
  volume = mount(backing);
  ASSERT_TRUE(volume);
  Bytes out(chunk_size);
  const auto read = volume->read(made->inode, 0, out);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::tampered) << read.error().message;
}

// One branch of the volume's history, from the state that both branches have in common.
struct Branch {
  std::shared_ptr<MemoryBacking> backing;
  metadata::InodeNumber inode;
  // records that the branch sealed: segment, place
  std::vector<std::pair<std::string, Piece>> records;
};

class Branches : public PutBack {
 protected:
  // Continues a restored backup. Its next session gets the same number, files get the same inodes,
  // and changes the same versions.
  Branch go_on(const std::shared_ptr<MemoryBacking>& from, unsigned seed) {
    Branch branch{.backing = from->process_kill(), .inode = {}, .records = {}};
    const auto before = segments_of(*branch.backing);
    auto volume = mount(branch.backing);
    const auto made = volume->make_node(metadata::root_inode, "paid", {}, S_IFREG | 0644, 0);
    NACRE_EXPECT_OK(made);
    branch.inode = made->inode;
    std::string content(4 * chunk_size, '\0');
    std::mt19937 random(seed);
    for (char& c : content)
      c = static_cast<char>(random());
    NACRE_EXPECT_OK(volume->write(branch.inode, 0, as_bytes(content), {}));
    NACRE_EXPECT_OK(volume->sync_all());
    for (const auto& segment : segments_of(*branch.backing)) {
      if (before.contains(segment)) continue;
      for (const Piece& piece : pieces_of(segment, *branch.backing->load(segment))) {
        if (piece.kind == PieceKind::record) branch.records.emplace_back(segment, piece);
      }
    }
    NACRE_EXPECT_OK(volume.mounted().close());
    return branch;
  }
  // Puts each record of one branch in the place of the matching record of the other.
  static std::size_t put_records(const Branch& from, Branch& into) {
    std::size_t count = 0;
    for (const auto& [path, piece] : into.records) {
      const auto like =
          std::find_if(from.records.begin(), from.records.end(), [&](const auto& other) {
            return other.first == path && other.second.offset == piece.offset &&
                   other.second.size == piece.size;
          });
      if (like == from.records.end()) continue;
      const Bytes theirs = *from.backing->load(path);
      Bytes ours = *into.backing->load(path);
      std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(piece.offset), piece.size,
                  ours.begin() + static_cast<std::ptrdiff_t>(piece.offset));
      into.backing->store(path, ours);
      ++count;
    }
    return count;
  }
  void expect_tampering(const Branch& branch) {
    const auto keys = open_specimen_keys(*branch.backing);
    const auto report = fs::check_volume(branch.backing, *keys, *engine_, {.deep = true}, {});
    NACRE_ASSERT_OK(report);
    EXPECT_EQ(report->findings.error_count(), 4u);
    for (const auto& finding : report->findings.findings()) {
      if (finding.severity == fs::Severity::note) continue;
      EXPECT_EQ(to_string(finding.verdict), to_string(fs::Verdict::tampered)) << finding.what;
      EXPECT_EQ(finding.paths, std::vector<std::string>{"/paid"});
    }
    for (const bool read_only : {false, true}) {
      auto volume = open_specimen(branch.backing, *keys, read_only);
      NACRE_ASSERT_OK(volume);
      for (std::uint64_t chunk = 0; chunk < 4; ++chunk) {
        Bytes out(chunk_size);
        const auto read = (*volume)->read(branch.inode, chunk * chunk_size, out);
        ASSERT_FALSE(read) << "chunk " << chunk;
        EXPECT_EQ(read.error().code, ErrorCode::tampered) << read.error().message;
      }
      NACRE_EXPECT_OK(volume->mounted().close());
    }
  }
  std::unique_ptr<engine::Engine> engine_ = std::move(*engine::Engine::create({.thread_count = 1}));
};

// Whole histories fork if a backup is restored, or if a copy is mounted.
TEST_F(Branches, records_of_another_branch_are_tampering_and_never_read) {
  for (const Specimen* specimen : {&specimens().closed, &specimens().killed}) {
    const Branch regretted = go_on(specimen->backing, 1);
    Branch kept = go_on(specimen->backing, 2);
    ASSERT_EQ(regretted.inode, kept.inode);
    ASSERT_GE(put_records(regretted, kept), 4u)
        << "the branches have no records at the same places";
    expect_tampering(kept);
  }
}

// A copy of a live volume has the row of the session with which the volume continues.
TEST_F(Branches, records_of_a_session_that_went_on_behind_a_copy_are_tampering) {
  const auto live = specimens().closed.backing->process_kill();
  auto volume = mount(live);
  NACRE_ASSERT_OK(volume->make_node(metadata::root_inode, "common", {}, S_IFREG | 0644, 0));
  NACRE_ASSERT_OK(volume->sync_all());
  const auto copy = live->process_kill();
  const auto made = volume->make_node(metadata::root_inode, "paid", {}, S_IFREG | 0644, 0);
  NACRE_ASSERT_OK(made);
  std::string content(4 * chunk_size, '\0');
  std::mt19937 random(3);
  for (char& c : content)
    c = static_cast<char>(random());
  NACRE_ASSERT_OK(volume->write(made->inode, 0, as_bytes(content), {}));
  NACRE_ASSERT_OK(volume->sync_all());
  std::vector<Bytes> theirs;
  for (const auto& segment : segments_of(*live)) {
    const Bytes bytes = *live->load(segment);
    for (const Piece& piece : pieces_of(segment, bytes)) {
      if (piece.kind != PieceKind::record) continue;
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(piece.offset);
      theirs.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(piece.size));
    }
  }
  NACRE_EXPECT_OK(volume.mounted().close());
  volume.reset();

  Branch kept = go_on(copy, 4);
  std::size_t count = 0;
  for (const auto& [path, piece] : kept.records) {
    // Takes the newest record of this size: those that the other branch sealed are the last ones.
    const auto like = std::find_if(theirs.rbegin(), theirs.rend(),
                                   [&](const Bytes& bytes) { return bytes.size() == piece.size; });
    if (like == theirs.rend()) continue;
    Bytes ours = *kept.backing->load(path);
    std::copy(like->begin(), like->end(), ours.begin() + static_cast<std::ptrdiff_t>(piece.offset));
    kept.backing->store(path, ours);
    ++count;
  }
  ASSERT_GE(count, 4u);
  expect_tampering(kept);
}

// A repair makes a session's missing row anew from its records, so it also looks at foreign
// records.
TEST_F(Branches, a_repair_takes_no_record_of_another_branch_for_genuine) {
  const Branch regretted = go_on(specimens().closed.backing, 1);
  Branch kept = go_on(specimens().closed.backing, 2);
  ASSERT_GE(put_records(regretted, kept), 4u);
  const auto keys = open_specimen_keys(*kept.backing);
  const auto draft = fs::plan_repair(kept.backing, *keys, *engine_, {}, {});
  NACRE_ASSERT_OK(draft);
  NACRE_ASSERT_OK(fs::apply_plan(kept.backing, *keys, draft->plan));
  auto volume = mount(kept.backing);
  ASSERT_TRUE(volume);
  for (std::uint64_t chunk = 0; chunk < 4; ++chunk) {
    Bytes out(chunk_size);
    EXPECT_FALSE(volume->read(kept.inode, chunk * chunk_size, out)) << "chunk " << chunk;
  }
  NACRE_EXPECT_OK(volume.mounted().close());
}

// Every (key, nonce) pair that sealed anything. For a record these are its salt and counter. For a
// page or frame they are its file's salt, its index, and the generation of a page that was sealed
// again.
using Sealed = std::map<std::string, std::string>;

void add_sealed(const MemoryBacking& backing, Sealed& sealed, std::uint64_t& count) {
  for (const auto& path : backing.files()) {
    const auto content = backing.load(path);
    if (!content) continue;  // RocksDB removed it meanwhile
    std::uint64_t number = 0;
    for (const Piece& piece : pieces_of(path, *content)) {
      const auto bytes = as_text(ByteView(*content).subspan(piece.offset, piece.size));
      std::string nonce;
      if (piece.kind == PieceKind::record) {
        nonce = std::string("record ") + std::string(bytes.substr(12, 24));
      } else if (piece.kind == PieceKind::page || piece.kind == PieceKind::frame) {
        const auto salt = as_text(ByteView(*content).subspan(32, 16));
        nonce = fmt::format("file {} {}", salt, number++);
        if (piece.kind == PieceKind::page) nonce += bytes.substr(bytes.size() - 8, 4);
      } else {
        continue;
      }
      ++count;
      const auto [known, is_new] = sealed.emplace(nonce, bytes);
      ASSERT_EQ(known->second, bytes)
          << path << " at " << piece.offset << ": one nonce sealed two different plain texts";
    }
  }
}

TEST_F(PutBack, a_volume_and_its_restored_copy_never_use_a_nonce_for_two_texts) {
  Sealed sealed;
  std::uint64_t count = 0;
  // Does the same work on a volume, on a copy of it that was put back, and on copies of a live
  // volume whose process was killed, again and again.
  for (const Specimen* specimen : {&specimens().closed, &specimens().killed}) {
    for (int copy = 0; copy < 4; ++copy) {
      const auto backing = specimen->backing->process_kill();
      for (int session = 0; session < 3; ++session) {
        auto volume = mount(backing);
        ASSERT_TRUE(volume);
        for (int file = 0; file < 3; ++file) {
          const auto made = volume->make_node(
              metadata::root_inode, fmt::format("{} {}", session, file), {}, S_IFREG | 0644, 0);
          NACRE_ASSERT_OK(made);
          // The bytes that differ between the copies are at the same place.
          const std::string content(5 * chunk_size, static_cast<char>('a' + copy));
          NACRE_ASSERT_OK(volume->write(made->inode, 0, as_bytes(content), {}));
          NACRE_ASSERT_OK(volume->sync_all());
        }
        add_sealed(*backing, sealed, count);
        if (session == 1) NACRE_EXPECT_OK(volume.mounted().close());
      }
      add_sealed(*backing, sealed, count);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(sealed.size(), 500u);
  EXPECT_GT(count, sealed.size()) << "the copies have no common past";
  fmt::print("{} sealed pieces, {} nonces\n", count, sealed.size());
}

}  // namespace
}  // namespace nacre::tests
