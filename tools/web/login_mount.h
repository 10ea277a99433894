// SPDX-License-Identifier: Apache-2.0
// Volumes that are mounted when their user logs in: instances of nacre-mount@.service in the user's
// own systemd. Each instance has a small file of settings, ~/.config/nacre/at-login/INSTANCE.conf,
// which holds paths and the command that prints the passphrase, and never a passphrase.
//
// Whether it is switched on is asked of systemd each time. Nothing is remembered here.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "gpu_engine/base/result.h"

namespace nacre::tools::web {

struct LoginMount {
  std::string volume;      // absolute path
  std::string mountpoint;  // absolute path
  std::string passphrase_command;
};

// The instance of a volume: the name of its folder, as far as it has letters, digits and '-', and
// digits that follow from the whole path. It needs no escaping in a unit's name or in sh.
std::string login_instance(const std::string& volume);
std::string login_unit(const std::string& volume);

// The text of a file of settings, as EnvironmentFile= of systemd.exec(5) reads it, and back. Error:
// invalid_argument if a path has a control character or bytes that are not UTF-8, which systemd
// would refuse.
Result<std::string> encode_login_mount(const LoginMount& mount);
std::optional<LoginMount> decode_login_mount(std::string_view text);

// The path of a volume's file of settings. Error: missing if the user has no folder for it, and
// unsupported if that folder is not the one where the unit looks.
Result<std::string> login_settings_path(const std::string& volume);

// Where the passphrase can come from.
enum class LoginSource : std::uint8_t {
  keyring,  // secret-tool looks it up in the desktop's keyring
  ask,      // a window asks
};
std::optional<LoginSource> login_source_of(std::string_view name);
// The command for this source on this machine. Error: not_found, with a sentence, if no program for
// it is there.
Result<std::string> passphrase_command(LoginSource source, const std::string& volume);

// The object "at_login" of API.md: what systemd says of the volume's unit, the settings, and what
// this machine has.
nlohmann::json login_mount_state(const std::string& volume);

}  // namespace nacre::tools::web
