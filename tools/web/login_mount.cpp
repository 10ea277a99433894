// SPDX-License-Identifier: Apache-2.0
#include "tools/web/login_mount.h"

#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "gpu_engine/base/printable.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/text/text_bytes.h"
#include "tools/cli/user_file.h"
#include "tools/web/path_text.h"
#include "tools/web/program.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

constexpr std::size_t shown_name_size_max = 40;
constexpr std::size_t path_digest_size_bytes = 4;
constexpr std::string_view volume_name = "NACRE_VOLUME";
constexpr std::string_view mountpoint_name = "NACRE_MOUNTPOINT";
constexpr std::string_view command_name = "NACRE_PASSPHRASE_COMMAND";

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Between double quotes, systemd takes a backslash as a mark in front of these four alone.
std::string in_quotes(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') text += '\\';
    text += c;
  }
  return text + '"';
}

std::optional<std::string> unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  text.remove_prefix(1);
  text.remove_suffix(1);
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    value += text[i];
  }
  return value;
}

// What the path text of a path leaves as it is, apart from '%' and '/'.
bool is_printable_utf8(const std::string& text) {
  std::string expected;
  for (const char c : text)
    expected += c == '%' ? "%25" : std::string(1, c);
  return to_path_text(text) == expected;
}

bool is_in_search_path(const std::string& program) {
  const char* const variable = std::getenv("PATH");
  std::string_view rest(variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable);
  while (!rest.empty()) {
    const auto end = rest.find(':');
    const std::string folder(rest.substr(0, end));
    if (!folder.empty() && ::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return false;
}

// Programs that show a window for a passphrase and print it; the first that is there is taken.
struct Asker {
  const char* program;
  const char* arguments;  // {} stands for the instance
};
constexpr std::array askers = {Asker{"zenity", "--password --title='Nacre: {}'"},
                               Asker{"kdialog", "--title Nacre --password 'Passphrase of {}'"},
                               Asker{"ssh-askpass", "'Passphrase of {}'"}};

// The properties NAME=VALUE that systemctl prints.
std::map<std::string, std::string> properties_of(std::string_view text) {
  std::map<std::string, std::string> properties;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (const auto sign = line.find('='); sign != std::string_view::npos) {
      properties.emplace(line.substr(0, sign), line.substr(sign + 1));
    }
  }
  return properties;
}

// What systemd says of the unit. Fills is_available and why.
void ask_systemd(json& state, const std::string& unit) {
  const ProgramRun run{.words = {"systemctl", "--user", "show", unit,
                                 "--property=LoadState,UnitFileState,ActiveState,SubState,Result"},
                       .secrets = {},
                       .fixed_error = "systemctl failed"};
  Job job(0, "at_login", unit, "");
  const auto result = run_program(run, job);
  if (!result) {
    state["why"] = result.error().code == ErrorCode::not_found ? "this system has no systemd"
                                                               : printable(result.error().message);
    return;
  }
  if (!result->is_fine()) {
    state["why"] = fmt::format("this session has no systemd of the user's own: {}",
                               printable(program_error(run, *result).what));
    return;
  }
  auto properties = properties_of(result->output);
  if (properties["LoadState"] != "loaded") {
    state["why"] = fmt::format("systemd does not know nacre-mount@.service ({}): install Nacre",
                               printable(properties["LoadState"]));
    return;
  }
  state["is_available"] = true;
  state["is_enabled"] = properties["UnitFileState"].starts_with("enabled");
  state["active"] = properties["ActiveState"];
  state["result"] = properties["Result"];
}

std::string source_of(const std::string& command) {
  return command.starts_with("secret-tool ") ? "keyring" : "ask";
}

}  // namespace

std::string login_instance(const std::string& volume) {
  std::string name;
  for (const char c : last_name(volume)) {
    if (name.size() == shown_name_size_max) break;
    name += is_plain(c) ? c : '-';
  }
  const auto digest = engine::sha256(as_bytes(volume));
  return name + "-" + metadata::to_hex(ByteView(digest).first(path_digest_size_bytes));
}

std::string login_unit(const std::string& volume) {
  return "nacre-mount@" + login_instance(volume) + ".service";
}

Result<std::string> encode_login_mount(const LoginMount& mount) {
  for (const std::string& path : {mount.volume, mount.mountpoint}) {
    if (!is_printable_utf8(path)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("systemd cannot hold the path {}: it has bytes that are not text",
                              printable(path)));
    }
  }
  return fmt::format("{}={}\n{}={}\n{}={}\n", volume_name, in_quotes(mount.volume), mountpoint_name,
                     in_quotes(mount.mountpoint), command_name,
                     in_quotes(mount.passphrase_command));
}

std::optional<LoginMount> decode_login_mount(std::string_view text) {
  auto properties = properties_of(text);
  const auto volume = unquoted(properties[std::string(volume_name)]);
  const auto mountpoint = unquoted(properties[std::string(mountpoint_name)]);
  const auto command = unquoted(properties[std::string(command_name)]);
  if (!volume || !mountpoint || !command) return std::nullopt;
  return LoginMount{.volume = *volume, .mountpoint = *mountpoint, .passphrase_command = *command};
}

Result<std::string> login_settings_path(const std::string& volume) {
  NACRE_ASSIGN(const auto folders, user_folders());
  if (folders.front().starts_with("/var/tmp/")) {
    return fail(ErrorCode::unsupported,
                "the home folder is empty, so Nacre keeps no settings there: put a file into it");
  }
  return folders.front() + "/at-login/" + login_instance(volume) + ".conf";
}

std::optional<LoginSource> login_source_of(std::string_view name) {
  if (name == "keyring") return LoginSource::keyring;
  if (name == "ask") return LoginSource::ask;
  return std::nullopt;
}

Result<std::string> passphrase_command(LoginSource source, const std::string& volume) {
  const std::string instance = login_instance(volume);
  if (source == LoginSource::keyring) {
    if (is_in_search_path("secret-tool")) return "secret-tool lookup nacre " + instance;
    return fail(ErrorCode::not_found,
                "there is no secret-tool: install the package libsecret-tools");
  }
  for (const Asker& asker : askers) {
    if (!is_in_search_path(asker.program)) continue;
    return fmt::format("{} {}", asker.program,
                       fmt::format(fmt::runtime(asker.arguments), instance));
  }
  return fail(
      ErrorCode::not_found,
      "no program is installed that can ask for the passphrase in a window: install zenity, "
      "kdialog or ssh-askpass");
}

json login_mount_state(const std::string& volume) {
  const std::string unit = login_unit(volume);
  json state = {{"is_available", false}, {"why", ""},         {"unit", unit},
                {"is_enabled", false},   {"active", ""},      {"result", ""},
                {"mountpoint", nullptr}, {"source", nullptr}, {"settings", nullptr}};
  ask_systemd(state, unit);
  const auto path = login_settings_path(volume);
  if (!path) {
    state["is_available"] = false;
    state["why"] = path.error().message;
  } else if (const auto text = UserFile(*path).read()) {
    state["settings"] = to_path_text(*path);
    if (const auto settings = decode_login_mount(*text)) {
      state["mountpoint"] = to_path_text(settings->mountpoint);
      state["source"] = source_of(settings->passphrase_command);
    }
  }
  json sources = json::array();
  for (const auto& [name, source] :
       {std::pair{"keyring", LoginSource::keyring}, {"ask", LoginSource::ask}}) {
    const auto command = passphrase_command(source, volume);
    sources.push_back({{"name", name},
                       {"is_available", command.has_value()},
                       {"command", command ? *command : ""},
                       {"why", command ? "" : command.error().message}});
  }
  state["sources"] = std::move(sources);
  const bool is_enabled = state["is_enabled"];
  state["command"] = shell_line({"systemctl", "--user", is_enabled ? "disable" : "enable", unit});
  return state;
}

}  // namespace nacre::tools::web
