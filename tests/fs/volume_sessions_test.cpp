// SPDX-License-Identifier: Apache-2.0
// A write session ends when it has sealed as much as its key may: what follows is under another
// salt, and all of it is read back.
#include "tests/fs/volume_fixture.h"

#include <random>
#include <set>
#include <thread>

#include "fs/store/segment_walk.h"

namespace nacre::tests {
namespace {

using fs::InodeNumber;

constexpr std::uint64_t session_limit = 4u << 20;

// The bytes of the records of each salt, and their counters.
class SessionCounter final : public fs::SegmentVisitor {
 public:
  struct Session {
    std::uint64_t stored_bytes = 0;
    std::set<std::uint32_t> counters;
  };
  std::map<engine::SessionSalt, Session> sessions;
  std::map<engine::SessionSalt, std::uint64_t> ordinals;
  engine::SessionSalt maker = {};

  Result<> record(std::uint64_t, const engine::RecordHeader& header, ByteView bytes) override {
    Session& session = sessions[header.salt];
    session.stored_bytes += bytes.size();
    EXPECT_TRUE(session.counters.insert(header.counter).second) << "a counter was used twice";
    EXPECT_TRUE(ordinals.contains(header.salt)) << "a record of an unknown session";
    EXPECT_LE(ordinals[header.salt], ordinals[maker]) << "a record younger than its segment";
    return {};
  }
  Result<> damage(std::uint64_t offset, std::uint64_t, const Error& error) override {
    ADD_FAILURE() << "at " << offset << ": " << error.message;
    return {};
  }
  void passed(std::uint64_t) override {}
};

class VolumeSessions : public VolumeTest {
 protected:
  VolumeSessions() {
    options_.store.session_size_bytes_max = session_limit;
    options_.store.codec = engine::Codec::none;
    options_.background_compaction = false;
  }

  static std::string content(unsigned seed, std::size_t size) {
    std::mt19937_64 random(seed);
    std::string bytes(size, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    return bytes;
  }

  // The sessions of the volume while it is not mounted.
  std::map<engine::SessionSalt, SessionCounter::Session> count_sessions() {
    SessionCounter counter;
    auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
    NACRE_EXPECT_OK(database);
    if (!database) return {};
    const std::string prefix = metadata::session_key_of({}).substr(0, 8);
    NACRE_EXPECT_OK((*database)->scan(metadata::Table::system, prefix, "",
                                      [&](std::string_view key, std::string_view value) {
                                        const auto row = metadata::decode_session_row(value);
                                        if (!key.starts_with(prefix) || !row) return false;
                                        engine::SessionSalt salt;
                                        std::copy_n(key.begin() + 8, salt.size(), salt.begin());
                                        counter.ordinals[salt] = row->ordinal;
                                        return true;
                                      }));
    const auto names = backing_->list("segments");
    NACRE_EXPECT_OK(names);
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      const auto number = fs::segment_number_of(name);
      const auto file = backing_->open("segments/" + name, metadata::OpenMode::read);
      NACRE_EXPECT_OK(file);
      if (!file || !number) continue;
      const auto header = fs::read_segment_header(**file, test_keys()->volume_id(), *number);
      NACRE_EXPECT_OK(header);
      const auto size = (*file)->size();
      NACRE_EXPECT_OK(size);
      if (!header || !size) continue;
      counter.maker = header->salt;
      const fs::SegmentBounds bounds{
          .file_size = *size, .committed_size = std::nullopt, .anchors = {}};
      NACRE_EXPECT_OK(fs::walk_segment(**file, bounds, counter));
    }
    return counter.sessions;
  }
};

TEST_F(VolumeSessions, a_new_salt_is_drawn_before_the_limit) {
  constexpr unsigned writer_count = 4;
  constexpr std::size_t file_size = 5u << 20;
  std::vector<InodeNumber> files;
  for (unsigned i = 0; i < writer_count; ++i)
    files.push_back(make_file(root, "f" + std::to_string(i)));
  std::vector<std::thread> writers;
  for (unsigned i = 0; i < writer_count; ++i) {
    writers.emplace_back([&, i] {
      const std::string text = content(i, file_size);
      for (std::size_t at = 0; at < file_size; at += 1u << 20)
        write(files[i], at, std::string_view(text).substr(at, 1u << 20));
    });
  }
  for (std::thread& writer : writers)
    writer.join();
  NACRE_EXPECT_OK(volume().sync_all());
  lose_power();

  unmount();
  const auto sessions = count_sessions();
  mount();
  std::uint64_t total = 0;
  for (const auto& [salt, session] : sessions) {
    EXPECT_LE(session.stored_bytes, session_limit);
    total += session.stored_bytes;
  }
  EXPECT_GE(total, std::uint64_t{writer_count} * file_size);
  EXPECT_GE(sessions.size(), total / session_limit + 1);
  for (unsigned i = 0; i < writer_count; ++i)
    EXPECT_TRUE(read(find(root, "f" + std::to_string(i))) == content(i, file_size)) << i;
}

// When power is lost, segments of later sessions exist that no commit names. They are removed,
// since the rows of the sessions were durable before.
TEST_F(VolumeSessions, segments_of_a_later_session_need_no_commit_to_be_known) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(volume().sync_all());
  for (unsigned i = 0; i < 12; ++i)
    write(file, std::uint64_t{i} << 20, content(i, 1u << 20));
  const auto names = backing_->list("segments");
  NACRE_ASSERT_OK(names);
  std::set<engine::SessionSalt> sessions;
  for (const std::string& name : *names) {
    const auto number = fs::segment_number_of(name);
    const auto segment = backing_->open("segments/" + name, metadata::OpenMode::read);
    NACRE_ASSERT_OK(segment);
    ASSERT_TRUE(number);
    // A segment that was just made may have no header yet.
    const auto header = fs::read_segment_header(**segment, test_keys()->volume_id(), *number);
    if (header) sessions.insert(header->salt);
  }
  // At least 8 MiB are sealed by now, since only the rest fits into the budget of dirty bytes.
  EXPECT_GE(sessions.size(), 2u);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    lose_power(seed);
    EXPECT_EQ(stat(find(root, "f")).size, 0u);
  }
}

TEST_F(VolumeSessions, a_disk_that_is_full_at_the_switch_costs_nothing_once_there_is_room) {
  const InodeNumber file = make_file(root, "f");
  const std::string text = content(1, 12u << 20);
  write(file, 0, std::string_view(text).substr(0, 3u << 20));
  NACRE_EXPECT_OK(volume().sync_all());
  backing_->inject({.operations = change_write, .path_part = "db/", .code = ErrorCode::no_space});
  // A write that is refused gets an error, and is repeated afterwards.
  for (std::size_t at = 3u << 20; at < text.size(); at += 1u << 20)
    static_cast<void>(
        volume().write(file, at, as_bytes(std::string_view(text).substr(at, 1u << 20)), {}));
  EXPECT_FALSE(volume().sync_all());
  backing_->clear_failures();
  write(file, 0, text);
  NACRE_EXPECT_OK(volume().sync_all());
  lose_power();
  unmount();
  for (const auto& [salt, session] : count_sessions())
    EXPECT_LE(session.stored_bytes, session_limit);
  mount();
  EXPECT_TRUE(read(find(root, "f")) == text);
}

}  // namespace
}  // namespace nacre::tests
