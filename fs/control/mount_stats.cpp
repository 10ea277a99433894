// SPDX-License-Identifier: Apache-2.0
// Collects a mount's counters, and writes them as JSON.
#include "fs/control/mount_stats.h"

#include <nlohmann/json.hpp>

#include "fs/control/rotation_requests.h"
#include "fs/control/stats_json.h"

namespace nacre::fs {

MountStats gather_stats(ControlHandler& handler) {
  MountStats stats{.volume = handler.stats(),
                   .requests = handler.request_stats(),
                   .transport = handler.transport(),
                   .sandbox = handler.sandbox()};
  if (auto scrub = handler.scrub(ScrubCommand::status, {})) stats.scrub = std::move(*scrub);
  if (const Rotation* rotation = handler.rotation()) stats.rotation = rotation->status();
  stats.keyring_generation = handler.keyring_generation();
  return stats;
}

nlohmann::json to_json(const MountStats& stats, bool with_histograms) {
  nlohmann::json result = to_json(stats.volume);
  result["uptime_seconds"] = stats.requests.counted_seconds;
  result["keyring_generation"] = stats.keyring_generation;
  result["transport"] = stats.transport;
  result["sandbox"] = stats.sandbox;
  result["requests"] = to_json(stats.requests, with_histograms);
  if (stats.scrub) result["scrub"] = to_json(*stats.scrub);
  if (stats.rotation) result["rotation"] = to_json(*stats.rotation);
  return result;
}

}  // namespace nacre::fs
