// SPDX-License-Identifier: Apache-2.0
#include "metadata/format/scrub_row.h"

#include "metadata/format/row_codec.h"

namespace nacre::metadata {

namespace {

constexpr std::uint8_t verdict_max = 5;

void put_text(RowWriter& writer, std::string_view text) {
  writer.number(text.size());
  writer.raw(text);
}

std::string read_text(RowReader& reader) {
  return std::string(reader.raw(reader.number(0, scrub_text_size_bytes_max)));
}

void put(RowWriter& writer, const ScrubPlace& place) {
  writer.byte(place.verdict);
  writer.byte(static_cast<std::uint8_t>(place.owner));
  put_text(writer, place.file);
  writer.number(place.offset);
  writer.number(place.size);
  put_text(writer, place.what);
  writer.number(place.paths.size());
  for (const auto& path : place.paths)
    put_text(writer, path);
}

ScrubPlace get_place(RowReader& reader) {
  ScrubPlace place;
  place.verdict = reader.byte(verdict_max);
  place.owner = static_cast<DamageOwner>(reader.byte(2));
  place.file = read_text(reader);
  place.offset = reader.number();
  place.size = reader.number();
  place.what = read_text(reader);
  for (auto left = reader.number(0, scrub_path_count_max); left > 0 && !reader.failed(); --left)
    place.paths.push_back(read_text(reader));
  return place;
}

}  // namespace

std::string_view to_string(ScrubState state) {
  switch (state) {
    case ScrubState::none:
      return "none";
    case ScrubState::running:
      return "running";
    case ScrubState::paused:
      return "paused";
    case ScrubState::finished:
      return "finished";
    case ScrubState::stopped:
      return "stopped";
  }
  return "unknown";
}

std::string encode(const ScrubRow& row) {
  RowWriter writer;
  writer.byte(static_cast<std::uint8_t>(row.state));
  writer.number(row.rate_bytes_per_second);
  writer.signed_number(row.started_seconds);
  writer.signed_number(row.ended_seconds);
  writer.number(row.last_segment.value);
  writer.number(row.segment.value);
  writer.number(row.offset);
  writer.number(row.total_bytes);
  writer.number(row.segment_count);
  writer.number(row.record_count);
  writer.number(row.segment_bytes);
  writer.number(row.database_file_count);
  writer.number(row.database_bytes);
  writer.signed_number(row.previous_ended_seconds);
  writer.number(row.previous_damage_count);
  writer.number(row.damage_count);
  put_text(writer, row.error);
  writer.number(row.places.size());
  for (const auto& place : row.places)
    put(writer, place);
  return writer.take();
}

Result<ScrubRow> decode_scrub_row(std::string_view value) {
  RowReader reader(value, "scrub");
  ScrubRow row;
  row.state = static_cast<ScrubState>(reader.byte(static_cast<std::uint8_t>(ScrubState::stopped)));
  row.rate_bytes_per_second = reader.number();
  row.started_seconds = reader.signed_number();
  row.ended_seconds = reader.signed_number();
  row.last_segment.value = reader.number();
  row.segment.value = reader.number();
  row.offset = reader.number();
  row.total_bytes = reader.number();
  row.segment_count = reader.number();
  row.record_count = reader.number();
  row.segment_bytes = reader.number();
  row.database_file_count = reader.number();
  row.database_bytes = reader.number();
  row.previous_ended_seconds = reader.signed_number();
  row.previous_damage_count = reader.number();
  row.damage_count = reader.number();
  row.error = read_text(reader);
  for (auto left = reader.number(0, scrub_place_count_max); left > 0 && !reader.failed(); --left)
    row.places.push_back(get_place(reader));
  NACRE_TRY(reader.finish());
  return row;
}

}  // namespace nacre::metadata
