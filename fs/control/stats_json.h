// SPDX-License-Identifier: Apache-2.0
// Writes a mounted volume's counters as JSON, for the control socket and `nacre stats --json`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fs/control/request_metrics.h"
#include "fs/mount/mounted.h"
#include "metadata/format/scrub_row.h"

namespace nacre::fs {

// Names end in the unit of their numbers: _bytes, _count, _ns. nacre-stats(1) has the others.
nlohmann::json to_json(const VolumeStats& stats);
nlohmann::json to_json(const CompactionReport& report);
// with_histograms adds "buckets": pairs of the index of a bucket (log_histogram.h) and its count.
nlohmann::json to_json(const RequestStats& stats, bool with_histograms = false);
// Times are in the form of RFC 3339, or empty.
nlohmann::json to_json(const metadata::ScrubRow& row);

}  // namespace nacre::fs
