// SPDX-License-Identifier: Apache-2.0
// One pass of the scrub: what it reads, and what it does about damage.
#include <algorithm>
#include <ctime>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/check/damage_owners.h"
#include "fs/check/finding.h"
#include "fs/scrub/scrubber.h"
#include "fs/store/segment_table.h"
#include "metadata/sealed_fs/database_scrub.h"

namespace nacre::fs {

using metadata::DamageOwner;
using metadata::ScrubPlace;
using metadata::ScrubRow;
using metadata::ScrubState;
using metadata::SegmentNumber;
using metadata::SegmentRow;
using metadata::Table;

namespace {

constexpr std::string_view database_prefix = "db/";
// A read of a log that is being written may return a frame but not yet the one before it, and a
// failing disk may return wrong bytes once. So bytes count as damaged only if this many reads
// agree.
constexpr int read_count_max = 3;

ScrubPlace place_of(const Error& error, std::string file, std::uint64_t offset,
                    std::uint64_t size) {
  return {.verdict = static_cast<std::uint8_t>(verdict_of(error.code)),
          .file = std::move(file),
          .offset = offset,
          .size = size,
          .what = error.message.substr(0, metadata::scrub_words_size_bytes_max)};
}

std::string words_of(const ScrubPlace& place) {
  return fmt::format(
      "{} in {}{}: {}", to_string(static_cast<Verdict>(place.verdict)), place.file,
      place.size == 0 ? "" : fmt::format(", {} bytes at offset {}", place.size, place.offset),
      place.what);
}

void add_places(ScrubRow& row, std::vector<ScrubPlace>& places) {
  for (auto& place : places) {
    ++row.damage_count;
    if (row.places.size() < metadata::scrub_place_count_max) {
      row.places.push_back(std::move(place));
    }
  }
  places.clear();
}

}  // namespace

class Scrubber::SegmentVisitor final : public SegmentScrubVisitor {
 public:
  SegmentVisitor(Scrubber& scrubber, SegmentNumber number)
      : scrubber_(scrubber), number_(number), path_(segment_path(number)) {}

  Result<> verified(std::uint64_t end, std::uint64_t size, std::uint64_t record_count) override {
    NACRE_TRY(scrubber_.change([&](ScrubRow& row) {
      row.segment = number_;
      row.offset = end;
      row.segment_bytes += size;
      row.record_count += record_count;
      add_places(row, scrubber_.pending_);
    }));
    scrubber_.save_if_due();
    NACRE_TRY(scrubber_.pause_for(size));
    // If a commit has removed the segment, the scrub's open descriptor is all that keeps its bytes.
    NACRE_ASSIGN(is_gone_, scrubber_.is_gone(number_));
    if (is_gone_) return fail(ErrorCode::missing, "the segment is gone");
    return {};
  }
  void damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    scrubber_.note(place_of(error, path_, offset, size));
  }
  bool is_gone() const { return is_gone_; }

 private:
  Scrubber& scrubber_;
  const SegmentNumber number_;
  const std::string path_;
  bool is_gone_ = false;
};

void Scrubber::note(ScrubPlace place) {
  spdlog::error("scrub: {}", words_of(place));
  pending_.push_back(std::move(place));
}

Result<> Scrubber::pass() {
  NACRE_TRY(scrub_segments());
  NACRE_TRY(scrub_database());
  return finish();
}

Result<> Scrubber::scrub_segments() {
  while (true) {
    const ScrubRow at = status();
    std::optional<std::pair<SegmentNumber, SegmentRow>> next;
    Result<> bad;
    NACRE_TRY(mounted_.database().scan(Table::segments, metadata::segment_key(at.segment), "",
                                       [&](std::string_view key, std::string_view value) {
                                         const auto number = metadata::decode_segment_key(key);
                                         const auto row = metadata::decode_segment_row(value);
                                         if (number && row) {
                                           next.emplace(*number, *row);
                                         } else {
                                           bad = tl::unexpected(number ? row.error()
                                                                       : number.error());
                                         }
                                         return false;
                                       }));
    NACRE_TRY(bad);
    if (!next || next->first > at.last_segment) break;
    NACRE_TRY(scrub_segment(next->first, next->second, next->first == at.segment ? at.offset : 0));
    NACRE_TRY(change([&](ScrubRow& row) {
      ++row.segment_count;
      row.segment.value = next->first.value + 1;
      row.offset = 0;
      add_places(row, pending_);
    }));
  }
  return change([](ScrubRow& row) {
    row.segment.value = std::max(row.segment.value, row.last_segment.value + 1);
    row.offset = 0;
  });
}

Result<> Scrubber::scrub_segment(SegmentNumber number, const SegmentRow& row, std::uint64_t begin) {
  // The segment is looked up by its name, because the file that the store has open may no longer
  // lie there.
  const auto found = find_segment(mounted_.directory(), number, row);
  const std::string path = found.value_or(segment_path(number));
  const auto file = mounted_.directory().open(path, metadata::OpenMode::read);
  const auto size = file ? (*file)->size() : tl::unexpected(file.error());
  if (!size) {
    NACRE_ASSIGN(const bool gone, is_gone(number));
    if (!gone) note(place_of(size.error(), path, 0, 0));
    return {};
  }
  if (begin == 0) {
    const auto header = read_segment_header(**file, volume_id_, number);
    if (!header) {
      note(place_of(header.error(), path, 0, metadata::segment_header_size_bytes));
    } else if (header->salt != row.salt || header->epoch != row.epoch) {
      note(place_of(
          {ErrorCode::rolled_back, "the file was made in another write session than its row says"},
          path, 0, metadata::segment_header_size_bytes));
    }
  }
  if (!segment_scrub_) {
    NACRE_ASSIGN(segment_scrub_, SegmentScrub::create(mounted_.engine()));
  }
  SegmentBounds bounds{.file_size = *size, .committed_size = row.committed_size};
  bounds.begin = std::max<std::uint64_t>(begin, metadata::segment_header_size_bytes);
  SegmentVisitor visitor(*this, number);
  const auto scrubbed = segment_scrub_->run(**file, bounds, visitor);
  if (visitor.is_gone()) return {};
  NACRE_TRY(scrubbed);
  if (*size < row.committed_size) {
    note(place_of({ErrorCode::missing,
                   fmt::format("the file has {} of {} committed bytes", *size, row.committed_size)},
                  path, *size, row.committed_size - *size));
  }
  return {};
}

Result<bool> Scrubber::is_gone(SegmentNumber number) const {
  NACRE_ASSIGN(const auto row,
               mounted_.database().get(Table::segments, metadata::segment_key(number)));
  return !row;
}

Result<> Scrubber::scrub_database() {
  // From here on a restart begins with the first byte of this segment.
  NACRE_TRY(change([](ScrubRow& row) {
    row.database_file_count = row.database_bytes = 0;
    row.damage_count -=
        std::erase_if(row.places, [](const ScrubPlace& p) { return p.file.starts_with("db/"); });
  }));
  NACRE_ASSIGN(const auto files, mounted_.database().needed_files());
  for (const auto& name : files) {
    NACRE_TRY(scrub_database_file(name));
    save_if_due();
  }
  return {};
}

Result<> Scrubber::scrub_database_file(const std::string& name) {
  const std::string path = std::string(database_prefix) + name;
  std::optional<Error> error;
  for (int turn = 0; turn < read_count_max; ++turn) {
    Result<> waited;  // kept apart from the error of the check, which is about the file
    std::uint64_t size = 0;
    const auto checked =
        metadata::scrub_database_file(mounted_.directory(), path, [&](std::uint64_t bytes) {
          size += bytes;
          waited = pause_for(bytes);
          return waited;
        });
    NACRE_TRY(waited);
    if (checked) {
      return change([&](ScrubRow& row) {
        ++row.database_file_count;
        row.database_bytes += *checked;
      });
    }
    // RocksDB replaces its files while the scrub reads, so the list is asked for each time.
    NACRE_ASSIGN(const auto needed, mounted_.database().needed_files());
    if (!needed.contains(name)) return {};
    error = checked.error();
  }
  Error words = *error;
  if (words.message.starts_with(path + ": ")) words.message.erase(0, path.size() + 2);
  note(place_of(words, path, 0, 0));
  return change([&](ScrubRow& row) { add_places(row, pending_); });
}

// Looks up which files use the damaged places, and logs them.
Result<> Scrubber::finish() {
  auto places = status().places;
  std::vector<DamagedStretch> stretches;
  std::vector<std::size_t> of;  // for each stretch, the index of its place
  std::size_t gone = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto number =
        segment_number_of(std::string_view(places[i].file).substr(places[i].file.find('/') + 1));
    if (!number) continue;
    NACRE_ASSIGN(const bool is_over, is_gone(*number));
    if (is_over) {
      places[i].file.clear();
      ++gone;
      continue;
    }
    // Damage in the segment's header hits no file, because records have headers of their own.
    if (places[i].size != 0 && places[i].offset < metadata::segment_header_size_bytes) continue;
    stretches.push_back({.segment = *number,
                         .offset = places[i].offset,
                         .size = places[i].size == 0 ? UINT64_MAX : places[i].size,
                         .paths = {}});
    of.push_back(i);
  }
  NACRE_TRY(find_owners(mounted_.database(), stretches));
  std::size_t budget = metadata::scrub_paths_size_bytes_max;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    ScrubPlace& place = places[of[i]];
    place.owner = stretches[i].paths.empty() ? DamageOwner::nobody : DamageOwner::files;
    std::string all;
    const std::uint64_t path_count = stretches[i].paths.size() + stretches[i].more_path_count;
    std::uint64_t left_out = stretches[i].more_path_count;
    for (auto& path : stretches[i].paths) {
      all += all.empty() ? path : ", " + path;
      if (path.size() > budget) {
        ++left_out;
        continue;
      }
      budget -= path.size();
      place.paths.push_back(std::move(path));
    }
    if (stretches[i].more_path_count != 0) {
      all += " " + words_for_more_paths(stretches[i].more_path_count);
    }
    if (left_out != 0) place.paths.push_back(words_for_more_paths(left_out));
    if (!all.empty() && !options_.may_name_files) {
      all = fmt::format("{} files, which nacre scrub --status names", path_count);
    }
    spdlog::error("scrub: {}; {}", words_of(place),
                  all.empty() ? "no file uses it" : "hit: " + all);
  }
  std::erase_if(places, [](const ScrubPlace& place) { return place.file.empty(); });
  std::uint64_t found = 0;
  NACRE_TRY(change([&](ScrubRow& row) {
    row.state = ScrubState::finished;
    row.ended_seconds = std::time(nullptr);
    row.damage_count -= gone;
    row.places = std::move(places);
    found = row.damage_count;
  }));
  const ScrubRow row = status();
  spdlog::info("scrub: {} records in {} segments and {} files of db/ verified, {} damaged places",
               row.record_count, row.segment_count, row.database_file_count, found);
  return save(true);
}

}  // namespace nacre::fs
