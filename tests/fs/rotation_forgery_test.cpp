// SPDX-License-Identifier: Apache-2.0
// While keys are rotated somebody has the older ones: a recipient who was removed (AUDIT F1). In
// format 2 nothing that he makes counts from the rotation's beginning on, however long it is
// paused.
#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "fs/check/record_index.h"
#include "fs/store/segment_table.h"
#include "gpu_engine/checksum/crc32.h"
#include "metadata/tables/database.h"
#include "tests/fs/rotation_fixture.h"

namespace nacre::tests {
namespace {

class RotationForgery : public RotationTest {
 protected:
  void SetUp() override {
    make_volume(engine::CipherSuite::aes_256_gcm, metadata::EpochFormat::two);
    auto engine = engine::Engine::create({.thread_count = 1});
    NACRE_ASSERT_OK(engine);
    engine_ = std::move(*engine);
  }

  // A record of the same session, counter, identity and size, with other content.
  Bytes forged(ByteView record, const metadata::KeyTree& keys) {
    return forged(record, keys, *engine::parse_record_header(record), keys);
  }
  // The same with session and counter of another header, under the keys that the forger has.
  Bytes forged(ByteView record, const metadata::KeyTree& keys, const engine::RecordHeader& as,
               const metadata::KeyTree& forgers_keys) {
    const auto header = engine::parse_record_header(record);
    const auto key = keys.session_key(header->epoch, header->salt);
    const auto forgers_key = forgers_keys.session_key(as.epoch, as.salt);
    EXPECT_TRUE(key && forgers_key);
    auto input = engine_->allocate(record.size());
    auto plain = engine_->allocate(chunk_size);
    auto output = engine_->allocate(2 * record.size() + 4096);
    std::copy(record.begin(), record.end(), input->data());
    engine::Payload payload;
    const auto begin = [&](engine::Arena& from, engine::Arena& to) {
      payload.clear();
      payload.input = from.data();
      payload.input_size = from.size();
      payload.output = to.data();
      payload.output_size = to.size();
      payload.volume_id = keys.volume_id();
    };
    begin(*input, *plain);
    payload.messages.push_back({.operation = engine::Operation::unseal,
                                .key_index = payload.add_key((*key)->suite, (*key)->key.view()),
                                .input_size = record.size(),
                                .output_capacity = chunk_size});
    engine_->run(payload);
    if (!payload.results.front().ok) return {};  // a part of a checkpoint is larger than a chunk
    const std::size_t size = payload.results.front().output_size;
    const auto identity = payload.results.front().identity;
    std::fill_n(plain->data(), size, Byte{'X'});
    begin(*plain, *output);
    payload.messages.push_back(
        {.operation = engine::Operation::seal,
         .codec = engine::Codec::none,
         .padding = padding_under_test(),
         .key_index = payload.add_key((*forgers_key)->suite, (*forgers_key)->key.view()),
         .input_size = size,
         .output_capacity = output->size(),
         .epoch = as.epoch,
         .counter = as.counter,
         .salt = as.salt,
         .identity = identity});
    engine_->run(payload);
    EXPECT_TRUE(payload.results.front().ok);
    const ByteView made(output->data(), payload.results.front().output_size);
    return {made.begin(), made.end()};
  }

  // Of the records of that epoch for which it can be done those of whose places in their segment
  // is_chosen is true; how many.
  unsigned forge_records(
      MemoryBacking& disk, const metadata::KeyTree& keys, std::uint32_t epoch,
      const std::function<bool(unsigned)>& is_chosen = [](unsigned) { return true; }) {
    return replace_records(disk, epoch, is_chosen,
                           [&](ByteView record) { return forged(record, keys); });
  }
  unsigned replace_records(MemoryBacking& disk, std::uint32_t epoch,
                           const std::function<bool(unsigned)>& is_chosen,
                           const std::function<Bytes(ByteView)>& make) {
    unsigned count = 0;
    for (const std::string& path : disk.files()) {
      if (!path.starts_with("segments/")) continue;
      Bytes bytes = disk.load(path).value();
      unsigned place = 0;
      for (std::size_t at = metadata::segment_header_size_bytes; at < bytes.size(); ++place) {
        const auto header = engine::parse_record_header(ByteView(bytes).subspan(at));
        if (!header) break;
        const ByteView record = ByteView(bytes).subspan(at, header->stored_size);
        if (header->epoch == epoch && is_chosen(place)) {
          const Bytes made = make(record);
          if (made.size() == record.size()) {
            std::copy(made.begin(), made.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
            ++count;
          }
        }
        at += header->stored_size;
      }
      disk.store(path, bytes);
    }
    return count;
  }

  struct Place {
    std::string path;
    std::size_t offset = 0;
    bool is_named = false;  // by a row
  };
  // Of all records, in order.
  std::vector<Place> places_of_records(const std::shared_ptr<MemoryBacking>& disk) {
    std::vector<Place> places;
    const auto keys = unlock(*disk);
    EXPECT_TRUE(keys);
    std::set<std::pair<std::string, std::uint64_t>> named;
    const auto database = metadata::Database::open(disk, keys->keys, {.read_only = true});
    EXPECT_TRUE(database);
    EXPECT_TRUE(fs::scan_records(**database, [&](const fs::NamedRecord& record) {
      named.emplace(fs::segment_path(record.location.segment), record.location.offset);
    }));
    for (const std::string& path : disk->files()) {
      if (!path.starts_with("segments/")) continue;
      const Bytes bytes = disk->load(path).value();
      for (std::size_t at = metadata::segment_header_size_bytes; at < bytes.size();) {
        const auto header = engine::parse_record_header(ByteView(bytes).subspan(at));
        if (!header) break;
        places.push_back({.path = path, .offset = at, .is_named = named.contains({path, at})});
        at += header->stored_size;
      }
    }
    return places;
  }

  // Changes the header of the record there, and puts its CRC right.
  static void change_header(MemoryBacking& disk, const Place& place,
                            const std::function<void(engine::RecordHeader&, std::size_t)>& change) {
    Bytes bytes = disk.load(place.path).value();
    const MutableByteView rest = MutableByteView(bytes).subspan(place.offset);
    auto header = *engine::parse_record_header(rest);
    change(header, rest.size());
    store_le(rest.data(), header);
    const ByteView record = rest.first(header.stored_size);
    header.crc32 =
        engine::crc32(engine::crc32(0, record.first(engine::record_aad_header_size_bytes)),
                      record.subspan(engine::record_header_size_bytes));
    store_le(rest.data(), header);
    EXPECT_TRUE(engine::verify_record_crc(record));
    disk.store(place.path, bytes);
  }

  static unsigned count_digests_of(metadata::Database& database) {
    unsigned count = 0;
    EXPECT_TRUE(database.scan(metadata::Table::system, "genuine", "genuinf",
                              [&](std::string_view, std::string_view) { return ++count > 0; }));
    return count;
  }
  // Of the volume, which is closed.
  unsigned count_digests() {
    const auto keys = unlock(*backing_);
    EXPECT_TRUE(keys);
    const auto database = metadata::Database::open(backing_, keys->keys, {.read_only = true});
    EXPECT_TRUE(database);
    return database ? count_digests_of(**database) : 0;
  }

  // In how many files some byte is neither right nor refused, and in how many some are refused.
  struct Reading {
    unsigned forged = 0;
    unsigned refused = 0;
  };
  Reading read_all() {
    Reading reading;
    for (const auto& [name, content] : contents_) {
      const auto file = volume_->lookup(root, name);
      if (!file) continue;
      bool is_forged = false;
      bool is_refused = false;
      for (std::uint64_t at = 0; at < content.size(); at += chunk_size) {
        Bytes bytes(std::min<std::size_t>(chunk_size, content.size() - at));
        const auto got = volume_->read(file->inode, at, bytes);
        is_refused = is_refused || !got;
        if (got) is_forged = is_forged || as_text(bytes) != content.substr(at, bytes.size());
      }
      volume_->forget(file->inode, 1);
      reading.forged += is_forged;
      reading.refused += is_refused;
    }
    return reading;
  }

  std::unique_ptr<engine::Engine> engine_;
};

TEST_F(RotationForgery, of_records_is_nobodys_business_while_the_keys_count) {
  open();
  fill(9);
  close();
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);

  // Who has the keys of today forges what he likes: so this is how it is done.
  const auto today = backing_->process_kill();
  ASSERT_GT(forge_records(*today, *old_keys->keys, 1), 20u);
  NACRE_ASSERT_OK(try_open(today));
  EXPECT_GT(read_all().forged, 5u);
  abandon();
}

TEST_F(RotationForgery, of_records_while_a_rotation_is_paused_is_tampering) {
  open();
  fill(9);
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);
  NACRE_ASSERT_OK(rotation_->begin({}));
  write("during", 5, 4);  // under the new key
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const auto genuine = backing_->process_kill();
  ASSERT_GT(forge_records(*backing_, *old_keys->keys, 1), 20u);

  open();
  Reading reading = read_all();
  EXPECT_EQ(reading.forged, 0u);
  EXPECT_GT(reading.refused, 5u);
  const auto rotated = rotation_->run({});
  ASSERT_FALSE(rotated);
  EXPECT_EQ(to_string(rotated.error().code), to_string(ErrorCode::corrupt));
  reading = read_all();
  EXPECT_EQ(reading.forged, 0u);
  EXPECT_GT(reading.refused, 5u);
  close();

  // Nothing was forged: the rotation comes to its end.
  NACRE_ASSERT_OK(try_open(genuine));
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// Each forgery stands behind a genuine record of the same session: what is found out about the
// session must not stand for the record.
TEST_F(RotationForgery, of_every_second_record_is_tampering) {
  open();
  fill(9);
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);
  NACRE_ASSERT_OK(rotation_->begin({}));
  close();
  ASSERT_GT(
      forge_records(*backing_, *old_keys->keys, 1, [](unsigned place) { return place % 2 == 1; }),
      10u);
  open();
  const Reading before = read_all();
  EXPECT_EQ(before.forged, 0u);
  EXPECT_GT(before.refused, 5u);
  const auto rotated = rotation_->run({});
  EXPECT_FALSE(rotated);
  const Reading after = read_all();
  EXPECT_EQ(after.forged, 0u);
  EXPECT_EQ(after.refused, before.refused);
}

// The end of a rotation is cut off when everything is sealed anew, but the older keys are still in
// the keyring: the storage refuses the last one. Records under the older keys must not count then
// in the places of new ones.
TEST_F(RotationForgery, of_records_before_the_last_keyring_is_tampering) {
  open();
  fill(9);
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);
  const auto paths = backing_->files();
  const auto path = std::find_if(paths.begin(), paths.end(), [](const std::string& each) {
    return each.starts_with("segments/");
  });
  ASSERT_NE(path, paths.end());
  const Bytes old_segment = backing_->load(*path).value();
  const auto old_header = engine::parse_record_header(
      ByteView(old_segment).subspan(metadata::segment_header_size_bytes));
  ASSERT_TRUE(old_header);
  NACRE_ASSERT_OK(rotation_->begin({}));
  backing_->inject({.operations = change_create, .path_part = "keyring.new"});
  ASSERT_FALSE(rotation_->run({}));
  backing_->clear_failures();
  EXPECT_TRUE(holds_everything());
  close();
  const auto new_keys = unlock(*backing_);
  NACRE_ASSERT_OK(new_keys);
  ASSERT_EQ(new_keys->keyring.epochs.size(), 2u);

  const auto undamaged = backing_->process_kill();
  engine::RecordHeader as = *old_header;
  as.counter = 1u << 20;
  const unsigned count = replace_records(
      *backing_, 2, [](unsigned) { return true; },
      [&](ByteView record) {
        ++as.counter;
        return forged(record, *new_keys->keys, as, *old_keys->keys);
      });
  ASSERT_GT(count, 20u);
  open();
  const Reading reading = read_all();
  EXPECT_EQ(reading.forged, 0u);
  EXPECT_GT(reading.refused, 5u);
  close();

  NACRE_ASSERT_OK(try_open(undamaged));
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
  EXPECT_EQ(count_digests(), 0u);
}

// Power is lost when the last keyring is durable, and the digests are not gone yet.
TEST_F(RotationForgery, digests_left_behind_the_last_keyring_go_at_the_next_opening) {
  open();
  fill(6);
  NACRE_ASSERT_OK(rotation_->begin({}));
  // The commit that erases them is the first write to the log behind the keyring's last copy.
  std::shared_ptr<MemoryBacking> left;
  backing_->watch([&](std::uint32_t operation, std::string_view path) {
    if (!left && operation == change_rename && path.find("keyring.copy") != path.npos) {
      left = backing_->process_kill();
    }
  });
  NACRE_ASSERT_OK(rotation_->run({}));
  backing_->watch({});
  close();
  ASSERT_TRUE(left);
  EXPECT_EQ(count_digests(), 0u);

  NACRE_ASSERT_OK(try_open(left));
  rotation_->start();
  for (int i = 0; i < 500 && count_digests_of(volume_.mounted().database()) > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(holds_everything());
  close();
  EXPECT_EQ(count_digests(), 0u);
  expect_rotated(2);
}

// What looks like a record, with a right CRC, in the place of a dead one, and reaches over all that
// lie behind it. It takes no key to make that, no row names it, and all records behind it are as
// they were.
TEST_F(RotationForgery, a_dead_record_that_reaches_over_live_ones_costs_none_of_them) {
  open();
  fill(9);
  write("f1", 78, 4);  // what it held is dead, and others follow that
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const auto places = places_of_records(backing_);
  const auto dead = std::find_if(places.begin(), places.end(),
                                 [](const Place& place) { return !place.is_named; });
  ASSERT_NE(dead, places.end());
  ASSERT_TRUE(std::any_of(dead, places.end(), [&](const Place& place) {
    return place.path == dead->path && place.is_named;
  }));
  change_header(*backing_, *dead, [](engine::RecordHeader& header, std::size_t rest) {
    header.stored_size = static_cast<std::uint32_t>(rest);
  });
  const auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  // The check tells it from damage of what counts.
  const auto report =
      fs::check_volume(backing_, *keys, *engine_, {.scrub = true, .deep = true}, {});
  NACRE_ASSERT_OK(report);
  for (const auto& finding : report->findings.findings()) {
    if (finding.severity != fs::Severity::error) continue;
    EXPECT_NE(finding.what.find("no file uses them"), std::string::npos) << finding.what;
  }
  open();
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_TRUE(holds_everything());
  NACRE_EXPECT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// The digest of a record stands under its salt and counter, which anybody can write elsewhere.
TEST_F(RotationForgery, a_dead_record_under_the_name_of_a_live_one_costs_it_nothing) {
  open();
  fill(9);
  write("f8", 84, 6);
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const auto places = places_of_records(backing_);
  ASSERT_TRUE(places.front().is_named);
  const auto dead = std::find_if(places.begin(), places.end(),
                                 [](const Place& place) { return !place.is_named; });
  ASSERT_NE(dead, places.end());
  const Bytes bytes = backing_->load(places.front().path).value();
  const auto live = *engine::parse_record_header(ByteView(bytes).subspan(places.front().offset));
  change_header(*backing_, *dead, [&](engine::RecordHeader& header, std::size_t) {
    header.salt = live.salt;
    header.counter = live.counter;
  });
  open();
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_TRUE(holds_everything());
  NACRE_EXPECT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationForgery, leaves_no_digest_when_the_rotation_ends) {
  open();
  fill(6);
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  close();
  EXPECT_EQ(count_digests(), 0u);
}

// The superblock says so before the keyring does, and a crash may come between.
TEST_F(RotationTest, the_next_one_makes_the_move_that_was_cut_off_before_its_keyring) {
  make_volume(engine::CipherSuite::aes_256_gcm, metadata::EpochFormat::one);
  open();
  fill(3);
  close();
  auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  keys->superblock.has_format_2 = true;
  ++keys->superblock.generation;
  NACRE_ASSERT_OK(metadata::save_superblock(*backing_, keys->superblock, *keys->keys));
  open();
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_EQ(rotation_->format(), metadata::EpochFormat::two);
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationTest, moves_a_volume_to_format_2) {
  make_volume(engine::CipherSuite::aes_256_gcm, metadata::EpochFormat::one);
  open();
  fill(9);
  NACRE_ASSERT_OK(rotation_->begin({.to_format_2 = true}));
  write("during", 8, 5);
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
  auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  EXPECT_TRUE(keys->superblock.has_format_2);
  EXPECT_EQ(keys->keyring.epochs.back().format, metadata::EpochFormat::two);
  open();
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  close();
  expect_rotated(3);
  keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  EXPECT_EQ(keys->keyring.epochs.back().format, metadata::EpochFormat::two);
}

}  // namespace
}  // namespace nacre::tests
