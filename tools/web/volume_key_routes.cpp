// SPDX-License-Identifier: Apache-2.0
// Passphrases and public keys of a volume, and the rotation of its keys. API.md, "Volumes".
#include "tools/nacre/recovery_key.h"
#include "tools/web/path_text.h"
#include "tools/web/volume_jobs.h"
#include "tools/web/volume_list.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

VolumeJob key_job(std::string kind, std::string path, std::vector<std::string> words) {
  return {.kind = std::move(kind),
          .path = std::move(path),
          .run = {.words = std::move(words), .secrets = {}, .fixed_error = {}},
          .command = {},
          .then = {},
          .on_failure = {}};
}

// Needs no secret. The list is what the keyring claims.
Answer list_keys(const Call& call) {
  NACRE_ASSIGN(const auto path, request_path(call.head.query_value("path")));
  const ProgramRun run{
      .words = {"nacre", "key", "list", "--json", path}, .secrets = {}, .fixed_error = {}};
  Job job(0, "key_list", path, "");
  const auto result = run_to_success(run, job);
  if (!result) {
    WebError error = result.error();
    error.where = path;
    return tl::unexpected(error);
  }
  json answer = json::parse(result->output, nullptr, false);
  if (!answer.is_object()) {
    return tl::unexpected(WebError(Error{ErrorCode::io, "nacre key list printed no JSON"}));
  }
  answer["is_verified"] = answer.value("verified", false);
  answer["command"] = shell_line({"nacre", "key", "list", path});
  return json_response(answer);
}

// The recovery key is made here and given to the command like a passphrase, so that it passes
// through no text. It is random, so it needs no slow derivation.
void add_recovery_key(ServerContext& context, VolumeJob& job, const std::string& label) {
  const auto key = std::make_shared<const SecretBytes>(make_recovery_key());
  add_option(job.run.words, "--kdf-memory", "8192");
  add_option(job.run.words, "--kdf-time", "1");
  if (label.empty()) job.run.words.emplace_back("--label=recovery key");
  job.run.secrets.push_back({.option = "--new-passphrase-fd", .secret = key});
  job.then = [&context, key](Job& done, const ProgramResult&) {
    done.set_result({{"secret", context.access.add_made_secret(key->clone())}});
  };
}

Answer add_key(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto path, fields.path("path"));
  NACRE_ASSIGN(const auto label, fields.text_or("label", ""));
  NACRE_ASSIGN(const auto recipient, fields.path_or_empty("recipient"));
  NACRE_ASSIGN(const bool is_recovery, fields.flag("recovery"));
  const bool is_passphrase = fields.has("new_secret");
  if (int{is_recovery} + int{is_passphrase} + int{!recipient.empty()} != 1) {
    return tl::unexpected(
        WebError(Error{ErrorCode::invalid_argument,
                       "give one of a new passphrase, a public key, or a recovery key"}));
  }
  VolumeJob job = key_job("key_add", path, {"nacre", "key", "add", path});
  std::vector<std::string>& words = job.run.words;
  if (!label.empty()) words.push_back("--label=" + label);
  if (!recipient.empty()) add_option(words, "--recipient", recipient);
  auto chosen = take_chosen_secret(context.access, fields, true);
  if (!chosen) return tl::unexpected(chosen.error());
  auto added = take_secret(context.access, fields, "new_secret");
  if (!added) return tl::unexpected(added.error());
  std::vector<std::string> shown = words;
  if (is_recovery) shown.emplace_back("--recovery");
  chosen->add_to_command(shown);
  job.command = shell_line(shown);
  if (is_recovery) add_recovery_key(context, job, label);
  if (*added) job.run.secrets.push_back({.option = "--new-passphrase-fd", .secret = *added});
  chosen->give_to(job.run);
  return start_volume_job(context, std::move(job));
}

// Other users of the volume compare its new fingerprint.
void show_fingerprint(Job& done, const ProgramResult& result) {
  const std::string fingerprint = printed_fingerprint(result.output);
  if (!fingerprint.empty()) done.set_result({{"fingerprint", fingerprint}});
}

Answer remove_key(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto path, fields.path("path"));
  NACRE_ASSIGN(const auto recipient, fields.text("recipient"));
  NACRE_ASSIGN(const bool revokes, fields.flag("revoke"));
  if (recipient.starts_with('-')) {
    return tl::unexpected(
        WebError(Error{ErrorCode::invalid_argument, "name this recipient by its fingerprint"}));
  }
  auto chosen = take_chosen_secret(context.access, fields, true);
  if (!chosen) return tl::unexpected(chosen.error());
  VolumeJob job = key_job("key_remove", path, {"nacre", "key", "remove"});
  if (revokes) {
    job.run.words.emplace_back("--revoke");
    job.then = &show_fingerprint;
    if (mount_of(path)) job.watched = DaemonWork::rotation;
  }
  std::vector<std::string> shown = job.run.words;
  chosen->add_to_command(shown);
  shown.insert(shown.end(), {path, recipient});
  job.command = shell_line(shown);
  chosen->give_to(job.run);
  job.run.words.insert(job.run.words.end(), {path, recipient});
  return start_volume_job(context, std::move(job));
}

Answer change_passphrase(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto path, fields.path("path"));
  NACRE_TRY(fields.text("secret"));
  NACRE_TRY(fields.text("new_secret"));
  auto old = take_secret(context.access, fields, "secret");
  if (!old) return tl::unexpected(old.error());
  auto changed = take_secret(context.access, fields, "new_secret");
  if (!changed) return tl::unexpected(changed.error());
  VolumeJob job = key_job("key_passphrase", path, {"nacre", "key", "passphrase", path});
  job.run.secrets = {{.option = "--passphrase-fd", .secret = *old},
                     {.option = "--new-passphrase-fd", .secret = *changed}};
  return start_volume_job(context, std::move(job));
}

Answer rotate(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto path, fields.path("path"));
  NACRE_ASSIGN(const auto action, fields.text_or("action", "begin"));
  VolumeJob job = key_job("rotate", path, {"nacre", "key", "rotate", path});
  std::vector<std::string>& words = job.run.words;
  if (action == "pause" || action == "resume") {
    job.kind = "rotate_" + action;
    words.push_back("--" + action);
    return start_volume_job(context, std::move(job));
  }
  if (action != "begin") {
    return tl::unexpected(WebError(
        Error{ErrorCode::invalid_argument, "the field \"action\" must be begin, pause or resume"}));
  }
  for (const auto& [field, option] :
       {std::pair{"cipher", "--cipher"}, {"codec", "--codec"}, {"rate", "--rate"}}) {
    NACRE_ASSIGN(const auto value, fields.text_or(field, ""));
    if (!value.empty()) words.push_back(std::string(option) + "=" + value);
  }
  NACRE_ASSIGN(const auto level, fields.number_or("level", 0, 0, 9));
  if (level != 0) add_option(words, "--level", std::to_string(level));
  // If the volume is mounted, its daemon goes on with the rotation.
  if (mount_of(path)) {
    words.emplace_back("--no-wait");
    job.watched = DaemonWork::rotation;
  }
  job.then = &show_fingerprint;
  auto chosen = take_chosen_secret(context.access, fields, true);
  if (!chosen) return tl::unexpected(chosen.error());
  std::vector<std::string> shown = words;
  chosen->add_to_command(shown);
  job.command = shell_line(shown);
  chosen->give_to(job.run);
  return start_volume_job(context, std::move(job));
}

}  // namespace

void add_volume_key_routes(RouteTable& routes, ServerContext& context) {
  routes.get("/api/volumes/keys", [](Call& call) { return list_keys(call); });
  routes.post("/api/volumes/keys/add", [&](Call& call) { return add_key(context, call); });
  routes.post("/api/volumes/keys/remove", [&](Call& call) { return remove_key(context, call); });
  routes.post("/api/volumes/keys/passphrase",
              [&](Call& call) { return change_passphrase(context, call); });
  routes.post("/api/volumes/rotate", [&](Call& call) { return rotate(context, call); });
}

}  // namespace nacre::tools::web
