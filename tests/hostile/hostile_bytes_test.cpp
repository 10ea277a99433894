// SPDX-License-Identifier: Apache-2.0
// Hostile bytes: one file of a volume is changed in each way that mutation.h knows, again and
// again, each time in a fresh copy. Whatever the change, everything that the volume then shows is
// right or refused. The check finds every change that matters, and calls it by its name.
//
// NACRE_LONG makes the test 72 times longer. Each day begins with other mutations. NACRE_SEED=n
// repeats those of a seed, and NACRE_ONLY=n the one with that number. A failure names both.
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "fs/backup/closed_volume.h"
#include "fs/check/checker.h"
#include "fs/repair/repair.h"
#include "fs/repair/repair_plan.h"
#include "tests/fs/store_fixture.h"
#include "tests/hostile/mutation.h"
#include "tests/hostile/specimen.h"

namespace nacre::tests {
namespace {

using fs::Verdict;

// The current mutation, for the message if it ends the process or never returns.
std::array<char, 1024> under_way = {};
constexpr unsigned mutation_seconds_max = 300;

void say_what_and_die(int number) {
  const char* what = number == SIGALRM ? "HANGS: " : "CRASHES: ";
  static_cast<void>(!::write(STDERR_FILENO, what, std::strlen(what)));
  static_cast<void>(!::write(STDERR_FILENO, under_way.data(), std::strlen(under_way.data())));
  static_cast<void>(!::write(STDERR_FILENO, "\n", 1));
  ::signal(number, SIG_DFL);
  ::raise(number);
}

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::uint64_t day() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::days>(now).count());
}

std::string text_of(const std::set<Verdict>& verdicts) {
  std::string text;
  for (const Verdict verdict : verdicts)
    text += (text.empty() ? "" : "+") + std::string(to_string(verdict));
  return text.empty() ? "nothing" : text;
}

// The reports about a changed volume.
struct Outcome {
  std::set<Verdict> found;    // by the check, which counts only errors
  std::set<Verdict> refused;  // by opening and reading
  bool is_mounted = false;
  std::string wrong;  // a wrong fact, or nothing
  std::string words;  // the messages of the check
};

bool is_of_keys(const std::string& path) {
  return path.starts_with("superblock") || path.starts_with("keyring");
}

class HostileBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);  // each volume would give warnings
    specimens();
    for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM})
      ::signal(number, say_what_and_die);
  }
  void TearDown() override { ::alarm(0); }

  // Changes files of the specimen that `wanted` accepts.
  template <typename Wanted>
  void sweep(const Specimen& specimen, std::uint64_t count, const Wanted& wanted) {
    const std::uint64_t seed = number_in("NACRE_SEED", day());
    const std::uint64_t only = number_in("NACRE_ONLY", ~0ull);
    if (std::getenv("NACRE_LONG") != nullptr) count *= 72;
    std::vector<std::string> paths;
    for (const auto& path : specimen.backing->files()) {
      if (wanted(path)) paths.push_back(path);
    }
    ASSERT_FALSE(paths.empty());
    const auto keys = open_specimen_keys(*specimen.backing);
    NACRE_ASSERT_OK(keys);
    named_ = named_records(specimen.backing->process_kill(), *keys);
    const MutationSources sources{*specimens().early, *specimens().other};
    std::uint64_t made = 0;
    for (std::uint64_t number = 0; made < count && number < 50 * count; ++number) {
      if (only != ~0ull && number != only) continue;
      std::mt19937_64 random(seed * 1'000'003 + number);
      const auto backing = specimen.backing->process_kill();
      const auto& path = paths[random() % paths.size()];
      const auto kind = static_cast<MutationKind>(random() % mutation_kind_count);
      const auto mutation = mutate(*backing, path, kind, sources, random);
      if (!mutation) continue;
      const auto changed = backing->load(path);  // before a mount replaces it
      const std::string replay =
          fmt::format("{} volume: {}; again with NACRE_SEED={} NACRE_ONLY={} --gtest_filter=*{}",
                      specimen.name, mutation->text, seed, number,
                      ::testing::UnitTest::GetInstance()->current_test_info()->name());
      replay.copy(under_way.data(), under_way.size() - 1);
      under_way[std::min(replay.size(), under_way.size() - 1)] = '\0';
      ::alarm(mutation_seconds_max);
      SCOPED_TRACE(replay);
      const Outcome outcome = judge(specimen, backing, *keys, *mutation, number % 2 == 0);
      const bool is_judged = hits_what_is_judged(path, *specimen.backing->load(path), changed);
      expect_right(specimen, *mutation, is_judged, outcome);
      ++made;
      ++counts_[fmt::format("{:14} {:14} {:6} {:6} | found {:24} | {}", class_of(path),
                            to_string(kind), mutation->is_forged ? "forged" : "",
                            is_judged ? "" : "unused", text_of(outcome.found),
                            !outcome.is_mounted       ? "refused " + text_of(outcome.refused)
                            : outcome.refused.empty() ? "all read"
                                                      : "EIO " + text_of(outcome.refused))];
      if (HasFailure()) break;
    }
    for (const auto& [what, times] : counts_)
      fmt::print("{:6} {}\n", times, what);
    fmt::print("seed {}: {} mutations of {} files\n", seed, made, paths.size());
    if (only == ~0ull && !HasFailure()) {
      EXPECT_EQ(made, count) << "too few mutations are possible here";
    }
  }

  static std::string class_of(const std::string& path) {
    const auto slash = path.find('/');
    if (slash == std::string::npos) return path;
    const std::string name = path.substr(slash + 1);
    const auto dot = name.find('.');
    const std::string kind =
        dot != std::string::npos ? name.substr(dot) : name.substr(0, name.find('-'));
    return path.substr(0, slash + 1) + kind;
  }

 private:
  Outcome judge(const Specimen& specimen, const std::shared_ptr<MemoryBacking>& backing,
                const metadata::VolumeKeys& known_keys, const Mutation& mutation, bool read_only) {
    Outcome outcome;
    if (mutation.path.starts_with("repair/")) {
      judge_plan(*backing, known_keys, outcome);
      return outcome;
    }
    const auto keys = is_of_keys(mutation.path) ? open_specimen_keys(*backing)
                                                : Result<metadata::VolumeKeys>(known_keys);
    if (!keys) {
      outcome.found.insert(fs::verdict_of(keys.error().code));
      outcome.refused.insert(fs::verdict_of(keys.error().code));
      outcome.words = keys.error().message;
      return outcome;
    }
    check(backing, *keys, outcome);
    auto volume = open_specimen(backing, *keys, read_only);
    if (!volume) {
      outcome.refused.insert(fs::verdict_of(volume.error().code));
      outcome.words += "\nmount: " + volume.error().message;
      return outcome;
    }
    outcome.is_mounted = true;
    const auto tree = observe(**volume, specimen_options().store.chunk_size_bytes);
    for (const ErrorCode code : tree.codes)
      outcome.refused.insert(fs::verdict_of(code));
    // Closing may report that something is wrong, but it must return.
    static_cast<void>(volume->mounted().close());
    const bool is_live_log = specimen.trees.size() > 1 && mutation.path.ends_with(".log");
    for (std::size_t i = is_live_log ? 0 : specimen.trees.size() - 1; i < specimen.trees.size();
         ++i) {
      outcome.wrong = wrong_fact(tree, specimen.trees[i]);
      if (outcome.wrong.empty()) break;
    }
    return outcome;
  }

  void check(const std::shared_ptr<MemoryBacking>& backing, const metadata::VolumeKeys& keys,
             Outcome& outcome) {
    static const auto engine = engine::Engine::create({.thread_count = 1});
    NACRE_ASSERT_OK(engine);
    const auto report = fs::check_volume(backing, keys, **engine, {.deep = true}, {});
    NACRE_ASSERT_OK(report);
    for (const auto& finding : report->findings.findings()) {
      outcome.words += fmt::format("\n{}: {}: {}: {}", to_string(finding.severity),
                                   to_string(finding.verdict), finding.file, finding.what);
      if (finding.severity == fs::Severity::error) outcome.found.insert(finding.verdict);
    }
  }

  static void judge_plan(MemoryBacking& backing, const metadata::VolumeKeys& keys,
                         Outcome& outcome) {
    static const auto sound =
        fs::load_plan(*specimens().closed.backing, *keys.keys, specimens().plan_name);
    NACRE_ASSERT_OK(sound);
    const auto plan = fs::load_plan(backing, *keys.keys, specimens().plan_name);
    if (plan) {
      outcome.is_mounted = true;
      if (to_text(*plan) != to_text(*sound)) outcome.wrong = "the plan";
      return;
    }
    outcome.found = outcome.refused = {fs::verdict_of(plan.error().code)};
    outcome.words = plan.error().message;
  }

  void expect_right(const Specimen& specimen, const Mutation& mutation, bool is_judged,
                    const Outcome& outcome) {
    EXPECT_EQ(outcome.wrong, "") << outcome.words;
    std::set<Verdict> said = outcome.found;
    said.insert(outcome.refused.begin(), outcome.refused.end());
    std::set<Verdict> allowed = allowed_verdicts(mutation);
    // With less of a live log the volume is in an earlier state: its segments and manifest know
    // more than the log does.
    if (specimen.trees.size() > 1 && mutation.path.ends_with(".log")) {
      allowed.insert(Verdict::rolled_back);
    }
    for (const Verdict verdict : said) {
      EXPECT_TRUE(allowed.contains(verdict))
          << to_string(verdict) << " is not what was done: " << outcome.words;
    }
    if (!outcome.refused.empty()) {
      EXPECT_FALSE(outcome.found.empty())
          << "the check finds nothing, but reading was refused: " << outcome.words;
    }
    if (must_be_found(specimen, mutation, is_judged)) {
      EXPECT_FALSE(outcome.found.empty()) << "not noticed: " << outcome.words;
    }
    if (must_be_tampering(mutation) && !outcome.found.empty()) {
      EXPECT_TRUE(outcome.found.contains(Verdict::tampered)) << outcome.words;
    }
  }

  static bool is_accident(const Mutation& mutation) {
    return !mutation.is_forged && mutation.kind <= MutationKind::remove;
  }
  // Whether the change is in sealed bytes or a tag, under a checksum that fits.
  static bool is_in_sealed_part(const Mutation& mutation) {
    switch (mutation.piece) {
      case PieceKind::record:
        return mutation.in_piece >= 40;
      case PieceKind::frame:
        return mutation.in_piece >= 32;
      default:
        return false;
    }
  }

  // The verdicts that the check may give. If a checksum is wrong, the change is rot. If checksums
  // fit, only an attacker can have made the change. Headers are in the clear: even a forged field
  // in one may be a field that no writer makes, which is rot, or may lead to another salt, which is
  // an unknown session.
  static std::set<Verdict> allowed_verdicts(const Mutation& mutation) {
    if (mutation.path.starts_with("repair/")) {  // a plan has no checksum of its own
      return {Verdict::rot, Verdict::tampered, Verdict::missing};
    }
    if (is_accident(mutation)) return {Verdict::rot, Verdict::missing};
    // A log that a backup brings counts only if it is whole. Otherwise there is no log.
    if (mutation.path.find(".log.new") != std::string::npos) {
      return {Verdict::rot, Verdict::tampered, Verdict::missing};
    }
    if (mutation.kind == MutationKind::flip && is_in_sealed_part(mutation)) {
      return {Verdict::tampered};
    }
    const bool is_record = mutation.piece == PieceKind::record;
    if (is_record && mutation.is_whole_piece) return {Verdict::tampered};
    std::set<Verdict> allowed = {Verdict::rot, Verdict::tampered, Verdict::missing};
    // Of two copies, the one with the lower generation is called older, whatever else is wrong with
    // it.
    const bool is_older_copy = mutation.kind >= MutationKind::borrow && is_of_keys(mutation.path);
    if (mutation.kind == MutationKind::older || mutation.piece == PieceKind::segment_header ||
        is_older_copy) {
      allowed.insert(Verdict::rolled_back);
    }
    return allowed;
  }

  // Whether the tag of the changed bytes is verified. The tags of dead records are not, nor those
  // of files that only people read, nor that of IDENTITY, which is made anew.
  bool hits_what_is_judged(const std::string& path, ByteView sound,
                           const std::optional<Bytes>& changed) const {
    if (path.starts_with("db/OPTIONS") || path == "db/LOG" || path == "db/IDENTITY") return false;
    if (!path.ends_with(".seg") || !changed) return true;
    const auto differ = [&](std::uint64_t offset, std::uint64_t size) {
      return offset + size > changed->size() ||
             !std::equal(sound.begin() + static_cast<std::ptrdiff_t>(offset),
                         sound.begin() + static_cast<std::ptrdiff_t>(offset + size),
                         changed->begin() + static_cast<std::ptrdiff_t>(offset));
    };
    const auto records = named_.find(path);
    if (differ(0, std::min<std::uint64_t>(sound.size(), metadata::segment_header_size_bytes))) {
      return true;
    }
    if (records == named_.end()) return false;
    return std::any_of(records->second.begin(), records->second.end(),
                       [&](const auto& record) { return differ(record.first, record.second); });
  }

  // Whether the change comes after the frames of a manifest for which a later frame vouches. A log
  // vouches for more, but may have been begun before the last frames. After a kill no other file
  // knows these.
  static bool is_tail_of_manifest(const Specimen& specimen, const Mutation& mutation) {
    const Bytes sound = *specimen.backing->load(mutation.path);
    std::vector<std::uint64_t> begins;
    for (const Piece& piece : pieces_of(mutation.path, sound)) {
      if (piece.kind == PieceKind::frame) begins.push_back(piece.offset);
    }
    if (begins.empty()) return false;
    // The field "synced up to" of the last frame (frame_layout.h).
    const auto vouched = load_le<std::uint64_t>(sound.data() + begins.back() + 16);
    return vouched < begins.size() && mutation.offset >= begins[vouched];
  }

  // Decay is always found in bytes that have a checksum. If an attacker puts checksums right, the
  // change is found wherever a tag is verified. Two kinds of bytes may change without a report:
  // zeros written ahead of a log's end, and the frames of a live log or manifest for which no later
  // frame vouches. Then everything must be right all the same.
  static bool must_be_found(const Specimen& specimen, const Mutation& mutation, bool is_judged) {
    const std::string& path = mutation.path;
    if (path.starts_with("repair/")) return true;
    if (mutation.kind == MutationKind::extend) return is_of_keys(path);
    if (is_of_keys(path)) return true;
    // Files without their last names count only if they are whole.
    const bool is_arriving = &specimen == &specimens().arriving;
    if (&specimen == &specimens().killed && path.starts_with("db/MANIFEST") &&
        is_tail_of_manifest(specimen, mutation)) {
      return false;
    }
    if (is_accident(mutation)) {
      if (path == "db/CURRENT" || path.ends_with(".seg")) return true;
      return path.ends_with(".sst") && !is_arriving;
    }
    if (path.ends_with(".seg")) return is_judged;
    const bool is_database =
        path.ends_with(".sst") || path == "db/CURRENT" || path.starts_with("db/MANIFEST");
    return is_database && is_judged && !is_arriving;
  }

  // Whether the change is one that decay cannot make.
  static bool must_be_tampering(const Mutation& mutation) {
    const bool is_elsewhere =
        mutation.kind == MutationKind::other_volume || mutation.kind == MutationKind::other_file;
    const std::string& path = mutation.path;
    return is_elsewhere && (path.ends_with(".sst") || path.ends_with(".seg"));
  }

  std::map<std::string, std::uint64_t> counts_;
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> named_;  // as named_records()
};

TEST_F(HostileBytes, in_superblock_and_keyring) {
  sweep(specimens().closed, 100, is_of_keys);
}

TEST_F(HostileBytes, in_segments) {
  sweep(specimens().closed, 250,
        [](const std::string& path) { return path.starts_with("segments/"); });
}

TEST_F(HostileBytes, in_the_database_of_a_closed_volume) {
  sweep(specimens().closed, 200, [](const std::string& path) { return path.starts_with("db/"); });
}

TEST_F(HostileBytes, in_the_database_of_a_volume_whose_process_was_killed) {
  sweep(specimens().killed, 200, [](const std::string& path) { return path.starts_with("db/"); });
}

TEST_F(HostileBytes, in_a_repair_plan) {
  sweep(specimens().closed, 70,
        [](const std::string& path) { return path.starts_with("repair/"); });
}

TEST_F(HostileBytes, in_superblock_and_keyring_in_the_middle_of_a_move) {
  sweep(specimens().moving, 100, is_of_keys);
}

TEST_F(HostileBytes, in_segments_in_the_middle_of_a_move) {
  sweep(specimens().moving, 250,
        [](const std::string& path) { return path.starts_with("segments/"); });
}

TEST_F(HostileBytes, in_the_database_in_the_middle_of_a_move) {
  sweep(specimens().moving, 200, [](const std::string& path) { return path.starts_with("db/"); });
}

TEST_F(HostileBytes, in_a_backup_that_did_not_come_to_its_end) {
  sweep(specimens().arriving, 100, [](const std::string& path) { return !is_of_keys(path); });
}

// Between the two states of the backup there are manifests that know some tables of the later
// state.
TEST_F(HostileBytes, a_manifest_cut_in_a_backup_under_way_is_refused_or_one_of_its_states) {
  const Specimen& specimen = specimens().arriving;
  const auto keys = open_specimen_keys(*specimen.backing);
  NACRE_ASSERT_OK(keys);
  std::uint64_t opened_count = 0, refused_count = 0;
  for (const auto& path : specimen.backing->files()) {
    if (path.find("MANIFEST-") == std::string::npos) continue;
    const Bytes sound = *specimen.backing->load(path);
    for (const Piece& piece : pieces_of(path, sound)) {
      if (piece.kind != PieceKind::frame) continue;
      for (const std::uint64_t size : {piece.offset, piece.offset + piece.size / 2}) {
        SCOPED_TRACE(fmt::format("{} cut to {}", path, size));
        const auto backing = specimen.backing->process_kill();
        backing->store(path, ByteView(sound).first(size));
        const auto engine = engine::Engine::create({.thread_count = 1});
        const auto report = fs::check_volume(backing, *keys, **engine, {.deep = true}, {});
        NACRE_ASSERT_OK(report);
        for (const auto& finding : report->findings.findings()) {
          if (finding.severity == fs::Severity::note) continue;
          EXPECT_NE(to_string(finding.verdict), to_string(Verdict::structure)) << finding.what;
        }
        const auto volume = open_specimen(backing, *keys);
        ++(volume ? opened_count : refused_count);
        if (!volume) {
          EXPECT_NE(report->findings.error_count(), 0u) << volume.error().message;
          continue;
        }
        EXPECT_EQ(report->findings.error_count(), 0u);
        const auto tree = observe(**volume, specimen_options().store.chunk_size_bytes);
        EXPECT_TRUE(wrong_fact(tree, specimen.trees[0]).empty() ||
                    wrong_fact(tree, specimens().closed.trees.back()).empty());
        NACRE_EXPECT_OK(volume->mounted().close());
      }
      if (HasFailure()) return;
    }
  }
  fmt::print("{} cuts: {} refused\n", opened_count + refused_count, refused_count);
  EXPECT_GT(opened_count + refused_count, 10u);
  EXPECT_GT(refused_count, 0u);
}

}  // namespace
}  // namespace nacre::tests
