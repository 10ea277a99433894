// SPDX-License-Identifier: Apache-2.0
// Mounting a volume at login, switched on and off. API.md, "Mount at login".
#include <fmt/format.h>

#include "tools/cli/user_file.h"
#include "tools/web/login_mount.h"
#include "tools/web/path_text.h"
#include "tools/web/volume_jobs.h"
#include "tools/web/volume_list.h"

namespace nacre::tools::web {

namespace {

using Outcome = tl::expected<void, WebError>;

struct LoginChange {
  LoginMount mount;
  LoginSource source = LoginSource::ask;
  std::shared_ptr<const SecretBytes> passphrase;  // for the keyring
  std::string settings_path;
};

std::vector<std::string> store_words(const std::string& volume) {
  const std::string instance = login_instance(volume);
  return {"secret-tool", "store", "--label=Nacre: " + instance, "nacre", instance};
}

std::vector<std::string> systemctl_words(const char* action, const std::string& volume) {
  return {"systemctl", "--user", action, login_unit(volume)};
}

Outcome run_words(std::vector<std::string> words, std::vector<PipedSecret> secrets, Job& job) {
  const ProgramRun run{.words = std::move(words), .secrets = std::move(secrets), .fixed_error = {}};
  const auto result = run_to_success(run, job);
  return result ? Outcome() : tl::unexpected(result.error());
}

// The passphrase is tried before it is kept, so that a mistyped one does not wait for the next
// login.
Outcome keep_in_keyring(const LoginChange& change, Job& job) {
  const std::string& volume = change.mount.volume;
  const auto tried = run_words({"nacre", "key", "list", volume},
                               {{.option = "--passphrase-fd", .secret = change.passphrase}}, job);
  if (!tried) return tried;
  return run_words(store_words(volume), {{.option = standard_input, .secret = change.passphrase}},
                   job);
}

Outcome switch_on(const LoginChange& change, Job& job) {
  NACRE_ASSIGN(const auto text, encode_login_mount(change.mount));
  if (change.source == LoginSource::keyring) {
    const auto kept = keep_in_keyring(change, job);
    if (!kept) return kept;
  }
  const auto written = UserFile(change.settings_path)
                           .replace([&](const std::string&) -> Result<std::string> { return text; },
                                    Durability::synced);
  if (!written) return tl::unexpected(WebError(written.error()));
  return run_words(systemctl_words("enable", change.mount.volume), {}, job);
}

// What the shell does instead: the settings, the keyring, the unit.
std::string command_on(const LoginChange& change, const std::string& text) {
  std::vector<std::string> lines = {"printf", "%s"};
  lines.push_back(text);
  const auto folder = change.settings_path.substr(0, change.settings_path.rfind('/'));
  std::string command = shell_line({"mkdir", "-p", folder}) + " && " + shell_line(lines) + " >" +
                        shell_quote(change.settings_path);
  if (change.source == LoginSource::keyring) {
    command += " && " + shell_line(store_words(change.mount.volume));
  }
  return command + " && " + shell_line(systemctl_words("enable", change.mount.volume));
}

Answer start_switch_on(ServerContext& context, const Fields& fields, const std::string& volume) {
  LoginChange change;
  change.mount.volume = volume;
  NACRE_ASSIGN(change.mount.mountpoint, fields.path("mountpoint"));
  NACRE_ASSIGN(const auto source_name, fields.text("source"));
  const auto source = login_source_of(source_name);
  if (!source) {
    return tl::unexpected(WebError(
        Error{ErrorCode::invalid_argument, "the field \"source\" must be keyring or ask"}));
  }
  change.source = *source;
  NACRE_ASSIGN(change.mount.passphrase_command, passphrase_command(*source, volume));
  NACRE_ASSIGN(change.settings_path, login_settings_path(volume));
  NACRE_ASSIGN(const auto text, encode_login_mount(change.mount));
  if (*source == LoginSource::keyring) {
    NACRE_TRY(fields.text("secret"));
    auto passphrase = take_secret(context.access, fields, "secret");
    if (!passphrase) return tl::unexpected(passphrase.error());
    change.passphrase = std::move(*passphrase);
  }
  const std::string command = command_on(change, text);
  const auto work = [change, command](Job& job) -> Outcome {
    auto done = switch_on(change, job);
    if (!done) done.error().where = change.mount.volume;
    if (done) job.set_result({{"at_login", login_mount_state(change.mount.volume)}});
    return done;
  };
  auto started = context.jobs.start("at_login", last_name(volume), command, work);
  if (started) (*started)->set_volume(volume);
  return job_answer(started);
}

// A mount that exists stays. The settings stay as well, since they hold no secret.
Answer start_switch_off(ServerContext& context, const std::string& volume) {
  const auto state = login_mount_state(volume);
  const bool is_in_keyring = state["source"] == "keyring";
  const std::vector<std::string> forget = {"secret-tool", "clear", "nacre", login_instance(volume)};
  std::string command = shell_line(systemctl_words("disable", volume));
  if (is_in_keyring) command += " && " + shell_line(forget);
  const auto work = [volume, is_in_keyring, forget](Job& job) -> Outcome {
    auto done = run_words(systemctl_words("disable", volume), {}, job);
    if (done && is_in_keyring) done = run_words(forget, {}, job);
    if (!done) done.error().where = volume;
    if (done) job.set_result({{"at_login", login_mount_state(volume)}});
    return done;
  };
  auto started = context.jobs.start("at_login", last_name(volume), command, work);
  if (started) (*started)->set_volume(volume);
  return job_answer(started);
}

Answer show_state(const Call& call) {
  NACRE_ASSIGN(const auto path, request_path(call.head.query_value("path")));
  return json_response({{"at_login", login_mount_state(path)}});
}

Answer change_state(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto path, fields.path("path"));
  NACRE_ASSIGN(const bool is_wanted, fields.flag("enabled"));
  if (!is_wanted) return start_switch_off(context, path);
  if (const auto found = volume_at(path); !found) return tl::unexpected(WebError(found.error()));
  return start_switch_on(context, fields, path);
}

}  // namespace

void add_login_routes(RouteTable& routes, ServerContext& context) {
  routes.get("/api/volumes/at_login", [](Call& call) { return show_state(call); });
  routes.post("/api/volumes/at_login", [&](Call& call) { return change_state(context, call); });
}

}  // namespace nacre::tools::web
