// SPDX-License-Identifier: Apache-2.0
// nacre dump segment, nacre dump record.
#include <cstdio>
#include <memory>

#include "fs/check/deep_check.h"
#include "fs/store/record_batch.h"
#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"
#include "gpu_engine/base/limits.h"
#include "gpu_engine/engine.h"
#include "metadata/format/rows.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/dump.h"

namespace nacre::tools {

namespace {

void print_header(const engine::RecordHeader& header) {
  print_safely("stored {:>8}  epoch {}  salt {}  counter {}", header.stored_size, header.epoch,
               hex(header.salt), header.counter);
}

class Printer final : public fs::SegmentVisitor {
 public:
  Result<> record(std::uint64_t offset, const engine::RecordHeader& header, ByteView) override {
    print_safely("{:>12}  ", offset);
    print_header(header);
    print_safely("\n");
    return {};
  }
  Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    print_safely("{:>12}  DAMAGED for {} bytes: {}\n", offset, size, error.message);
    return {};
  }
  void passed(std::uint64_t) override {}
};

Result<std::unique_ptr<metadata::BackingFile>> open_segment(const VolumePlace& place,
                                                            std::uint64_t number) {
  return place.directory->open(fs::segment_path(metadata::SegmentNumber{number}),
                               metadata::OpenMode::read);
}

struct Opened {
  engine::MessageResult result;
  Bytes plain;
};
Result<Opened> unseal(ByteView record, const engine::RecordHeader& header,
                      const metadata::KeyTree& keys) {
  NACRE_ASSIGN(const auto key, keys.session_key(header.epoch, header.salt));
  NACRE_ASSIGN(const auto engine,
               engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 1}));
  Opened opened{.plain = Bytes(chunk_size_bytes_max)};
  engine::Payload payload;
  payload.input = record.data();
  payload.input_size = record.size();
  payload.output = opened.plain.data();
  payload.output_size = opened.plain.size();
  payload.volume_id = keys.volume_id();
  fs::add_unseal(payload, *key,
                 {.input_size = record.size(), .output_capacity = opened.plain.size()});
  engine->run(payload);
  opened.result = payload.results.front();
  if (!opened.result.ok) return fail(opened.result.error, opened.result.detail);
  opened.plain.resize(opened.result.output_size);
  return opened;
}

}  // namespace

Result<> dump_segment(const DumpArguments& arguments) {
  NACRE_ASSIGN(const auto place, open_place(arguments.volume));
  NACRE_ASSIGN(const auto file, open_segment(place, arguments.segment));
  NACRE_ASSIGN(const auto size, file->size());
  const auto header =
      fs::read_segment_header(*file, std::nullopt, metadata::SegmentNumber{arguments.segment});
  if (header) {
    print_safely("segment {} of volume {}, epoch {}, write session {}, {} bytes\n",
                 header->segment.value, hex(header->volume_id), header->epoch, hex(header->salt),
                 size);
  } else {
    print_safely("header: {}; {} bytes\n", header.error().message, size);
  }
  Printer printer;
  NACRE_ASSIGN(const auto end, fs::walk_segment(*file, {.file_size = size}, printer));
  if (end < size) print_safely("{:>12}  unverified tail of {} bytes\n", end, size - end);
  return {};
}

Result<> dump_record(const DumpArguments& arguments) {
  const bool with_key = arguments.secret.names_passphrase() || !arguments.secret.identity.empty();
  if (arguments.content && !with_key) {
    return fail(ErrorCode::invalid_argument,
                "--content needs a key: give --passphrase-file or --identity");
  }
  NACRE_ASSIGN(const auto place,
               with_key ? find_volume(arguments.volume) : open_place(arguments.volume));
  NACRE_ASSIGN(const auto file, open_segment(place, arguments.segment));
  Bytes bytes(2 * chunk_size_bytes_max);
  NACRE_ASSIGN(const auto got, file->read(arguments.offset, bytes));
  bytes.resize(got);
  NACRE_ASSIGN(const auto header, engine::parse_record_header(bytes));
  bytes.resize(header.stored_size);
  const auto checked = engine::verify_record_crc(bytes);
  if (!arguments.content) {
    print_header(header);
    print_safely("\ncrc {:08x}: {}\n", header.crc32, checked ? "right" : checked.error().message);
  }
  if (!checked) return tl::unexpected(checked.error());
  if (!with_key) return {};

  NACRE_ASSIGN(const auto secret, read_secret(arguments.secret, place.path));
  NACRE_ASSIGN(const auto volume, unlock(place, secret, arguments.secret));
  NACRE_ASSIGN(const auto opened, unseal(bytes, header, *volume.keys));
  if (arguments.content) {
    const auto written = std::fwrite(opened.plain.data(), 1, opened.plain.size(), stdout);
    if (written != opened.plain.size() || std::fflush(stdout) != 0) {
      return fail(ErrorCode::io, "standard output takes no more");
    }
    return {};
  }
  NACRE_ASSIGN(const auto name, metadata::decode_record_name(opened.result.identity));
  print_safely("authentic: {}, version {:#x}\n", fs::describe(name), name.version.value);
  print_safely("codec {}, {} plain bytes\n", engine::to_string(opened.result.codec),
               opened.result.output_size);
  return {};
}

}  // namespace nacre::tools
