// SPDX-License-Identifier: Apache-2.0
// Writes messages with separate fields: to systemd's journal by its native protocol, or to a file
// as one line of JSON each.
#pragma once

#include <memory>
#include <string>

#include <spdlog/sinks/sink.h>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

// Fields: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, SYSLOG_FACILITY, NACRE_VOLUME. Error: not_found if
// no journal listens. A message that the journal does not take is lost.
Result<std::shared_ptr<spdlog::sinks::sink>> make_journal_sink(const std::string& program,
                                                               const std::string& volume);

// The bytes of a field for the journal: a line NAME=VALUE. If the value has line breaks: the name,
// the size as 8 bytes, and the value. https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
void append_journal_field(std::string& datagram, std::string_view name, std::string_view value);

// {"time": RFC 3339 in UTC with milliseconds, "level", "pid", "program", "volume", "message"}, and
// "volume_base64" if the volume's name is not UTF-8 (metadata/text/exact_bytes.h); the file exists
// already and is opened for appending.
std::shared_ptr<spdlog::sinks::sink> make_json_sink(const std::string& path,
                                                    const std::string& program,
                                                    const std::string& volume);

}  // namespace nacre::tools
