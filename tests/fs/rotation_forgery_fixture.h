// SPDX-License-Identifier: Apache-2.0
// An attacker with the keys of a volume in format 2 who can write to its folder: the fixture forges
// records, and reads what the volume then says.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "fs/check/record_index.h"
#include "fs/store/segment_table.h"
#include "gpu_engine/checksum/crc32.h"
#include "metadata/tables/database.h"
#include "tests/fs/rotation_fixture.h"

namespace nacre::tests {

class RotationForgery : public RotationTest {
 protected:
  void SetUp() override {
    make_volume(engine::CipherSuite::aes_256_gcm, metadata::EpochFormat::two);
    auto engine = engine::Engine::create({.thread_count = 1});
    NACRE_ASSERT_OK(engine);
    engine_ = std::move(*engine);
  }

  // Makes a record with the same session, counter, identity and size, and with other content.
  Bytes forged(ByteView record, const metadata::KeyTree& keys) {
    return forged(record, keys, *engine::parse_record_header(record), keys);
  }
  // The same with the session and counter of another header, under the forger's keys.
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

  // Forges records of that epoch, as far as a record can be forged, for whose places in their
  // segment is_chosen is true. Returns how many were forged.
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
  // The places of all records, in order.
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
  // The number of digests in the volume, which is closed.
  unsigned count_digests() {
    const auto keys = unlock(*backing_);
    EXPECT_TRUE(keys);
    const auto database = metadata::Database::open(backing_, keys->keys, {.read_only = true});
    EXPECT_TRUE(database);
    return database ? count_digests_of(**database) : 0;
  }

  // Counts of files: those with bytes that are neither right nor refused, and those with bytes that
  // are refused.
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

}  // namespace nacre::tests
