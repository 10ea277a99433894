// SPDX-License-Identifier: Apache-2.0
// What goes over the control socket: one line of JSON each way, then the end.
//
//   request   {"command": "sync" | "stats" | "info" | "trim" | "backup" | "replace_keyring" |
//             "rotate" | "rotation" |
//             "prepare_unmount"}
//             {"command": "scrub", "action": "begin" | "pause" | "resume" | "stop" | "status",
//             "rate_bytes_per_second": N}, the rate only where another is wanted; 0: no limit
//   reply     {"ok": true, …}  or  {"ok": false, "error": {"code": "busy", "message": "…"}}
//
// The request replace_keyring is followed by a line {"keyring": "TEXT"}.
// The reply to backup is followed by lines {"ok": true, "files": [[PATH, SIZE], …]}.
// Both ends check sizes and times and take nothing for granted about the other.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

inline constexpr std::size_t request_size_bytes_max = 4u << 10;
inline constexpr std::size_t reply_size_bytes_max = 256u << 10;
// The largest keyring with its line breaks and quotation marks escaped.
inline constexpr std::size_t keyring_line_size_bytes_max = 24u << 20;
inline constexpr std::chrono::milliseconds request_timeout{5000};
// Files in one line of a backup's list; their paths are short.
inline constexpr std::size_t backup_line_count_max = 2048;

// Reads up to the first newline or the end of the stream. too_big past size_max; cancelled when the
// peer is silent for timeout (none: for ever); io when it goes away in the middle of a line.
Result<std::string> read_line(int socket, std::size_t size_max,
                              std::optional<std::chrono::milliseconds> timeout);
Result<> write_line(int socket, std::string_view line, std::chrono::milliseconds timeout);

// invalid_argument when the text is not a JSON object.
Result<nlohmann::json> parse_message(std::string_view text);

nlohmann::json error_reply(const Error& error);
// The error that a reply carries, if it does.
Result<> reply_result(const nlohmann::json& reply);

}  // namespace nacre::fs
