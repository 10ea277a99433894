// SPDX-License-Identifier: Apache-2.0
// Carries verdicts through RocksDB's Status and back.
#include "metadata/sealed_fs/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace nacre::metadata {
namespace {

constexpr auto last_code = ErrorCode::stale;

// The end of a message of Nacre's. What RocksDB adds to the message follows it.
constexpr std::string_view end_mark = "{end}";

struct Verdict {
  ErrorCode code;
  std::string message;  // without the marks
};

std::optional<Verdict> find_verdict(const std::string& message) {
  for (std::size_t open = message.find('{'); open != std::string::npos;
       open = message.find('{', open + 1)) {
    const std::size_t close = message.find('}', open);
    if (close == std::string::npos) return std::nullopt;
    const std::string_view name(&message[open + 1], close - open - 1);
    for (unsigned number = 0; number <= static_cast<unsigned>(last_code); number++) {
      const auto code = static_cast<ErrorCode>(number);
      if (name != to_string(code)) continue;
      std::size_t rest = close + 1;
      if (rest < message.size() && message[rest] == ' ') rest++;
      const std::size_t end = std::min(message.find(end_mark, rest), message.size());
      return Verdict{code, message.substr(rest, end - rest)};
    }
  }
  return std::nullopt;
}

ErrorCode code_of(const rocksdb::Status& status) {
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit)
    return ErrorCode::no_space;
  if (status.IsPathNotFound()) return ErrorCode::missing;
  if (status.IsMemoryLimit()) return ErrorCode::out_of_memory;
  switch (status.code()) {
    case rocksdb::Status::kNotFound:
      return ErrorCode::not_found;
    case rocksdb::Status::kCorruption:
      return ErrorCode::corrupt;
    case rocksdb::Status::kNotSupported:
      return ErrorCode::unsupported;
    case rocksdb::Status::kInvalidArgument:
      return ErrorCode::invalid_argument;
    case rocksdb::Status::kBusy:
    case rocksdb::Status::kTimedOut:
    case rocksdb::Status::kTryAgain:
      return ErrorCode::busy;
    case rocksdb::Status::kAborted:
    case rocksdb::Status::kShutdownInProgress:
      return ErrorCode::cancelled;
    default:
      return ErrorCode::io;
  }
}

std::string marked(const Error& error) {
  return fmt::format("{{{}}} {}{}", to_string(error.code), error.message, end_mark);
}

}  // namespace

rocksdb::IOStatus to_io_status(const Error& error) {
  if (error.code == ErrorCode::not_found) {
    return to_io_status(Error{ErrorCode::missing, error.message});
  }
  const std::string message = marked(error);
  switch (error.code) {
    case ErrorCode::corrupt:
    case ErrorCode::tampered:
    case ErrorCode::wrong_key:
    case ErrorCode::rolled_back:
      return rocksdb::IOStatus::Corruption(message);
    case ErrorCode::missing:
      return rocksdb::IOStatus::PathNotFound(message);
    case ErrorCode::no_space:
      return rocksdb::IOStatus::NoSpace(message);
    case ErrorCode::unsupported:
      return rocksdb::IOStatus::NotSupported(message);
    default:
      return rocksdb::IOStatus::IOError(message);
  }
}

rocksdb::IOStatus to_plain_io_error(const Error& error) {
  return rocksdb::IOStatus::IOError(marked(error));
}

rocksdb::IOStatus to_io_status(const Result<void>& result) {
  return result ? rocksdb::IOStatus::OK() : to_io_status(result.error());
}

Error to_error(const rocksdb::Status& status, std::string_view where) {
  const std::string message = status.ToString();
  if (auto verdict = find_verdict(message)) {
    return {verdict->code, fmt::format("{}: {}", where, verdict->message)};
  }
  return {code_of(status), fmt::format("{}: RocksDB: {}", where, message)};
}

}  // namespace nacre::metadata
