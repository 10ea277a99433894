// SPDX-License-Identifier: Apache-2.0
// Sound inputs for the harnesses of the volume's formats, which seeded_main.cpp then damages.
#pragma once

#include <string>

#include "gpu_engine/record/record.h"
#include "metadata/format/checkpoint.h"
#include "metadata/format/rows.h"
#include "metadata/format/scrub_row.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::fuzz {

using engine::TestRandom;

inline void append(Bytes& input, ByteView bytes) {
  for (const Byte byte : bytes)
    input.push_back(byte);
}
inline Bytes input_of(Byte first, std::string_view rest) {
  Bytes input = {first};
  append(input, as_bytes(rest));
  return input;
}
inline std::string text_of_noise(TestRandom& random, std::size_t size_max) {
  const Bytes bytes = random.bytes(random.below(size_max + 1));
  return std::string(as_text(bytes));
}

inline metadata::ChunkRow make_chunk_row(TestRandom& random) {
  using namespace metadata;
  const RecordLocation place{{1 + random.below(99)}, random.next() >> 20, 500};
  const RecordVersion version{random.below(9) << record_version_session_shift | random.below(999)};
  ChunkRow row{.base = ChunkBase{place, version, 4096, 4000}, .patches = {}, .lost = {}};
  for (std::size_t i = 0; i < random.below(4); ++i) {
    row.patches.push_back({.offset = static_cast<std::uint32_t>(100 * i),
                           .plain_size = 60,
                           .valid_size = 50,
                           .version = version,
                           .location = i % 2 == 0 ? std::optional(place) : std::nullopt});
  }
  if (random.below(2) == 0) row.lost = {{0, 10}, {20, 5}};
  return row;
}

inline Bytes make_rows(TestRandom& random) {
  using namespace metadata;
  const auto kind = static_cast<Byte>(random.below(12));
  const InodeNumber inode{1 + random.below(1000)};
  const CheckpointPlace place{{{3}, 64, 900}, {77}, 800};
  switch (kind) {
    case 0:
      return input_of(kind, encode(InodeRow{.mode = 0100644,
                                            .size = random.next() >> 10,
                                            .modified = {1700000000, 5},
                                            .symlink_target = text_of_noise(random, 50)}));
    case 1:
      return input_of(kind, encode(DentryRow{inode, 8}));
    case 2:
      return input_of(kind, random.below(3) == 0 ? encode(HoleRow{1 + random.below(99)})
                                                 : encode(make_chunk_row(random)));
    case 3:
      return input_of(kind, encode(SegmentRow{1000, 900, 1, {}}));
    case 4:
      return input_of(kind, encode(SessionRow{3, 1, 1700000000}));
    case 5:
      return input_of(kind, encode(RotationRow{true, false, 5, random.next()}));
    case 6:
      return input_of(kind, encode_u64(random.next()));
    case 7:
      return input_of(
          kind, encode(ScrubRow{
                    .state = ScrubState::running,
                    .error = "an error",
                    .places = {{.file = "segments/1.seg", .what = "rot", .paths = {"/a", "/b"}}}}));
    case 8:
      return input_of(kind, encode(CheckpointRow{1, place, {place, place}}));
    case 9:
      return input_of(kind, encode(CheckpointRoot{.written_seconds = 1700000000,
                                                  .settled = {5},
                                                  .row_counts = {1, 2, 3},
                                                  .stream_size = 100,
                                                  .parts = {{{7}, 100}}}));
    case 10:
      switch (random.below(4)) {
        case 0:
          return input_of(kind, dentry_key(inode, 7, text_of_noise(random, 30) + "n"));
        case 1:
          return input_of(kind, chunk_key(inode, {random.next()}));
        case 2:
          return input_of(kind, inlined_key(inode, {5}, {9}, 100));
        default:
          return input_of(kind, checkpoint_key({random.next()}));
      }
    default:
      return input_of(kind,
                      as_text(encode(RecordName{.inode = inode, .chunk = {1}, .version = {2}})));
  }
}

// An owner, named users, a group, named groups, a mask, others: as the kernel sorts them.
inline Bytes make_acl(TestRandom& random) {
  Bytes input = random.bytes(2);  // the mode
  append(input, Bytes{2, 0, 0, 0});
  const std::size_t users = random.below(4), groups = random.below(4);
  const auto entry = [&](Byte tag, bool is_named) {
    append(input, Bytes{tag, 0, static_cast<Byte>(random.below(8)), 0});
    append(input, is_named ? random.bytes(4) : Bytes(4, Byte{0xff}));
  };
  entry(0x01, false);
  for (std::size_t i = 0; i < users; ++i)
    entry(0x02, true);
  entry(0x04, false);
  for (std::size_t i = 0; i < groups; ++i)
    entry(0x08, true);
  if (users + groups != 0 || random.below(2) == 0) entry(0x10, false);
  entry(0x20, false);
  return input;
}

inline Bytes make_checkpoint(TestRandom& random) {
  std::string stream;
  Bytes input(8);
  for (char section = 1; section <= 7; ++section) {
    stream += section;
    const std::uint64_t count = random.below(4);
    input[static_cast<std::size_t>(section - 1)] = static_cast<Byte>(count);
    for (std::uint64_t row = 0; row < count; ++row) {
      // The first key as a whole, each next one differs from it in its last byte.
      stream += row == 0 ? std::string({'\0', '\2', 'k', '0'})
                         : std::string({'\1', '\1', static_cast<char>('0' + row)});
      stream += std::string({'\3', 'a', 'b', 'c'});
    }
    stream += std::string(2, '\0');
  }
  stream += '\0';
  input[7] = static_cast<Byte>(random.below(3));
  const ByteView bytes = as_bytes(stream);
  append(input, bytes);
  return input;
}

inline Bytes make_document_patch(TestRandom& random) {
  static constexpr std::string_view patches[] = {
      R"({"label":"other","level":9,"codec":"zstd","padding":"padme"})",
      R"({"features":{"compatible":["a"],"read_only_compatible":["b"]},"generation":7})",
      R"({"chunk_size_bytes":4096,"cipher":"aes-128-ctr"})",
      R"({"epochs":[{"cipher":"aes-256-gcm","number":2,"wrapped_key":"AAAA"}]})",
      R"({"recipients":[{"kind":"rsa","label":"","created":"2026-01-31T23:59:59Z"}]})",
      R"({"version":2})",
      R"({"recipients":null})",
  };
  return input_of(1, patches[random.below(std::size(patches))]);
}

inline Bytes make_body(TestRandom& random) {
  const Bytes plain = engine::make_data(engine::data_kinds[random.below(engine::data_kinds.size())],
                                        random.below(3000), random);
  const auto codec = static_cast<engine::Codec>(random.below(7));
  Bytes stream(engine::stream_size_bound(codec, plain.size()));
  if (codec == engine::Codec::none) {
    stream = plain;
  } else {
    stream.resize(engine::compress(codec, 1, plain, stream).value());
  }
  Bytes input(3 + 44);
  input[0] = static_cast<Byte>(1 + random.below(11));
  store_le(&input[1], static_cast<std::uint16_t>(plain.size() + random.below(2)));
  input[3] = static_cast<Byte>(codec);
  store_le(&input[3 + 4], static_cast<std::uint32_t>(plain.size()));
  store_le(&input[3 + 8], static_cast<std::uint32_t>(stream.size()));
  append(input, stream);
  return input;
}

inline Bytes make_database_file(TestRandom& random) {
  Bytes input = {static_cast<Byte>(random.next())};
  for (std::uint64_t i = 0; i < 1 + random.below(6); ++i) {
    Bytes content = random.bytes(random.below(60));
    const Bytes fields = {0, static_cast<Byte>(random.below(4)), static_cast<Byte>(random.below(4)),
                          static_cast<Byte>(content.size())};
    append(input, fields);
    append(input, content);
  }
  return input;
}

inline Bytes make_segment(TestRandom& random) {
  metadata::SegmentHeader header;
  header.segment = {1 + random.below(9)};
  header.epoch = 1;
  Bytes input = random.bytes(5);
  append(input, metadata::encode(header));
  for (std::uint64_t i = 0; i < random.below(8); ++i) {
    const Bytes content = random.bytes(random.below(random.below(8) == 0 ? 9000 : 300));
    input.push_back(static_cast<Byte>(random.below(6) == 0 ? random.below(4) : 1));
    input.resize(input.size() + 2);
    store_le(&input[input.size() - 2], static_cast<std::uint16_t>(content.size()));
    append(input, content);
  }
  return input;
}

inline Bytes make_repair_plan(TestRandom& random) {
  static constexpr std::string_view lines[] = {
      R"({"step":"row","table":"inodes","key":"0001","before":null,"after":"00ff","why":"w",)"
      R"("inode":3,"paths":["/a"]})",
      R"({"step":"bytes","path":"segments/1","offset":64,"before":"00","after":"01",)"
      R"("why":"","paths":[]})",
      R"({"step":"file","path":"keyring","before":null,"after":"7b7d","why":"w","paths":[]})",
      R"({"step":"database","folder":"db.new","before":"00","after":"","why":"w","paths":[]})",
      R"({"lost":{"inode":3,"offset":0,"size":9,"verdict":"rot","why":"w","dropped":true,)"
      R"("paths":["/b"]}})",
  };
  std::array<std::uint64_t, 2> counts = {};
  std::string text;
  for (std::uint64_t i = 0; i < random.below(5); ++i) {
    const std::uint64_t which = random.below(std::size(lines));
    text += std::string(lines[which]) + "\n";
    ++counts.at(which == 4 ? 1 : 0);
  }
  const auto kind = static_cast<Byte>(random.below(4));
  const std::string head =
      R"({"format":"nacre repair plan","version":1,"volume_id":"01020300000000000000000000000000",)"
      R"("created":"2026-01-31T23:59:59Z","next_session":5,"step_count":)" +
      std::to_string(counts[0]) + R"(,"lost_count":)" + std::to_string(counts[1]) + "}\n";
  const std::string damage = kind < 3 ? "" : std::string(as_text(random.bytes(3)));
  return input_of(kind, damage + head + text);
}

inline Bytes make_control(TestRandom& random) {
  static constexpr std::string_view requests[] = {
      R"({"command":"info"})",
      R"({"command":"stats"})",
      R"({"command":"sync"})",
      R"({"command":"trim"})",
      R"({"command":"backup"})",
      R"({"command":"rotation"})",
      R"({"command":"scrub","action":"begin","rate_bytes_per_second":5})",
      "{\"command\":\"replace_keyring\"}\n{\"keyring\":\"text\"}",
  };
  static constexpr std::string_view replies[] = {
      R"({"ok":true,"pid":5,"scrub":{"state":"none"}})",
      R"({"ok":false,"error":{"code":"busy","message":"why"}})",
      "{\"ok\":true,\"backup\":{\"current\":[1,2],\"file_count\":2}}\n"
      "{\"ok\":true,\"files\":[[\"a\",1],[\"b\",2]]}\n"
      R"({"ok":false,"error":{"code":"no_space","message":"full"}})",
  };
  static constexpr std::string_view options =
      R"({"cipher":"aes-256-gcm","codec":"zstd","level":3,"rate":1000})";
  const std::uint64_t kind = random.below(4);
  const std::string_view line = kind < 2    ? requests[random.below(std::size(requests))]
                                : kind == 2 ? replies[random.below(std::size(replies))]
                                            : options;
  Bytes input = {static_cast<Byte>(kind), static_cast<Byte>(random.next())};
  append(input, as_bytes(line));
  input.push_back('\n');
  return input;
}

}  // namespace nacre::fuzz
