// SPDX-License-Identifier: Apache-2.0
#include "tools/web/daemon_work.h"

#include <fmt/format.h>

#include "fs/control/control_client.h"
#include "gpu_engine/base/printable.h"
#include "tools/web/volume_list.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds watch_interval{500};
constexpr std::chrono::milliseconds answer_timeout{2000};
constexpr std::string_view fingerprint_words = "the volume's new fingerprint";

std::string text(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

Result<json> ask(const fs::MountEntry& mount, DaemonWork work) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  if (work == DaemonWork::scrub) {
    return client.scrub(fs::ScrubCommand::status, std::nullopt, answer_timeout);
  }
  NACRE_ASSIGN(const json reply, client.request("rotation", answer_timeout));
  const auto found = reply.find("rotation");
  return found == reply.end() ? json::object() : *found;
}

// What the page shows of work that goes on ("stage.NAME" of its texts).
std::string stage_of(const json& status, DaemonWork work) {
  const std::string state = text(status, "state");
  if (state != "running") return state;
  const std::string stage = text(status, "stage");
  return work == DaemonWork::scrub ? "scrub" : stage.empty() ? "running" : stage;
}

// Nothing while it goes on.
std::optional<tl::expected<void, WebError>> end_of(const json& status, DaemonWork work) {
  const std::string state = text(status, "state");
  if (state == "running" || state == "paused" || state == "waiting") return std::nullopt;
  const std::string why = text(status, work == DaemonWork::scrub ? "error" : "message");
  if (work == DaemonWork::scrub && why.empty()) return tl::expected<void, WebError>();
  if (state == "none") return tl::expected<void, WebError>();
  const auto code = state == "damaged" ? ErrorCode::corrupt : ErrorCode::io;
  return tl::unexpected(WebError(Error{
      code,
      printable(why.empty()
                    ? "the daemon stopped the work without giving a reason; its log may have one"
                    : why)}));
}

}  // namespace

tl::expected<void, WebError> watch_daemon_work(Job& job, const std::string& volume,
                                               DaemonWork work) {
  job.hand_over();
  while (!job.is_cancelled()) {
    const auto mount = mount_of(volume);
    const auto status = mount ? ask(*mount, work) : Result<json>(fail(ErrorCode::stale));
    if (!status) {
      job.show_progress(mount ? "silent" : "unmounted", "bytes", 0, std::nullopt);
    } else if (auto end = end_of(*status, work)) {
      if (work == DaemonWork::scrub) job.set_result(*status);
      return std::move(*end);
    } else {
      const std::uint64_t total = number(*status, "total_bytes");
      job.show_progress(stage_of(*status, work), "bytes", number(*status, "done_bytes"),
                        total == 0 ? std::nullopt : std::optional(total));
    }
    job.wait_until_cancelled(watch_interval);
  }
  return tl::unexpected(WebError(Error{
      ErrorCode::cancelled, "the job was taken off the list; the volume goes on with the work"}));
}

std::string printed_fingerprint(const std::string& output) {
  const auto at = output.rfind(fingerprint_words);
  if (at == std::string::npos) return {};
  const auto begin = output.find_first_not_of(' ', at + fingerprint_words.size());
  if (begin == std::string::npos) return {};
  return output.substr(begin, output.find('\n', begin) - begin);
}

}  // namespace nacre::tools::web
