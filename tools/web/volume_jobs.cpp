// SPDX-License-Identifier: Apache-2.0
#include "tools/web/volume_jobs.h"

#include "tools/web/path_text.h"
#include "tools/web/volume_list.h"

namespace nacre::tools::web {

Answer start_volume_job(ServerContext& context, VolumeJob job) {
  const std::string command = job.command.empty() ? shell_line(job.run.words) : job.command;
  const auto work = [job, command](Job& running) -> tl::expected<void, WebError> {
    const auto result = run_to_success(job.run, running, job.allowed_exits);
    if (!result) {
      if (job.on_failure) job.on_failure();
      WebError error = result.error();
      error.where = job.path;
      // Keeps the command that the message named, if it is another one.
      if (error.command.empty() || error.command == shell_line(job.run.words)) {
        error.command = command;
      }
      return tl::unexpected(std::move(error));
    }
    if (job.then) job.then(running, *result);
    if (job.watched) return watch_daemon_work(running, job.path, *job.watched);
    return {};
  };
  const std::string volume = volume_of(job.path);
  auto started = context.jobs.start(job.kind, last_name(volume), command, work);
  if (started) (*started)->set_volume(volume);
  return job_answer(started);
}

void add_option(std::vector<std::string>& words, const char* option, const std::string& value) {
  words.emplace_back(option);
  words.push_back(value);
}

nlohmann::json printed_json(const ProgramResult& result) {
  auto printed = nlohmann::json::parse(result.output, nullptr, false);
  if (!printed.is_object()) printed = nlohmann::json::object();
  printed["exit_status"] = result.exit_status;
  return printed;
}

}  // namespace nacre::tools::web
