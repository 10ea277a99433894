// SPDX-License-Identifier: Apache-2.0
// One change of a script's volume directory fails, or a few in a row, and the disk goes on. After
// an I/O error the volume may take no more changes; after a full disk all must go on once there is
// space. What a sync confirmed, before or after, is true.
#include <algorithm>
#include <functional>
#include <memory>

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "tests/crash/recovery.h"
#include "tests/crash/sample.h"
#include "tests/crash/scripts.h"
#include "tests/crash/worked_volume.h"

namespace nacre::tests {
namespace {

using Script = std::function<void(WorkedVolume&)>;

constexpr std::uint64_t disk_size_bytes = 128u << 20;

class VolumeDiskErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);  // each state has its warnings
    formatted_ = MemoryBacking::create();
    formatted_->set_capacity(disk_size_bytes);
    WorkedVolume::format(formatted_);
  }

  // Each failure of the sweep meets a fresh volume.
  void sweep(const Script& script, InjectedFailure failure, std::set<ErrorCode> tolerated,
             std::uint64_t tried) {
    const std::uint64_t count = count_changes(script, failure.operations);
    ASSERT_GT(count, 20u);
    const std::uint64_t stride = sample_.stride(count, tried);
    std::uint64_t states = 0;
    for (std::uint64_t change = sample_.next() % stride; change < count; change += stride) {
      SCOPED_TRACE(testing::Message() << "seed " << sample_.seed() << ", failing change " << change
                                      << " of " << count);
      ++states;
      failure.skip = change;
      const auto backing = formatted_->process_kill();
      WorkedVolume volume(backing, options_, tolerated);
      backing->inject(failure);
      volume.open();
      if (volume.is_open()) script(volume);
      backing->clear_failures();
      expect_end(backing, volume, failure.code);
      if (HasFailure()) return;
    }
    sample_.print(states, count, "changes");
    EXPECT_GE(states, std::min(count, tried));
  }

  fs::VolumeOptions options_ = worked_volume_options();
  Sample sample_;

 private:
  // Counts the changes that are one of these operations.
  std::uint64_t count_changes(const Script& script, std::uint32_t operations) {
    const auto backing = formatted_->process_kill();
    WorkedVolume volume(backing, options_, {});
    volume.open();
    script(volume);
    volume.close();
    return backing->operation_count(operations);
  }

  void expect_end(const std::shared_ptr<MemoryBacking>& backing, WorkedVolume& volume,
                  ErrorCode code) {
    if (!volume.is_open()) {
      expect_recovery(backing->power_loss(sample_.next()), options_, volume.history(),
                      volume.promises());
      return;
    }
    volume.expect_up_to_date();
    // After a full disk everything must go on. An I/O error in a thread of RocksDB is reported by a
    // later commit. Until an error is reported, the volume goes on as well.
    const bool must_go_on = code == ErrorCode::no_space;
    if (must_go_on) volume.tolerate_no_more();
    if (must_go_on || !volume.met_errors()) go_on(volume);
    if (must_go_on || !volume.met_errors()) {
      expect_goes_on(backing, volume);
    } else {
      expect_stays(backing, volume);
    }
  }

  static void go_on(WorkedVolume& volume) {
    volume.sync_all();
    volume.make_file("after");
    volume.write("after", 0, 100'000);
    volume.sync("after");
  }

  void expect_goes_on(const std::shared_ptr<MemoryBacking>& backing, WorkedVolume& volume) {
    volume.expect_up_to_date();
    expect_recovery(backing->power_loss(0), options_, volume.history(), volume.promises());
    volume.close();
    expect_recovery(backing->power_loss(0), options_, volume.history(), volume.promises());
  }

  // Writes that the process still makes must do no harm either.
  void expect_stays(const std::shared_ptr<MemoryBacking>& backing, WorkedVolume& volume) {
    const auto lost = backing->power_loss(sample_.next());
    const Promises before = volume.promises();
    volume.close();
    expect_recovery(lost, options_, volume.history(), before);
    expect_recovery(backing, options_, volume.history(), volume.promises());
  }

  std::shared_ptr<MemoryBacking> formatted_;
};

const std::set<ErrorCode> io_and_after = {ErrorCode::io, ErrorCode::read_only};

TEST_F(VolumeDiskErrors, one_read_that_fails_takes_nothing_that_was_confirmed) {
  const InjectedFailure failure{.operations = operation_read, .count = 1, .code = ErrorCode::io};
  sweep(change_contents, failure, io_and_after, 8);
  sweep(reopen_often, failure, io_and_after, 8);
}

// The errors that a read with wrong bytes may cause.
const std::set<ErrorCode> bad_reading = {ErrorCode::io,      ErrorCode::read_only,
                                         ErrorCode::corrupt, ErrorCode::tampered,
                                         ErrorCode::missing, ErrorCode::rolled_back};

TEST_F(VolumeDiskErrors, one_read_that_ends_early_takes_nothing_that_was_confirmed) {
  const InjectedFailure failure{.operations = operation_read, .count = 1, .partial = true};
  sweep(change_contents, failure, bad_reading, 8);
  sweep(reopen_often, failure, bad_reading, 12);
}

TEST_F(VolumeDiskErrors, one_bit_flipped_in_a_read_takes_nothing_that_was_confirmed) {
  const InjectedFailure failure{.operations = operation_read, .count = 1, .flip = true};
  sweep(change_contents, failure, bad_reading, 8);
  sweep(reopen_often, failure, bad_reading, 12);
}

constexpr std::uint32_t change_that_takes_space = change_create | change_write;

TEST_F(VolumeDiskErrors, one_io_error_among_names_takes_nothing_that_was_confirmed) {
  sweep(change_names, {.count = 1, .code = ErrorCode::io, .partial = true}, io_and_after, 12);
}

TEST_F(VolumeDiskErrors, one_io_error_among_contents_takes_nothing_that_was_confirmed) {
  sweep(change_contents, {.count = 1, .code = ErrorCode::io, .partial = true}, io_and_after, 12);
}

TEST_F(VolumeDiskErrors, one_io_error_between_mounts_takes_nothing_that_was_confirmed) {
  sweep(reopen_often, {.count = 1, .code = ErrorCode::io, .partial = true}, io_and_after, 6);
}

TEST_F(VolumeDiskErrors, a_disk_that_is_full_once_stops_nothing) {
  sweep(change_names,
        {.operations = change_that_takes_space,
         .count = 1,
         .code = ErrorCode::no_space,
         .partial = true},
        {ErrorCode::no_space}, 8);
  sweep(change_contents,
        {.operations = change_that_takes_space,
         .count = 1,
         .code = ErrorCode::no_space,
         .partial = true},
        {ErrorCode::no_space}, 8);
}

TEST_F(VolumeDiskErrors, a_disk_that_is_full_for_a_while_stops_nothing_for_good) {
  for (const std::uint64_t count : {4u, 30u}) {
    sweep(change_contents,
          {.operations = change_that_takes_space,
           .count = count,
           .code = ErrorCode::no_space,
           .partial = count == 4},
          {ErrorCode::no_space}, 8);
  }
}

TEST_F(VolumeDiskErrors, a_disk_that_is_full_under_random_work_stops_nothing_for_good) {
  const std::uint64_t seed = sample_.next();
  sweep([&](WorkedVolume& volume) { work_at_random(volume, seed); },
        {.operations = change_that_takes_space,
         .count = 1 + seed % 20,
         .code = ErrorCode::no_space,
         .partial = true},
        {ErrorCode::no_space}, 12);
}

TEST_F(VolumeDiskErrors, a_disk_that_is_full_between_mounts_takes_nothing_that_was_confirmed) {
  sweep(reopen_often,
        {.operations = change_that_takes_space,
         .count = 10,
         .code = ErrorCode::no_space,
         .partial = true},
        {ErrorCode::no_space}, 6);
}

}  // namespace
}  // namespace nacre::tests
