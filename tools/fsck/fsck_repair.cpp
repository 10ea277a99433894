// SPDX-License-Identifier: Apache-2.0
#include "tools/fsck/fsck_repair.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fs/check/checker.h"
#include "fs/repair/database_swap.h"
#include "fs/repair/repair.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/text/exact_bytes.h"
#include "metadata/text/rfc3339.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/cli/volume_age_check.h"
#include "tools/fsck/fsck_report.h"

namespace nacre::tools {

namespace {

struct OpenVolume {
  VolumePlace place;
  metadata::VolumeLock lock;
  metadata::VolumeKeys volume;
  std::optional<OutsideWitness> outside;
};

struct Outcome {
  fs::RepairPlan plan;
  std::optional<fs::DatabaseReport> database;  // if db/ is made anew
  fs::FindingList left;                        // what the plan does not repair
  std::string plan_name;                       // empty: nothing was written
  std::string plan_hash;                       // empty after an undo
  bool is_changed = false;                     // the plan was carried out, or undone
  std::optional<fs::CheckReport> after;        // of the volume after a change
};

Result<OpenVolume> open(const std::string& path, const SecretOptions& options,
                        OutsideWitnessOptions witness, metadata::LockMode mode) {
  NACRE_ASSIGN(auto place, find_volume(path));
  NACRE_TRY(settle_outside_witness(witness, place.path));
  auto lock = metadata::VolumeLock::acquire(place.path, {.mode = mode});
  if (!lock && lock.error().code == ErrorCode::busy) {
    return fail(ErrorCode::busy, fmt::format("{}. A repair needs the volume for itself: unmount it",
                                             lock.error().message));
  }
  if (!lock) return tl::unexpected(lock.error());
  NACRE_ASSIGN(const auto secret, read_secret(options, place.path));
  NACRE_ASSIGN(auto volume, unlock_quietly(place, secret, options));
  warn_of_legacy_cipher(place, volume.superblock, volume.keyring);
  NACRE_ASSIGN(auto outside, open_outside_witness(witness, volume, print_warning));
  NACRE_TRY(check_age(place, volume, options, outside ? &*outside : nullptr));
  return OpenVolume{std::move(place), std::move(*lock), std::move(volume), std::move(outside)};
}

Result<Outcome> undo(const OpenVolume& open, const RepairArguments& arguments) {
  Outcome outcome;
  NACRE_ASSIGN(outcome.plan,
               fs::load_plan(*open.place.directory, *open.volume.keys, arguments.undo));
  if (arguments.dry_run) return outcome;
  NACRE_ASSIGN(outcome.is_changed, fs::undo_plan(open.place.directory, open.volume, outcome.plan));
  return outcome;
}

// The temporary directory in which a dry run makes a new db/. Its files are sealed as in the volume
// and are removed with this object.
class Scratch {
 public:
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Result<std::shared_ptr<metadata::BackingDirectory>> make() {
    std::error_code error;
    const auto folder = std::filesystem::temp_directory_path(error);
    std::string path = (folder / "nacre-dry-run.XXXXXX").string();
    if (error || ::mkdtemp(path.data()) == nullptr) {
      return fail(ErrorCode::io, fmt::format("cannot make a directory for the dry run in {}: {}",
                                             folder.string(), strerror(errno)));
    }
    path_ = path;
    return metadata::open_posix_directory(path_);
  }

 private:
  std::string path_;
};

nlohmann::json database_json(const fs::DatabaseReport& report) {
  nlohmann::json json = {{"damage", to_json(report.damage)},
                         {"may_have_lost_groups", report.may_have_lost_groups},
                         {"has_manifest", report.has_manifest},
                         {"lost_range_count", report.lost_range_count},
                         {"checkpoint", nullptr},
                         {"older", nlohmann::json::array()}};
  if (report.checkpoint_seconds) json["checkpoint"] = metadata::rfc3339(*report.checkpoint_seconds);
  for (const auto& rows : report.older) {
    nlohmann::json row = {{"table", metadata::to_string(rows.table)},
                          {"source", to_string(rows.source)},
                          {"count", rows.count},
                          {"paths", rows.paths}};
    if (rows.inode) row["inode"] = rows.inode->value;
    json["older"].push_back(std::move(row));
  }
  return json;
}

// Of the plan and of what is printed with it: the damage of db/, rows that may be older, and what
// is left.
std::string hash_of(const OpenVolume& open, const fs::RepairDraft& draft,
                    const fs::PlanSeed& seed) {
  std::string also;
  if (draft.database) {
    also = database_json(*draft.database)
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::vector<std::string> left;
  for (const auto& finding : draft.left.findings())
    left.push_back(
        fmt::format("{} {} {}\n", to_string(finding.verdict), finding.file, finding.what));
  std::sort(left.begin(), left.end());
  for (const std::string& line : left)
    also += line;
  return fs::plan_hash(draft.plan, also, *open.volume.keys, seed);
}

Result<> expect_plan(const OpenVolume& open, const fs::RepairDraft& draft, const fs::PlanSeed& seed,
                     const std::string& wanted) {
  if (wanted.empty() || hash_of(open, draft, seed) == wanted) return {};
  return fail(
      ErrorCode::stale,
      fmt::format("{}: a repair would make other changes than those of the plan {}: the "
                  "volume has changed since, or other options were given then. Nothing was "
                  "changed: look at today's plan with --repair --dry-run, and repair by that",
                  open.place.path, wanted));
}

// With a hash, the plan is made and compared before anything is written: a new db/ is made in a
// temporary directory first, and in the volume once it is known that this is the plan.
Result<fs::RepairDraft> make_plan(const OpenVolume& open, engine::Engine& engine,
                                  const RepairArguments& arguments, const fs::PlanSeed& seed,
                                  const fs::ProgressFunction& progress) {
  Scratch scratch;
  fs::RepairOptions options{.drop_damaged = arguments.drop_damaged,
                            .accept_unreadable = arguments.accept_unreadable,
                            .seed = seed};
  if (arguments.dry_run || !arguments.plan_hash.empty()) {
    NACRE_ASSIGN(options.scratch, scratch.make());
  }
  NACRE_ASSIGN(auto draft,
               fs::plan_repair(open.place.directory, open.volume, engine, options, progress));
  NACRE_TRY(expect_plan(open, draft, seed, arguments.plan_hash));
  const bool has_new_database = fs::database_edit_of(draft.plan) != nullptr;
  if (arguments.dry_run || arguments.plan_hash.empty() || !has_new_database) return draft;
  options.scratch = nullptr;
  NACRE_ASSIGN(draft,
               fs::plan_repair(open.place.directory, open.volume, engine, options, progress));
  const auto expected = expect_plan(open, draft, seed, arguments.plan_hash);
  if (expected) return draft;
  if (const auto* edit = fs::database_edit_of(draft.plan)) {
    // If the folder cannot be removed here, the next repair does it.
    (void)fs::remove_folder(*open.place.directory, edit->folder);
  }
  return tl::unexpected(expected.error());
}

Result<Outcome> repair(const OpenVolume& open, const std::string& engine_name,
                       const RepairArguments& arguments, ProgressPrinter& printer) {
  const auto progress = [&](const fs::Progress& state) { printer.update(state); };
  NACRE_ASSIGN(const auto choice, parse_engine(engine_name));
  NACRE_ASSIGN(const auto engine,
               engine::Engine::create(engine_options(
                   choice, [](std::string_view text) { print_error(std::string(text)); })));
  const auto wanted = fs::seed_of_hash(arguments.plan_hash);
  const fs::PlanSeed seed = wanted ? *wanted : fs::new_plan_seed();
  NACRE_ASSIGN(auto draft, make_plan(open, *engine, arguments, seed, progress));
  std::string hash = hash_of(open, draft, seed);
  Outcome outcome{.plan = std::move(draft.plan),
                  .database = std::move(draft.database),
                  .left = std::move(draft.left),
                  .plan_name = {},
                  .plan_hash = std::move(hash)};
  const auto& directory = *open.place.directory;
  if (arguments.dry_run || (outcome.plan.steps.empty() && outcome.left.error_count() == 0)) {
    return outcome;
  }
  metadata::VolumeKeys volume = open.volume;
  if (!outcome.plan.steps.empty()) {
    NACRE_ASSIGN(outcome.plan_name,
                 fs::save_plan(*open.place.directory, *open.volume.keys, outcome.plan));
    const auto applied = fs::apply_plan(open.place.directory, open.volume, outcome.plan);
    if (!applied) {
      return add_context(applied.error(),
                         fmt::format("{}: the repair was interrupted, and the next one goes on "
                                     "from there; plan {}",
                                     directory.description(), outcome.plan_name));
    }
    outcome.is_changed = true;
    volume.warnings.clear();  // they were about copies that have been repaired
  }
  NACRE_ASSIGN(outcome.after,
               fs::check_volume(open.place.directory, volume, *engine, {.deep = true}, progress));
  return outcome;
}

std::string place_of(const fs::RepairStep& step) {
  if (const auto* row = std::get_if<fs::RowEdit>(&step.change)) {
    const std::string_view what = !row->before ? "new row" : row->after ? "row" : "row removed";
    return fmt::format("{} {}", metadata::to_string(row->table), what);
  }
  if (const auto* bytes = std::get_if<fs::BytesEdit>(&step.change)) {
    return fmt::format("{} offset {}", bytes->path, bytes->offset);
  }
  if (std::holds_alternative<fs::DatabaseEdit>(step.change)) return "db/";
  return std::get<fs::FileEdit>(step.change).path;
}

void print_paths(const std::vector<std::string>& paths) {
  for (const auto& path : paths)
    print_safely("    {}\n", printable(path));
}

std::string counted(std::size_t count, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

std::string lost_words(const fs::RepairPlan& plan) {
  return counted(plan.lost.size(), "range of bytes is lost", "ranges of bytes are lost");
}

// After an undo nothing of the plan's losses stays lost.
void print_plan(const fs::RepairPlan& plan, bool is_undone) {
  for (const auto& step : plan.steps) {
    print_safely("step: {}: {}\n", printable(place_of(step)), printable(step.why));
    print_paths(step.paths);
  }
  if (is_undone) return;
  for (const auto& lost : plan.lost) {
    print_safely("lost: inode {}, {} bytes at offset {}: {}: {}; {}\n", lost.inode.value, lost.size,
                 lost.offset, to_string(lost.verdict), printable(lost.why),
                 lost.is_dropped ? "replaced by a hole" : "reading them fails from now on");
    print_paths(lost.paths);
  }
}

std::string_view words_of(fs::RowSource source) {
  switch (source) {
    case fs::RowSource::older_row:
      return "may be older than they were";
    case fs::RowSource::checkpoint:
      return "as of the checkpoint";
    case fs::RowSource::records:
      return "from the newest records that there are";
    case fs::RowSource::guess:
      return "made anew";
  }
  return "";
}

void print_database(const fs::DatabaseReport& report) {
  for (const auto& finding : report.damage.findings())
    print_safely("damaged: {}: {}\n", to_string(finding.verdict), printable(finding.what));
  if (report.may_have_lost_groups) {
    print_safely("lost: changes in the log of db/ that were in no table yet; nobody knows which\n");
  }
  if (!report.has_manifest) {
    print_safely(
        "note: without the manifest all tables in db/ count, so removed files may be back\n");
  }
  if (report.lost_range_count != 0) {
    print_safely("lost: rows in {} stretches of db/; {}\n", report.lost_range_count,
                 report.checkpoint_seconds
                     ? fmt::format("those of the checkpoint of {} take their place",
                                   metadata::rfc3339(*report.checkpoint_seconds))
                     : "no checkpoint was found to take their place");
  }
  for (const auto& rows : report.older) {
    print_safely("older: {}{} {} of {}: {}\n",
                 rows.inode ? fmt::format("inode {}, ", rows.inode->value) : "", rows.count,
                 rows.count == 1 ? "row" : "rows", metadata::to_string(rows.table),
                 words_of(rows.source));
    print_paths(rows.paths);
  }
}

std::uint64_t left_count(const Outcome& outcome) {
  return outcome.after ? outcome.after->findings.error_count() : outcome.left.error_count();
}

void print_outcome(const std::string& volume, const Outcome& outcome,
                   const RepairArguments& arguments) {
  const std::string name = printable(volume);
  const std::size_t step_count = outcome.plan.steps.size();
  const std::string steps = counted(step_count, "step", "steps");
  if (outcome.database) print_database(*outcome.database);
  print_plan(outcome.plan, !arguments.undo.empty());
  for (const auto& finding : outcome.left.findings()) {
    print_safely("left: {}: {}{}{}\n", to_string(finding.verdict), printable(finding.file),
                 finding.file.empty() ? "" : ": ", printable(finding.what));
  }
  if (!arguments.undo.empty()) {
    const std::string_view state = arguments.dry_run    ? "nothing was changed"
                                   : outcome.is_changed ? "taken back"
                                                        : "none of them had to be taken back";
    print_safely("{}: {} of {}, {}\n", name, steps, printable(arguments.undo), state);
    return;
  }
  if (outcome.after) {
    print_report(volume, *outcome.after);
  }
  if (outcome.is_changed) {
    print_safely("{}: repaired in {}, {}\n", name, steps, lost_words(outcome.plan));
    print_safely("To undo it before anything else changes: fsck.nacre --undo {} {}\n",
                 outcome.plan_name, name);
    if (outcome.database) {
      print_safely(
          "The damaged database is kept in {}/db.{}: remove that folder when you need nothing of "
          "it any more\n",
          name, outcome.plan_name);
    }
  } else if (step_count != 0) {
    print_safely("{}: {} would repair it, {}; nothing was changed\n", name, steps,
                 lost_words(outcome.plan));
    print_safely(
        "To make these changes and no others: fsck.nacre --repair{}{} --expect-plan {} {}\n",
        arguments.drop_damaged ? " --drop-damaged" : "",
        arguments.accept_unreadable ? " --accept-unreadable" : "", outcome.plan_hash, name);
  } else if (!outcome.after) {
    print_safely("{}: nothing to repair\n", name);
  }
}

void print_outcome_json(const std::string& volume, const Outcome& outcome,
                        const RepairArguments& arguments) {
  using nlohmann::json;
  json all = {{"version", NACRE_VERSION},
              {"dry_run", arguments.dry_run},
              {"undo", !arguments.undo.empty()},
              {"changed", outcome.is_changed},
              {"plan_hash", outcome.plan_hash},
              {"steps", json::array()},
              {"lost", json::array()},
              {"left", json::array()},
              {"left_count", left_count(outcome)}};
  metadata::put_bytes(all, "volume", volume);
  metadata::put_bytes(all, "plan", arguments.undo.empty() ? outcome.plan_name : arguments.undo);
  if (outcome.database) all["database"] = database_json(*outcome.database);
  const std::string text = fs::to_text(outcome.plan);
  for (std::size_t at = text.find('\n') + 1; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    json line = json::parse(text.substr(at, end - at), nullptr, false);
    if (line.contains("lost")) {
      all["lost"].push_back(line["lost"]);
    } else {
      all["steps"].push_back(std::move(line));
    }
    at = end + 1;
  }
  const auto& findings = outcome.after ? outcome.after->findings : outcome.left;
  for (const auto& finding : findings.findings()) {
    if (finding.severity == fs::Severity::note) continue;
    json left = {
        {"verdict", to_string(finding.verdict)}, {"what", finding.what}, {"file", finding.file}};
    metadata::put_bytes(left, "paths", finding.paths);
    all["left"].push_back(std::move(left));
  }
  print_as_json(all);
}

int exit_code(const Outcome& outcome, const RepairArguments& arguments) {
  if (!arguments.undo.empty()) return exit_fine;
  if (left_count(outcome) != 0) return exit_damage;
  if (outcome.plan.steps.empty()) return exit_fine;
  return arguments.dry_run ? exit_damage : exit_corrected;
}

}  // namespace

int run_repair(const std::string& volume, const SecretOptions& secret,
               const OutsideWitnessOptions& witness, const std::string& engine_name,
               const RepairArguments& arguments, bool json) {
  ProgressPrinter printer(!json || ::isatty(STDERR_FILENO) != 0);
  const auto outcome = [&]() -> Result<Outcome> {
    const auto mode =
        arguments.dry_run ? metadata::LockMode::shared : metadata::LockMode::exclusive;
    NACRE_ASSIGN(auto opened, open(volume, secret, witness, mode));
    auto done = arguments.undo.empty() ? repair(opened, engine_name, arguments, printer)
                                       : undo(opened, arguments);
    if (done && done->is_changed) {
      note_made_age(opened.place, opened.volume, opened.outside ? &*opened.outside : nullptr);
    }
    return done;
  }();
  printer.clear();
  if (!outcome) return report(outcome.error());
  if (json) {
    print_outcome_json(volume, *outcome, arguments);
  } else {
    print_outcome(volume, *outcome, arguments);
  }
  if (std::fflush(stdout) != 0) {
    print_error("the report could not be written");
    return exit_operational;
  }
  return exit_code(*outcome, arguments);
}

}  // namespace nacre::tools
