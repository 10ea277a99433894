// SPDX-License-Identifier: Apache-2.0
// What precedes a rotation to an epoch of format 2: the digest of each record is put into a row,
// while the volume is used. The keys change only when nothing but the last rows is left to do.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/check/path_finder.h"
#include "fs/check/record_index.h"
#include "fs/rotation/rotation.h"
#include "fs/scrub/rate_limit.h"
#include "fs/store/genuine_records.h"
#include "fs/store/segment_table.h"

namespace nacre::fs {

using metadata::RecordLocation;
using metadata::SegmentNumber;
using std::chrono::milliseconds;

namespace {

// While something else reads or writes, the survey reads as much a second as the rotation would.
constexpr std::uint64_t considerate_rate = 32u << 20;
// If nothing was read or written for this long, nothing else uses the volume.
constexpr milliseconds alone_after{300};
// The wait for threads that are about to name records of a segment.
constexpr milliseconds use_pause{50};
constexpr std::size_t named_place_count_max = 3;  // in a message

}  // namespace

// How one survey keeps to its rate, and what it could not read.
class Rotation::Survey {
 public:
  using Clock = std::chrono::steady_clock;

  // How long to wait after this many bytes. rate: what was asked for, or 0.
  Clock::duration pause_after(std::uint64_t bytes, std::uint64_t rate, std::uint64_t activity,
                              Clock::time_point now) {
    if (std::exchange(activity_, activity) != activity) alone_from_ = now + alone_after;
    if (rate == 0 && now < alone_from_) rate = considerate_rate;
    if (rate != limit_.bytes_per_second()) limit_ = RateLimit(rate);
    return limit_.after(bytes, now);
  }

  struct Unread {
    RecordLocation location;
    InodeNumber inode;
  };
  void note_unread(const Unread& unread) {
    if (unread_count++ < named_place_count_max) unread_.push_back(unread);
  }
  const std::vector<Unread>& first_unread() const { return unread_; }
  std::uint64_t unread_count = 0;

 private:
  RateLimit limit_{0};
  std::uint64_t activity_ = 0;
  Clock::time_point alone_from_{};
  std::vector<Unread> unread_;
};

// Waits while the survey is paused, and as long as its rate asks for.
Result<> Rotation::note_surveyed(std::uint64_t bytes, Mode mode, Survey& survey) {
  const std::uint64_t activity = mounted_.store().activity();
  {
    UniqueLock lock(mutex_);
    surveyed_bytes_ += bytes;
    const std::uint64_t rate = row_.rate_bytes_per_second;
    const auto ends = [&]() NACRE_REQUIRES(mutex_) {
      return stopping_ || row_.paused || row_.rate_bytes_per_second != rate;
    };
    if (mode == Mode::background) {
      const auto now = std::chrono::steady_clock::now();
      const auto pause = survey.pause_after(bytes, rate, activity, now);
      if (pause > pause.zero()) wake_.wait_for(lock, pause, ends);
    }
    wake_.wait(lock, [&]() NACRE_REQUIRES(mutex_) { return stopping_ || !row_.paused; });
    if (stopping_) {
      return fail(ErrorCode::cancelled,
                  "the volume is closing, and no rotation of keys has begun: the records were not "
                  "all read yet");
    }
  }
  report_progress();
  return {};
}

Result<> Rotation::survey(const RotationOptions& options, Mode mode) {
  // Removes the digests of a survey that did not come to its end.
  NACRE_TRY(forget_digests());
  NACRE_TRY(mounted_.store().begin_survey());
  GenuineRecords& genuine = mounted_.store().genuine_records();
  {
    LockGuard lock(mutex_);
    is_surveying_ = true;
    stage_ = "survey";
    message_.clear();
    surveyed_bytes_ = 0;
    survey_bytes_ = genuine.total_bytes();
    since_ = std::chrono::steady_clock::now();
    row_.rate_bytes_per_second = options.rate_bytes_per_second;
    state_ = row_.paused ? RotationState::paused : RotationState::running;
  }
  spdlog::info("rotation of keys: {} bytes of records are read before it begins",
               genuine.total_bytes());
  Survey survey;
  const SurveyOrder order{.go_on = [&](std::uint64_t bytes) NACRE_REQUIRES(
                                       work_mutex_) { return note_surveyed(bytes, mode, survey); },
                          .commit = [this] { return mounted_.committer().commit(CommitScope{}); }};
  NACRE_TRY(genuine.walk(order));
  NACRE_TRY(survey_named(genuine, order, survey));
  if (survey.unread_count > 0) NACRE_TRY(judge_unread(survey, options.accept_unreadable));
  // All digests of what was there are durable then. Those of what was appended are durable no later
  // than rows that name it.
  return mounted_.committer().commit(CommitScope{.everything = true});
}

// Where the walk may have missed records, the rows say which count.
Result<> Rotation::survey_named(GenuineRecords& genuine, const SurveyOrder& order, Survey& survey) {
  const std::set<SegmentNumber> unsettled = genuine.unsettled();
  if (unsettled.empty()) return {};
  for (const SegmentNumber segment : unsettled) {
    while (genuine.is_in_use(segment)) {
      NACRE_TRY(order.go_on(0));
      UniqueLock lock(mutex_);
      wake_.wait_for(lock, use_pause, [&]() NACRE_REQUIRES(mutex_) { return stopping_; });
    }
  }
  NACRE_ASSIGN(const RecordIndex index, RecordIndex::build(mounted_.database()));
  return index.for_each_segment(
      [&](SegmentNumber segment, std::span<const NamedRecord> records) -> Result<> {
        if (!unsettled.contains(segment)) return {};
        std::vector<RecordLocation> places;
        places.reserve(records.size());
        for (const NamedRecord& record : records)
          places.push_back(record.location);
        NACRE_ASSIGN(const auto unreadable, genuine.survey_named(places, order));
        auto record = records.begin();
        for (const RecordLocation& place : unreadable) {
          while (record->location != place)
            ++record;
          const bool is_of_file = record->name.kind == metadata::RecordKind::chunk ||
                                  record->name.kind == metadata::RecordKind::patch;
          survey.note_unread({place, is_of_file ? record->name.inode : InodeNumber{}});
        }
        return {};
      });
}

Result<std::vector<std::uint64_t>> Rotation::named_places(SegmentNumber segment) {
  std::vector<std::uint64_t> places;
  NACRE_TRY(scan_records(mounted_.database(), [&](const NamedRecord& record) {
    if (record.location.segment == segment) places.push_back(record.location.offset);
  }));
  std::sort(places.begin(), places.end());
  return places;
}

Result<> Rotation::judge_unread(const Survey& survey, bool is_accepted) {
  std::set<InodeNumber> inodes;
  for (const Survey::Unread& unread : survey.first_unread())
    inodes.insert(unread.inode);
  std::map<InodeNumber, std::vector<std::string>> paths;
  if (mounted_.may_name_files()) {
    NACRE_ASSIGN(paths, find_paths(mounted_.database(), inodes, 1));
  }
  const auto owner = [&](InodeNumber inode) -> std::string {
    if (inode == InodeNumber{}) return "a checkpoint";
    const auto found = paths.find(inode);
    return found == paths.end() ? fmt::format("(inode {})", inode.value) : found->second.front();
  };
  std::string places;
  for (const Survey::Unread& unread : survey.first_unread()) {
    places += fmt::format("{}{} offset {}, {} bytes, of {}", places.empty() ? "" : "; ",
                          segment_path(unread.location.segment), unread.location.offset,
                          unread.location.stored_size, owner(unread.inode));
  }
  const auto more = survey.unread_count - survey.first_unread().size();
  const std::string what = fmt::format("{} records cannot be read: {}{}", survey.unread_count,
                                       places, more > 0 ? fmt::format("; and {} more", more) : "");
  if (!is_accepted) {
    return fail(ErrorCode::io,
                what +
                    ". No rotation of keys begins, because records that cannot be read now could "
                    "be forged later. Mend the medium and try again; or copy what can be read of "
                    "these files and delete them; or let the rotation count these records as "
                    "damaged for good: --accept-unreadable");
  }
  spdlog::warn("rotation of keys: {}; they count as damaged from now on", what);
  return {};
}

void Rotation::end_survey(const Result<>& outcome) {
  mounted_.store().end_survey();
  bool is_stopping = false;
  {
    LockGuard lock(mutex_);
    is_surveying_ = false;
    stage_ = {};
    is_stopping = stopping_;
    if (!keys_->is_rotating()) {
      row_ = {};
      state_ = outcome ? RotationState::none : RotationState::stopped;
      message_ = outcome ? std::string() : outcome.error().message;
    }
  }
  if (keys_->is_rotating()) return;
  if (const auto abandoned = mounted_.database().abandon_switch(); !abandoned) {
    spdlog::warn("files for an epoch that did not begin cannot be removed: {}",
                 abandoned.error().message);
    return;  // the new keyring may be there, and then the digests count
  }
  if (is_stopping) return;
  if (const auto forgotten = forget_digests(); !forgotten) {
    spdlog::warn("digests of records that nothing asks for cannot be removed: {}",
                 forgotten.error().message);
  }
}

}  // namespace nacre::fs
