// SPDX-License-Identifier: Apache-2.0
// The last ten minutes of mounted volumes: the server asks their daemons once a second while a page
// looks. Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "fs/control/mount_table.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"

namespace nacre::tools::web {

inline constexpr std::size_t sample_count_max = 600;         // of each mount, one a second
inline constexpr std::size_t message_count_max = 200;        // of each mount's log
inline constexpr std::size_t watched_volume_count_max = 32;  // mounts that are asked at a time

// What changes from one second to the next, of the object "stats" of two replies. seconds: between
// them. cpu_seconds: what the daemon used of the processors in that time, if it is known. A value
// that the replies do not have is null. before may be null: then rates are null.
nlohmann::json make_sample(const nlohmann::json& before, const nlohmann::json& now, double seconds,
                           std::optional<double> cpu_seconds);

class LiveHistory {
 public:
  LiveHistory() = default;
  ~LiveHistory();
  LiveHistory(const LiveHistory&) = delete;
  LiveHistory& operator=(const LiveHistory&) = delete;

  // The samples of that mount later than since (seconds since 1970), the messages of its log after
  // that number, and the daemon's last reply. The first call begins to watch the mount, and waits
  // for the first reply. Errors: those of find_nacre_mount() and ControlClient; busy if too many
  // are watched.
  Result<nlohmann::json> poll(const std::string& mountpoint, double since, std::uint64_t log_after);

 private:
  struct Watched;
  void run();
  static void ask(Watched& watched);

  Mutex mutex_;
  ConditionVariable wake_;
  std::map<std::string, std::shared_ptr<Watched>> watched_ NACRE_GUARDED_BY(mutex_);
  bool is_over_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::tools::web
