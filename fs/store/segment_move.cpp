// SPDX-License-Identifier: Apache-2.0
// The moves of compaction and rotation: which segment is emptied, what its records are, and how
// they are appended.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fs/store/record_batch.h"
#include "fs/store/segment_store_impl.h"

namespace nacre::fs {

Result<std::optional<Victim>> SegmentStoreImpl::victim_of(SharedSegment segment) {
  if (options_.read_only || !segment) return std::nullopt;
  NACRE_ASSIGN(auto file, table_.file(*segment));
  return Victim{.segment = segment,
                .number = segment->number,
                .size = segment->size,
                .file = std::move(file)};
}

void SegmentStoreImpl::note_compacted(const Victim& victim, bool immovable) {
  victim.segment->live_bytes_left = victim.segment->live_bytes.load();
  if (immovable) victim.segment->immovable = true;
}

Result<std::optional<Victim>> SegmentStoreImpl::find_outdated() {
  return victim_of(table_.find_outdated(keys_->current_epoch_number()));
}

OutdatedSegments SegmentStoreImpl::outdated() const {
  return table_.outdated(keys_->current_epoch_number());
}

PreparedMove SegmentStoreImpl::prepare_move(std::span<const ByteView> records) {
  const std::uint32_t epoch = session_epoch();
  const bool is_current = std::all_of(records.begin(), records.end(), [&](ByteView record) {
    const auto header = engine::parse_record_header(record);
    return header && header->epoch == epoch;
  });
  if (is_current) {
    return {.names = names_of_records(engine_, record_keys_, options_.chunk_size_bytes, records),
            .records = {records.begin(), records.end()},
            .memory = nullptr};
  }
  auto prepared = recompress_ ? recompress(records) : reseal(records);
  if (prepared) return std::move(*prepared);
  return {
      .names = std::vector<Result<RecordName>>(records.size(), tl::unexpected(prepared.error())),
      .records = {records.begin(), records.end()},
      .memory = nullptr};
}

MoveMemory::MoveMemory(std::unique_ptr<Work> work) : work_(std::move(work)) {}
MoveMemory::MoveMemory(MoveMemory&&) noexcept = default;
MoveMemory::~MoveMemory() = default;

MutableByteView MoveMemory::input() {
  return {work_->input.data(), work_->input.size()};
}

Result<MoveMemory> SegmentStoreImpl::allocate_move_memory(std::size_t batch_bytes) {
  auto work = std::make_unique<Work>();
  const std::size_t size = std::max(batch_bytes, engine::record_size_bytes_max);
  NACRE_ASSIGN(work->input, engine_.allocate(size));
  // Padding or another suite may make records longer.
  NACRE_ASSIGN(work->output, engine_.allocate(std::max(size + size / 4, bound_of(size))));
  return MoveMemory(std::move(work));
}

PreparedMove SegmentStoreImpl::prepare_move(std::span<const ByteView> records, MoveMemory& memory) {
  if (recompress_) return prepare_move(records);
  std::size_t output_size = 0;
  std::size_t count = 0;
  for (; count < records.size(); ++count) {
    output_size += bound_of(records[count].size());
    if (output_size > memory.work_->output.size()) break;
  }
  records = records.first(count);
  auto prepared = reseal_in(*memory.work_, records);
  if (prepared) return std::move(*prepared);
  return {
      .names = std::vector<Result<RecordName>>(records.size(), tl::unexpected(prepared.error())),
      .records = {records.begin(), records.end()},
      .memory = nullptr};
}

// If records of the current epoch are among them, they are sealed anew as well.
Result<PreparedMove> SegmentStoreImpl::reseal(std::span<const ByteView> records) {
  std::size_t input_size = 0;
  std::size_t output_size = 0;
  for (const ByteView& record : records) {
    input_size += record.size();
    output_size += bound_of(record.size());
  }
  auto work = std::make_shared<Work>();
  NACRE_ASSIGN(work->input, engine_.allocate(input_size));
  NACRE_ASSIGN(work->output, engine_.allocate(output_size));
  std::vector<ByteView> copies;
  copies.reserve(records.size());
  std::size_t input_at = 0;
  for (const ByteView& record : records) {
    std::copy(record.begin(), record.end(), work->input.data() + input_at);
    copies.emplace_back(work->input.data() + input_at, record.size());
    input_at += record.size();
  }
  NACRE_ASSIGN(PreparedMove move, reseal_in(*work, copies));
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!move.names[i]) move.records[i] = records[i];
  }
  move.memory = std::move(work);
  return move;
}

// Seals the records anew in one pass, without decompressing them.
Result<PreparedMove> SegmentStoreImpl::reseal_in(Work& work, std::span<const ByteView> records) {
  std::size_t output_size = 0;
  for (const ByteView& record : records)
    output_size += bound_of(record.size());
  NACRE_ASSIGN(const WriteTurn turn, take_turn(records.size(), output_size));
  const RecordSeal seal{
      .session = *turn.session, .first_counter = turn.counter, .padding = options_.padding};
  engine::Payload& payload = work.payload;
  payload.clear();
  payload.input = work.input.data();
  payload.input_size = work.input.size();
  payload.output = work.output.data();
  payload.output_size = work.output.size();
  payload.volume_id = keys_->volume_id();
  PreparedMove move{.names = std::vector<Result<RecordName>>(records.size(), RecordName{}),
                    .records = {records.begin(), records.end()},
                    .memory = nullptr};
  std::vector<std::size_t> sent;
  sent.reserve(records.size());
  payload.messages.reserve(records.size());
  std::size_t output_at = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto header = engine::parse_record_header(records[i]);
    if (!header) {
      move.names[i] = tl::unexpected(header.error());
      continue;
    }
    // Asked for each record, although neighbours mostly share a key: find() also checks that this
    // very record is genuine.
    const auto key = record_keys_.find(*header, records[i]);
    if (!key) {
      move.names[i] = tl::unexpected(key.error());
      continue;
    }
    const std::size_t room = bound_of(records[i].size());
    add_reseal(payload, **key, seal, i,
               {.input_offset = static_cast<std::uint64_t>(records[i].data() - work.input.data()),
                .input_size = records[i].size(),
                .output_offset = output_at,
                .output_capacity = room});
    output_at += room;
    sent.push_back(i);
  }
  payload.check_bounds();
  if (!sent.empty()) engine_.run(payload);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const engine::MessageResult& result = payload.results[i];
    move.names[sent[i]] = name_in(result);
    if (!result.ok) continue;
    move.records[sent[i]] =
        ByteView(work.output.data() + payload.messages[i].output_offset, result.output_size);
  }
  payload.clear();
  return move;
}

// The codec with which new records of an inode are sealed.
Result<metadata::InodeCodec> SegmentStoreImpl::codec_of(InodeNumber inode) const {
  const metadata::InodeCodec volume_codec{codec_, level_};
  NACRE_ASSIGN(const auto value,
               database_.get(metadata::Table::inodes, metadata::inode_key(inode)));
  if (!value) return volume_codec;
  const auto row = metadata::decode_inode_row(*value);
  // A damaged row is reported elsewhere; here the record stays what it is.
  return row ? metadata::inode_codec(row->flags).value_or(volume_codec) : volume_codec;
}

// Opens the records and seals them with the codec of today. This is done in groups, because only
// opening a record tells how much it holds.
Result<PreparedMove> SegmentStoreImpl::recompress(std::span<const ByteView> records) {
  PreparedMove move{.names = std::vector<Result<RecordName>>(records.size(), RecordName{}),
                    .records = {records.begin(), records.end()},
                    .memory = nullptr};
  auto memory = std::make_shared<std::vector<engine::Arena>>();
  const std::size_t at_once = std::max<std::size_t>(1, (4u << 20) / options_.chunk_size_bytes);
  NACRE_ASSIGN(const WriteTurn turn,
               take_turn(records.size(), bound_of(options_.chunk_size_bytes) * records.size()));
  const RecordSeal seal{
      .session = *turn.session, .first_counter = turn.counter, .padding = options_.padding};
  for (std::size_t first = 0; first < records.size(); first += at_once) {
    const std::size_t count = std::min(at_once, records.size() - first);
    NACRE_ASSIGN(auto opened, open_records(engine_, record_keys_, options_.chunk_size_bytes,
                                           records.subspan(first, count)));
    const std::size_t room = bound_of(options_.chunk_size_bytes);
    NACRE_ASSIGN(auto output, engine_.allocate(count * room));
    engine::Payload payload;
    payload.input = opened.memory.data();
    payload.input_size = opened.memory.size();
    payload.output = output.data();
    payload.output_size = output.size();
    payload.volume_id = keys_->volume_id();
    std::vector<std::size_t> sent;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& name = opened.names[i];
      move.names[first + i] = name;
      if (!name) continue;
      NACRE_ASSIGN(const metadata::InodeCodec codec, codec_of(name->inode));
      const ByteView plain = opened.plain[i];
      add_seal(payload, seal, first + i,
               {.input_offset = static_cast<std::uint64_t>(plain.data() - opened.memory.data()),
                .input_size = plain.size(),
                .output_offset = i * room,
                .output_capacity = room},
               codec, *name);
      sent.push_back(i);
    }
    payload.check_bounds();
    if (!sent.empty()) engine_.run(payload);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const engine::MessageResult& result = payload.results[i];
      if (!result.ok) return fail(result.error, fmt::format("sealing anew: {}", result.detail));
      move.records[first + sent[i]] = ByteView(output.data() + payload.messages[i].output_offset,
                                               payload.results[i].output_size);
    }
    payload.clear();
    memory->push_back(std::move(output));
  }
  move.memory = std::move(memory);
  return move;
}

Result<std::optional<SealedBatch>> SegmentStoreImpl::append_sealed(
    std::span<const ByteView> records, unsigned lane, PageCache page_cache) {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  SealedBatch batch;
  if (records.empty()) return batch;
  batch.records.resize(records.size());
  auto pins = std::make_shared<Pins>();
  NACRE_ASSIGN(const auto header, engine::parse_record_header(records.front()));
  NACRE_ASSIGN(const bool written,
               write_out(moved_.at(lane), records, header.epoch, batch.records, *pins, page_cache));
  if (!written) return std::nullopt;
  moved_records_ += records.size();
  for (const ByteView& record : records)
    moved_bytes_ += record.size();
  batch.pin = std::move(pins);
  return batch;
}

}  // namespace nacre::fs
