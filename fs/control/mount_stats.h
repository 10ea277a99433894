// SPDX-License-Identifier: Apache-2.0
// All counters of a mounted volume, for nacre stats and for Prometheus. Prometheus' text has counts
// and sizes alone. The JSON also has the damaged files that the scrub found and the rotation's
// message, which may name files.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "fs/control/control_server.h"

namespace nacre::fs {

struct MountStats {
  VolumeStats volume;
  RequestStats requests;
  std::string transport;  // as in ControlHandler
  std::string sandbox;    // as in ControlHandler
  std::optional<metadata::ScrubRow> scrub;
  std::optional<RotationStatus> rotation;
  std::uint64_t keyring_generation = 0;
};

MountStats gather_stats(ControlHandler& handler);

// The object "stats" of the control socket's reply; nacre-stats(1) has its fields.
nlohmann::json to_json(const MountStats& stats, bool with_histograms = false);

// Prometheus' text format, version 0.0.4. Each line of HELP in it says what a metric counts.
std::string to_prometheus(const MountStats& stats, const MountDescription& description);
// The same for a volume that is locked, which has no counters.
std::string locked_to_prometheus(const MountDescription& description);

}  // namespace nacre::fs
