// SPDX-License-Identifier: Apache-2.0
#include "tools/web/live_history.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "fs/control/control_client.h"
#include "gpu_engine/base/printable.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds interval{1};
constexpr std::chrono::seconds watched_after_poll{600};
constexpr std::chrono::milliseconds reply_timeout{2000};

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The number at a path of names; null if it is not there.
json number_at(const json& object, std::initializer_list<const char*> names) {
  const json* at = &object;
  for (const char* name : names) {
    const auto found = at->is_object() ? at->find(name) : at->end();
    if (found == at->end()) return {};
    at = &*found;
  }
  return at->is_number() ? *at : json();
}

// The growth of a counter; null if it is missing, or fell because the daemon is another one.
json growth(const json& before, const json& now, std::initializer_list<const char*> names) {
  const json first = number_at(before, names), second = number_at(now, names);
  if (first.is_null() || second.is_null()) return {};
  const double grown = second.get<double>() - first.get<double>();
  return grown < 0 ? json() : json(grown);
}

json per_second(const json& growth, double seconds) {
  return growth.is_null() || seconds <= 0 ? json() : json(growth.get<double>() / seconds);
}

json operations_json(const json& before, const json& now, double seconds) {
  json rows = json::object();
  const auto requests = now.find("requests");
  if (requests == now.end() || !requests->contains("operations")) return rows;
  for (const auto& [name, counts] : requests->at("operations").items()) {
    const char* const key = name.c_str();
    const json count = growth(before, now, {"requests", "operations", key, "count"});
    const json sum = growth(before, now, {"requests", "operations", key, "sum_ns"});
    if (count.is_null() || count.get<double>() <= 0) continue;
    constexpr double ns_per_us = 1000;
    rows[name] = {
        {"per_second", per_second(count, seconds)},
        {"mean_us",
         sum.is_null() ? json() : json(sum.get<double>() / count.get<double>() / ns_per_us)}};
  }
  return rows;
}

// The share of the time in which each device was busy.
json devices_json(const json& before, const json& now, double seconds) {
  json rows = json::array();
  const auto list_of = [](const json& stats) {
    const auto engine = stats.is_object() ? stats.find("engine") : stats.end();
    return engine == stats.end() ? json() : engine->value("devices", json());
  };
  const json first = list_of(before), second = list_of(now);
  for (std::size_t i = 0; second.is_array() && i < second.size(); ++i) {
    const json busy = first.is_array() && i < first.size()
                          ? per_second(growth(first[i], second[i], {"busy_ns"}), seconds)
                          : json();
    constexpr double ns_per_second = 1e9;
    rows.push_back(
        {{"name", second[i].value("name", "")},
         {"number", number_at(second[i], {"number"})},
         {"busy_share", busy.is_null() ? busy : json(busy.get<double>() / ns_per_second)},
         {"input_rate", first.is_array() && i < first.size()
                            ? per_second(growth(first[i], second[i], {"input_bytes"}), seconds)
                            : json()}});
  }
  return rows;
}

// utime + stime of /proc/PID/stat, proc(5), in seconds.
std::optional<double> cpu_seconds_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(name_end + 1));
  std::string word;
  constexpr int words_before_utime = 11;
  for (int i = 0; i < words_before_utime; ++i)
    words >> word;
  double user = 0, system = 0;
  words >> user >> system;
  if (!words) return std::nullopt;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

json make_sample(const json& before, const json& now, double seconds,
                 std::optional<double> cpu_seconds) {
  json requests;
  const json operations = operations_json(before, now, seconds);
  for (const auto& [name, row] : operations.items()) {
    if (row["per_second"].is_null()) continue;
    requests =
        (requests.is_null() ? 0.0 : requests.get<double>()) + row["per_second"].get<double>();
  }
  const json hits = growth(before, now, {"cache_hit_count"});
  const json misses = growth(before, now, {"cache_miss_count"});
  json hit_share;
  if (!hits.is_null() && !misses.is_null() && hits.get<double>() + misses.get<double>() > 0) {
    hit_share = hits.get<double>() / (hits.get<double>() + misses.get<double>());
  }
  return {{"write_rate",
           per_second(growth(before, now, {"segments", "appended_plain_bytes"}), seconds)},
          {"stored_rate", per_second(growth(before, now, {"segments", "appended_bytes"}), seconds)},
          {"requests_per_second", requests.is_null() && !before.is_null() ? json(0.0) : requests},
          {"cache_hit_share", hit_share},
          {"data_bytes", number_at(now, {"data_bytes"})},
          {"stored_bytes", number_at(now, {"segments", "stored_bytes"})},
          {"live_bytes", number_at(now, {"segments", "live_bytes"})},
          {"dead_bytes", number_at(now, {"segments", "dead_bytes"})},
          {"dirty_bytes", number_at(now, {"dirty_bytes"})},
          {"cached_bytes", number_at(now, {"cached_bytes"})},
          {"devices", devices_json(before, now, seconds)},
          {"cpu_share", cpu_seconds && seconds > 0 ? json(*cpu_seconds / seconds) : json()},
          {"operations", operations}};
}

struct LiveHistory::Watched {
  explicit Watched(fs::MountEntry entry) : mount(std::move(entry)) {}
  const fs::MountEntry mount;
  Mutex mutex;  // guards what follows; held while the daemon is asked
  Clock::time_point last_poll NACRE_GUARDED_BY(mutex) = Clock::now();
  std::deque<json> samples NACRE_GUARDED_BY(mutex);
  json latest NACRE_GUARDED_BY(mutex);
  std::deque<json> messages NACRE_GUARDED_BY(mutex);      // of the daemon's log
  std::uint64_t last_number NACRE_GUARDED_BY(mutex) = 0;  // of those
  pid_t logging_daemon NACRE_GUARDED_BY(mutex) = 0;
  std::uint64_t last_of_daemon NACRE_GUARDED_BY(mutex) = 0;  // its own number
  std::optional<Error> error NACRE_GUARDED_BY(mutex);
  Clock::time_point asked NACRE_GUARDED_BY(mutex);
  std::optional<double> cpu_seconds NACRE_GUARDED_BY(mutex);

  void ask_for_messages() NACRE_REQUIRES(mutex);
};

// Adds what the daemon has logged since the last call. A daemon of an earlier version keeps no
// messages. Numbers follow the time, so that they rise even where another daemon came, or where
// this history began anew while a page was asleep.
void LiveHistory::Watched::ask_for_messages() {
  auto client = fs::ControlClient::connect(mount);
  if (!client) return;
  if (client->daemon_pid() != logging_daemon) {
    logging_daemon = client->daemon_pid();
    last_of_daemon = 0;
  }
  const auto reply =
      client->request_with({{"command", "log"}, {"after", last_of_daemon}}, reply_timeout);
  const json log = reply ? reply->value("log", json()) : json();
  if (!log.is_array()) return;
  for (const json& one : log) {
    const json number = number_at(one, {"number"}), time_ms = number_at(one, {"time_ms"});
    const bool is_message = number.is_number_unsigned() && time_ms.is_number_unsigned() &&
                            one.value("text", json()).is_string() &&
                            one.value("level", json()).is_string();
    if (!is_message) continue;
    last_of_daemon = std::max(last_of_daemon, number.get<std::uint64_t>());
    last_number = std::max(last_number + 1, time_ms.get<std::uint64_t>());
    constexpr double ms_per_second = 1000;
    messages.push_back({{"number", last_number},
                        {"time", time_ms.get<double>() / ms_per_second},
                        {"level", printable(one["level"].get<std::string>())},
                        {"text", printable(one["text"].get<std::string>())}});
    if (messages.size() > message_count_max) messages.pop_front();
  }
}

LiveHistory::~LiveHistory() {
  {
    const LockGuard lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LiveHistory::ask(Watched& watched) {
  const LockGuard lock(watched.mutex);
  auto client = fs::ControlClient::connect(watched.mount);
  Result<json> reply = client ? client->request("stats", reply_timeout)
                              : Result<json>(tl::unexpected(client.error()));
  if (!reply || !reply->contains("stats")) {
    watched.error =
        reply ? Error{ErrorCode::io, "the daemon's answer has no stats"} : reply.error();
    watched.latest = {};  // the next answer may be another daemon's
    watched.cpu_seconds.reset();
    return;
  }
  watched.error.reset();
  const auto now = Clock::now();
  const auto cpu = cpu_seconds_of(client->daemon_pid());
  const std::optional<double> used =
      cpu && watched.cpu_seconds ? std::optional(*cpu - *watched.cpu_seconds) : std::nullopt;
  const double seconds = std::chrono::duration<double>(now - watched.asked).count();
  json& stats = (*reply)["stats"];
  json sample = make_sample(watched.latest, stats, seconds, used);
  sample["time"] = seconds_since_1970();
  watched.samples.push_back(std::move(sample));
  if (watched.samples.size() > sample_count_max) watched.samples.pop_front();
  watched.latest = std::move(stats);
  watched.asked = now;
  watched.cpu_seconds = cpu;
  watched.ask_for_messages();
}

Result<json> LiveHistory::poll(const std::string& mountpoint, double since,
                               std::uint64_t log_after) {
  NACRE_ASSIGN(const auto mount, fs::find_nacre_mount(mountpoint));
  // A later mount at the same place is watched anew.
  const std::string key =
      fmt::format("{}:{} {}", mount.device_major, mount.device_minor, mount.mountpoint);
  std::shared_ptr<Watched> watched;
  bool is_new = false;
  {
    const LockGuard lock(mutex_);
    auto& place = watched_[key];
    if (!place) {
      if (watched_.size() > watched_volume_count_max) {
        watched_.erase(key);
        return fail(ErrorCode::busy, "too many volumes are watched: close some pages");
      }
      place = std::make_shared<Watched>(mount);
      is_new = true;
    }
    watched = place;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  if (is_new) ask(*watched);
  const LockGuard lock(watched->mutex);
  watched->last_poll = Clock::now();
  json samples = json::array();
  for (const json& sample : watched->samples) {
    if (sample["time"].get<double>() > since) samples.push_back(sample);
  }
  json messages = json::array();
  for (const json& message : watched->messages) {
    if (message["number"].get<std::uint64_t>() > log_after) messages.push_back(message);
  }
  if (watched->error) return tl::unexpected(*watched->error);
  return json{{"interval", interval.count()},
              {"now", seconds_since_1970()},
              {"samples", std::move(samples)},
              {"log", std::move(messages)},
              {"latest", watched->latest}};
}

void LiveHistory::run() {
  UniqueLock lock(mutex_);
  while (!is_over_) {
    wake_.wait_for(lock, interval);
    if (is_over_) return;
    std::vector<std::shared_ptr<Watched>> due;
    for (auto at = watched_.begin(); at != watched_.end();) {
      Watched& watched = *at->second;
      UniqueLock own(watched.mutex);
      const bool is_old = Clock::now() - watched.last_poll > watched_after_poll;
      own.unlock();
      if (is_old) {
        at = watched_.erase(at);
      } else {
        due.push_back(at->second);
        ++at;
      }
    }
    lock.unlock();
    for (const auto& watched : due)
      ask(*watched);
    lock.lock();
  }
}

}  // namespace nacre::tools::web
