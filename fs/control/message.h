// SPDX-License-Identifier: Apache-2.0
// The messages on the control socket: one line of JSON each way, then the end of the connection.
//
//   request   {"command": "sync" | "stats" | "info" | "trim" | "backup" | "replace_keyring" |
//             "rotate" | "rotation" |
//             "prepare_unmount"}
//             {"command": "scrub", "action": "begin" | "pause" | "resume" | "stop" | "status",
//             "rate_bytes_per_second": N}; the rate is optional and changes the rate; 0: no limit
//   reply     {"ok": true, …}  or  {"ok": false, "error": {"code": "busy", "message": "…"}}
//
// The request replace_keyring is followed by a line {"keyring": "TEXT"}. The request rotate is
// followed by as many bytes as its number "seals_size_bytes" says (rotation_requests.h): secrets,
// which stay out of text and its copies.
// The reply to backup is followed by lines {"ok": true, "files": [[PATH, SIZE], …]}.
// Names of files are bytes; they stand in fields as metadata/text/exact_bytes.h has it.
// Each end bounds sizes and times, and trusts nothing that the other end sends.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

inline constexpr std::size_t request_size_bytes_max = 4u << 10;
inline constexpr std::size_t reply_size_bytes_max = 256u << 10;
// The largest keyring with its line breaks and quotation marks escaped.
inline constexpr std::size_t keyring_line_size_bytes_max = 24u << 20;
inline constexpr std::chrono::milliseconds request_timeout{5000};
// The number of files in one line of a backup's list; their paths are short.
inline constexpr std::size_t backup_line_count_max = 2048;

// Reads up to the first newline or the end of the stream. Without a timeout it waits for ever.
// Errors: too_big past size_max; cancelled if the peer is silent for as long as the timeout; io if
// the peer closes the connection in the middle of a line.
Result<std::string> read_line(int socket, std::size_t size_max,
                              std::optional<std::chrono::milliseconds> timeout);
Result<> write_line(int socket, std::string_view line, std::chrono::milliseconds timeout);

// Reads exactly bytes.size() bytes. Errors: those of read_line(). After an error bytes may hold
// what was read before it.
Result<> read_bytes(int socket, MutableByteView bytes,
                    std::optional<std::chrono::milliseconds> timeout);
Result<> write_bytes(int socket, ByteView bytes, std::chrono::milliseconds timeout);

// Whether a JSON text nests its lists and objects at most depth_max deep. Copies and destructors of
// a JSON value recurse, so a deeper text could use up a thread's stack.
inline constexpr int json_depth_max = 64;
bool is_shallow(std::string_view text, int depth_max = json_depth_max);
// Error: invalid_argument if the text is not a JSON object, or is not shallow.
Result<nlohmann::json> parse_message(std::string_view text);

nlohmann::json error_reply(const Error& error);
// Returns the error in a reply, if there is one.
Result<> reply_result(const nlohmann::json& reply);

}  // namespace nacre::fs
