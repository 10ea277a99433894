// SPDX-License-Identifier: Apache-2.0
// The newest messages of a daemon's log, as the log has them, for the control socket. The messages
// name files only where the log does (tools/mount/logging.h). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

struct LogMessage {
  std::uint64_t number = 0;  // from 1; each later message has the next one
  std::int64_t time_ms = 0;  // since 1970, UTC
  std::string level;         // as in the log: "info", "warning", "error"
  std::string text;          // one printable line
};

class RecentMessages {
 public:
  // One reply of the control socket has room for this many messages of this size.
  static constexpr std::size_t message_count_max = 200;
  static constexpr std::size_t text_size_bytes_max = 512;

  // A longer text is cut off, and ends in "…" then.
  void add(std::int64_t time_ms, std::string_view level, std::string_view text);
  // Returns the kept messages with a larger number, the oldest first.
  std::vector<LogMessage> after(std::uint64_t number) const;

 private:
  mutable Mutex mutex_;
  std::uint64_t last_number_ NACRE_GUARDED_BY(mutex_) = 0;
  std::deque<LogMessage> messages_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
