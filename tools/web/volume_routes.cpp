// SPDX-License-Identifier: Apache-2.0
// The list of volumes; making, mounting and unmounting one. API.md, "Volumes".
#include <unistd.h>

#include <filesystem>

#include "metadata/backing/posix_error.h"
#include "tools/cli/new_volume_place.h"
#include "tools/web/path_text.h"
#include "tools/web/volume_jobs.h"
#include "tools/web/volume_list.h"

namespace nacre::tools::web {

namespace {

// Gives the job the state of the volume after it.
void show_volume(Job& job, const std::string& path) {
  if (auto volume = volume_at(path)) job.set_result({{"volume", std::move(*volume)}});
}

Answer make_volume(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  VolumeJob job{.kind = "make", .path = {}, .run = {}, .command = {}, .then = {}, .on_failure = {}};
  NACRE_ASSIGN(job.path, fields.path("path"));
  std::vector<std::string>& words = job.run.words;
  words = {"mkfs.nacre", job.path};
  for (const auto& [field, option] : {std::pair{"label", "--label"},
                                      {"codec", "--codec"},
                                      {"cipher", "--cipher"},
                                      {"padding", "--padding"},
                                      {"chunk_size", "--chunk-size"}}) {
    NACRE_ASSIGN(const auto value, fields.text_or(field, ""));
    // An option and its value are one word, so a value that begins with '-' is not taken for an
    // option.
    if (!value.empty()) words.push_back(std::string(option) + "=" + value);
  }
  NACRE_ASSIGN(const auto level, fields.number_or("level", 0, 0, 9));
  if (level != 0) add_option(words, "--level", std::to_string(level));
  NACRE_ASSIGN(const bool allows_legacy, fields.flag("allow_legacy_cipher"));
  if (allows_legacy) words.emplace_back("--allow-legacy-cipher");
  NACRE_ASSIGN(const auto recipients, fields.paths("recipients"));
  for (const std::string& recipient : recipients)
    add_option(words, "--recipient", recipient);
  if (recipients.empty() && !fields.has("secret")) {
    return tl::unexpected(
        WebError(Error{ErrorCode::invalid_argument,
                       "nothing would open the volume: give a passphrase or a public key"}));
  }
  auto passphrase = take_secret(context.access, fields, "secret");
  if (!passphrase) return tl::unexpected(passphrase.error());
  job.command = shell_line(words);
  if (*passphrase) job.run.secrets = {{.option = "--passphrase-fd", .secret = *passphrase}};
  job.then = [path = job.path](Job& done, const ProgramResult&) { show_volume(done, path); };
  return start_volume_job(context, std::move(job));
}

// Checks a place for a new volume. The wizard does that before it asks for a passphrase.
Answer check_place(const Call& call) {
  NACRE_ASSIGN(const auto path, request_path(call.head.query_value("path")));
  const auto checked = check_new_volume_place(path);
  if (checked) return json_response({{"path", to_path_text(path)}});
  WebError error(checked.error());
  error.where = path;
  return tl::unexpected(error);
}

Answer mount(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  VolumeJob job{
      .kind = "mount", .path = {}, .run = {}, .command = {}, .then = {}, .on_failure = {}};
  NACRE_ASSIGN(job.path, fields.path("path"));
  NACRE_ASSIGN(const auto mountpoint, fields.path("mountpoint"));
  NACRE_ASSIGN(const bool makes_mountpoint, fields.flag("make_mountpoint"));
  NACRE_ASSIGN(const bool read_only, fields.flag("read_only"));
  NACRE_ASSIGN(const bool accepts_older, fields.flag("accept_older_state"));
  NACRE_ASSIGN(const auto engine, fields.text_or("engine", "auto"));
  NACRE_ASSIGN(const auto fingerprint, fields.text_or("fingerprint", ""));
  std::vector<std::string>& words = job.run.words;
  words = {"mount.nacre"};
  if (read_only) add_option(words, "-o", "ro");
  if (engine != "auto") words.push_back("--engine=" + engine);
  if (accepts_older) words.emplace_back("--accept-older-state");
  if (!fingerprint.empty()) words.push_back("--fingerprint=" + fingerprint);
  words.insert(words.end(), {job.path, mountpoint});
  auto chosen = take_chosen_secret(context.access, fields, true);
  if (!chosen) return tl::unexpected(chosen.error());
  std::vector<std::string> shown = words;
  chosen->add_to_command(shown);
  job.command = shell_line(shown);
  chosen->give_to(job.run);
  std::error_code error;
  if (makes_mountpoint && !std::filesystem::exists(mountpoint, error) && !error) {
    std::filesystem::create_directories(mountpoint, error);
    if (error) {
      return tl::unexpected(WebError(metadata::fail_errno(error.value(), mountpoint).value()));
    }
    job.command = shell_line({"mkdir", "-p", mountpoint}) + " && " + job.command;
    job.on_failure = [mountpoint] { ::rmdir(mountpoint.c_str()); };  // stays unless it is empty
  }
  job.then = [path = job.path](Job& done, const ProgramResult&) { show_volume(done, path); };
  return start_volume_job(context, std::move(job));
}

Answer unmount(ServerContext& context, const Call& call) {
  NACRE_ASSIGN(const auto mountpoint, Fields(call.body).path("mountpoint"));
  return start_volume_job(
      context, {.kind = "unmount",
                .path = mountpoint,
                .run = {.words = {"nacre", "umount", mountpoint}, .secrets = {}, .fixed_error = {}},
                .command = {},
                .then = {},
                .on_failure = {}});
}

// For a mount whose daemon has ended, and for one that programs still use.
Answer detach(ServerContext& context, const Call& call) {
  NACRE_ASSIGN(const auto mountpoint, Fields(call.body).path("mountpoint"));
  if (const auto found = fs::find_nacre_mount(mountpoint); !found) {
    return tl::unexpected(WebError(found.error()));
  }
  std::vector<std::string> words = {"fusermount3", "-u", "-z", mountpoint};
  if (::geteuid() == 0) words = {"umount", "-l", mountpoint};
  return start_volume_job(context,
                          {.kind = "detach",
                           .path = mountpoint,
                           .run = {.words = std::move(words), .secrets = {}, .fixed_error = {}},
                           .command = {},
                           .then = {},
                           .on_failure = {}});
}

Answer open_folder(const Call& call) {
  NACRE_ASSIGN(const auto mountpoint, Fields(call.body).path("mountpoint"));
  if (const auto found = fs::find_nacre_mount(mountpoint); !found) {
    return tl::unexpected(WebError(found.error()));
  }
  const std::vector<std::string> words = {"xdg-open", mountpoint};
  if (const auto opened = launch_program(words); !opened) {
    WebError error(Error{
        ErrorCode::unsupported,
        "the folder cannot be shown: this machine has no xdg-open. Install the package xdg-utils"});
    error.where = mountpoint;
    error.next = "Open the folder in your file manager.";
    error.command = shell_line(words);
    return tl::unexpected(error);
  }
  return json_response({{"command", shell_line(words)}});
}

Answer show_volume_at(const Call& call) {
  NACRE_ASSIGN(const auto path, request_path(call.head.query_value("path")));
  auto volume = volume_at(path);
  if (!volume) {
    WebError error(volume.error());
    error.where = path;
    error.next = "Choose the folder that holds the file 'superblock', or make a new volume.";
    return tl::unexpected(error);
  }
  return json_response({{"volume", std::move(*volume)}});
}

}  // namespace

void add_volume_routes(RouteTable& routes, ServerContext& context) {
  routes.get("/api/volumes", [](Call&) -> Answer {
    return json_response({{"volumes", list_volumes()}});
  });
  routes.get("/api/volumes/at", [](Call& call) { return show_volume_at(call); });
  routes.get("/api/volumes/place", [](Call& call) { return check_place(call); });
  routes.post("/api/volumes/make", [&](Call& call) { return make_volume(context, call); });
  routes.post("/api/volumes/mount", [&](Call& call) { return mount(context, call); });
  routes.post("/api/volumes/unmount", [&](Call& call) { return unmount(context, call); });
  routes.post("/api/volumes/detach", [&](Call& call) { return detach(context, call); });
  routes.post("/api/volumes/open", [](Call& call) { return open_folder(call); });
}

}  // namespace nacre::tools::web
