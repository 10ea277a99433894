// SPDX-License-Identifier: Apache-2.0
// Jobs that run a program on a volume: what mounting, keys, checks and backups share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/web/chosen_secret.h"
#include "tools/web/daemon_work.h"
#include "tools/web/program.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

struct VolumeJob {
  std::string kind;  // of the job
  std::string path;  // of the volume or its mount point, for messages
  ProgramRun run;
  std::string command;  // empty: that of run, without options that are added
  std::vector<int> allowed_exits = {0};
  // Called after the program ended well, to give the job its result.
  std::function<void(Job& job, const ProgramResult& result)> then;
  std::function<void()> on_failure;
  std::optional<DaemonWork> watched = {};  // what the program began in a daemon
};

Answer start_volume_job(ServerContext& context, VolumeJob job);

// Adds an option with its value.
void add_option(std::vector<std::string>& words, const char* option, const std::string& value);

// What the program printed, if it is a JSON object; else an empty one. With "exit_status".
nlohmann::json printed_json(const ProgramResult& result);

}  // namespace nacre::tools::web
