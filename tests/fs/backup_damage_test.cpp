// SPDX-License-Identifier: Apache-2.0
// Backups that an attacker cut or forged in part: what the next run does with one, and what opening
// it does.
#include <algorithm>

#include "fs/backup/backup_target.h"
#include "metadata/sealed_fs/frame_layout.h"
#include "metadata/text/text_bytes.h"
#include "tests/fs/backup_fixture.h"
#include "tests/support/error_of.h"

namespace nacre::tests {
namespace {

// The file that lists the states in a backup folder is not authenticated. So it counts only if it
// is whole; otherwise the run is refused, and the folder stays as it is.
TEST_F(BackupTest, whose_note_of_its_states_is_cut_or_forged_is_refused_and_stays_as_it_is) {
  work(10);
  back_up();
  const Tree before = tree_;
  work(10);
  const auto what = begin();
  const Bytes note = *target_->load("backup");
  const auto expect_refused = [&](ByteView forged, ErrorCode code, std::string_view words) {
    SCOPED_TRACE(as_text(forged.first(std::min<std::size_t>(forged.size(), 400))));
    const auto target = target_->process_kill();
    target->store("backup", forged);
    const auto refused = copy(what, *target);
    ASSERT_FALSE(refused);
    EXPECT_EQ(to_string(refused.error().code), to_string(code)) << refused.error().message;
    EXPECT_NE(refused.error().message.find(words), std::string::npos) << refused.error().message;
    EXPECT_EQ(target->change_count(), 0u);
    expect_volume(target, before);
  };
  const std::string damaged = "the file 'backup' in this folder is damaged";
  for (std::size_t size = 0; size < note.size() - 1; size += 1 + size / 40)  // the last is "\n"
    expect_refused(ByteView(note).first(size), ErrorCode::corrupt, damaged);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text(as_text(note));
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return Bytes(text.begin(), text.end());
  };
  expect_refused(with("\"version\": 1", "\"version\": 2"), ErrorCode::corrupt, damaged);
  expect_refused(with("\"current\": [", "\"current\": [7,"), ErrorCode::corrupt, damaged);
  expect_refused(Bytes(60'000, static_cast<Byte>('[')), ErrorCode::corrupt, damaged);
  const std::string header = metadata::to_hex(fs::header_of(*target_->load("db/CURRENT")));
  expect_refused(with(header, std::string(header.size(), '0')), ErrorCode::exists,
                 "was mounted for writing since");
  const auto keys = metadata::open_volume_keys(*target_, metadata::VolumeSecret(identity(0)));
  NACRE_ASSERT_OK(keys);
  const std::string id = metadata::to_hex(keys->keys->volume_id());
  expect_refused(with("\"volume_id\": \"" + id, "\"volume_id\": \"" + std::string(id.size(), '0')),
                 ErrorCode::exists, "of another volume");
  target_->erase("backup");
  const auto refused = copy(what, *target_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("is no backup"), std::string::npos)
      << refused.error().message;
  expect_volume(target_, before);
}

// All rows of a finished backup are in tables, which only its manifest knows.
TEST_F(BackupTest, whose_manifest_is_cut_short_is_refused_by_name_and_mended_by_the_next_run) {
  work(30);
  back_up();
  work(30);
  back_up();
  const Tree then = tree_;
  const auto keys = metadata::open_volume_keys(*target_, metadata::VolumeSecret(identity(0)));
  NACRE_ASSERT_OK(keys);
  const auto engine = engine::Engine::create({.thread_count = 2});
  NACRE_ASSERT_OK(engine);
  const auto what = begin();
  const auto files = target_->files();
  const auto path = std::find_if(files.begin(), files.end(), [](const std::string& file) {
    return file.starts_with("db/MANIFEST-");
  });
  ASSERT_NE(path, files.end());
  const Bytes sound = *target_->load(*path);
  std::uint64_t cut_count = 0;
  for (std::size_t at = metadata::find_frame_magic(sound, 0); at < sound.size();
       at = metadata::find_frame_magic(sound, at + 1)) {
    for (const std::size_t size : {at, at + 20}) {
      SCOPED_TRACE(fmt::format("{} of {} bytes cut to {}", *path, sound.size(), size));
      const auto cut = target_->process_kill();
      cut->store(*path, ByteView(sound).first(size));
      const auto report =
          fs::check_volume(cut->process_kill(), *keys, **engine, {.deep = true}, {});
      NACRE_ASSERT_OK(report);
      EXPECT_NE(report->findings.error_count(), 0u);
      for (const bool read_only : {true, false}) {
        const auto refused = open(cut->process_kill(), read_only);
        ASSERT_FALSE(refused) << "not noticed";
        EXPECT_EQ(to_string(refused.error().code), to_string(ErrorCode::corrupt));
        EXPECT_NE(refused.error().message.find(*path), std::string::npos)
            << refused.error().message;
      }
      NACRE_EXPECT_OK(copy(what, *cut));
      expect_volume(cut, then);
      ++cut_count;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(cut_count, 4u);
}

}  // namespace
}  // namespace nacre::tests
