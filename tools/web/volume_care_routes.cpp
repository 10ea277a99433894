// SPDX-License-Identifier: Apache-2.0
// Scrub, check, repair and backup of a volume. API.md, "Volumes".
#include "gpu_engine/base/printable.h"
#include "tools/cli/exit_code.h"
#include "tools/web/path_text.h"
#include "tools/web/volume_jobs.h"
#include "tools/web/volume_list.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

VolumeJob care_job(std::string kind, std::string path, std::vector<std::string> words) {
  return {
      .kind = std::move(kind),
      .path = std::move(path),
      .run = {.words = std::move(words), .secrets = {}, .fixed_error = {}},
      .command = {},
      .then = [](Job& done, const ProgramResult& result) { done.set_result(printed_json(result)); },
      .on_failure = {}};
}

Answer scrub(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto path, fields.path("path"));
  NACRE_ASSIGN(const auto action, fields.text_or("action", "begin"));
  NACRE_ASSIGN(const auto rate, fields.text_or("rate", ""));
  std::vector<std::string> words = {"nacre", "scrub", path};
  if (action == "pause" || action == "resume" || action == "stop") {
    words.push_back("--" + action);
  } else if (action != "begin") {
    return tl::unexpected(WebError(Error{
        ErrorCode::invalid_argument, "the field \"action\" must be begin, pause, resume or stop"}));
  }
  if (!rate.empty()) words.push_back("--rate=" + rate);
  // If the volume is mounted, its daemon does the scrub. Otherwise this job does it.
  const bool is_the_daemons = action == "begin" && mount_of(path);
  if (is_the_daemons) words.emplace_back("--background");
  VolumeJob job = care_job(action == "begin" ? "scrub" : "scrub_" + action, path, words);
  if (is_the_daemons) job.watched = DaemonWork::scrub;
  job.command = shell_line(words);
  job.run.words.emplace_back("--json");
  job.allowed_exits = {exit_fine, exit_damage};
  return start_volume_job(context, std::move(job));
}

Answer check(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto path, fields.path("path"));
  NACRE_ASSIGN(const auto depth, fields.text_or("depth", "structure"));
  std::vector<std::string> words = {"fsck.nacre", path};
  if (depth == "checksums") {
    words.emplace_back("--scrub");
  } else if (depth == "deep") {
    words.emplace_back("--deep");
  } else if (depth != "structure") {
    return tl::unexpected(WebError(Error{
        ErrorCode::invalid_argument, "the field \"depth\" must be structure, checksums or deep"}));
  }
  auto chosen = take_chosen_secret(context.access, fields, depth != "checksums");
  if (!chosen) return tl::unexpected(chosen.error());
  VolumeJob job = care_job("check", path, words);
  chosen->add_to_command(words);
  job.command = shell_line(words);
  job.run.words.emplace_back("--json");
  job.allowed_exits = {exit_fine, exit_damage};
  chosen->give_to(job.run);
  return start_volume_job(context, std::move(job));
}

// One line for each step of a repair, for people.
json plan_lines(const json& printed) {
  json lines = json::array();
  for (const json& step : printed.value("steps", json::array())) {
    lines.push_back({{"kind", step.value("step", "")},
                     {"why", printable(step.value("why", ""))},
                     {"paths", step.value("paths", json::array())}});
  }
  for (const json& lost : printed.value("lost", json::array())) {
    lines.push_back({{"kind", lost.value("dropped", false) ? "dropped" : "lost"},
                     {"why", printable(lost.value("why", ""))},
                     {"size", lost.value("size", json())},
                     {"offset", lost.value("offset", json())},
                     {"paths", lost.value("paths", json::array())}});
  }
  return lines;
}

// Without the bytes that each step changes, which may be many.
json repair_json(const ProgramResult& result) {
  const json printed = printed_json(result);
  return {{"plan", plan_lines(printed)},
          {"step_count", printed.value("steps", json::array()).size()},
          {"lost_count", printed.value("lost", json::array()).size()},
          {"left", printed.value("left", json::array())},
          {"left_count", printed.value("left_count", json())},
          {"database", printed.value("database", json())},
          {"is_changed", printed.value("changed", false)},
          {"saved_plan", printed.value("plan", json())},
          {"plan_hash", printed.value("plan_hash", "")},
          {"exit_status", result.exit_status}};
}

Answer repair(ServerContext& context, const Call& call, bool is_plan) {
  const Fields fields(call.body);
  ShownPlan shown_plan;
  NACRE_ASSIGN(shown_plan.volume, fields.path("path"));
  NACRE_ASSIGN(shown_plan.drop_damaged, fields.flag("drop_damaged"));
  NACRE_ASSIGN(const auto plan_id, fields.text_or("plan_id", ""));
  std::vector<std::string> words = {"fsck.nacre", shown_plan.volume, "--repair"};
  if (is_plan) words.emplace_back("--dry-run");
  if (shown_plan.drop_damaged) words.emplace_back("--drop-damaged");
  if (!is_plan) {
    const auto hash =
        context.repair_plans.take(plan_id, shown_plan.volume, shown_plan.drop_damaged);
    if (!hash) {
      return tl::unexpected(WebError(
          Error{ErrorCode::invalid_argument,
                "no plan of this repair was shown within ten minutes: make the plan first"}));
    }
    add_option(words, "--expect-plan", *hash);
  }
  auto chosen = take_chosen_secret(context.access, fields, true);
  if (!chosen) return tl::unexpected(chosen.error());
  VolumeJob job = care_job(is_plan ? "repair_plan" : "repair", shown_plan.volume, words);
  chosen->add_to_command(words);
  job.command = shell_line(words);
  job.run.words.emplace_back("--json");
  job.allowed_exits = {exit_fine, exit_corrected, exit_damage};
  chosen->give_to(job.run);
  job.then = [&context, is_plan, shown_plan](Job& done, const ProgramResult& result) {
    json answer = repair_json(result);
    if (is_plan) {
      ShownPlan made = shown_plan;
      made.hash = answer.value("plan_hash", "");
      answer["plan_id"] = context.repair_plans.add(std::move(made));
    }
    done.set_result(std::move(answer));
  };
  return start_volume_job(context, std::move(job));
}

Answer back_up(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto path, fields.path("path"));
  NACRE_ASSIGN(const auto target, fields.path("target"));
  NACRE_ASSIGN(const bool verifies, fields.flag("verify"));
  std::vector<std::string> words = {"nacre", "backup", path, target};
  if (verifies) words.emplace_back("--verify");
  VolumeJob job = care_job("backup", path, words);
  job.command = shell_line(words);
  job.run.words.emplace_back("--json");
  return start_volume_job(context, std::move(job));
}

}  // namespace

void add_volume_care_routes(RouteTable& routes, ServerContext& context) {
  routes.post("/api/volumes/scrub", [&](Call& call) { return scrub(context, call); });
  routes.post("/api/volumes/check", [&](Call& call) { return check(context, call); });
  routes.post("/api/volumes/repair_plan", [&](Call& call) { return repair(context, call, true); });
  routes.post("/api/volumes/repair", [&](Call& call) { return repair(context, call, false); });
  routes.post("/api/volumes/backup", [&](Call& call) { return back_up(context, call); });
}

}  // namespace nacre::tools::web
