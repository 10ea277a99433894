// SPDX-License-Identifier: Apache-2.0
#include "fs/check/finding.h"

#include <utility>

namespace nacre::fs {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::structure:
      return "structure";
    case Verdict::rot:
      return "rot";
    case Verdict::tampered:
      return "tampered";
    case Verdict::missing:
      return "missing";
    case Verdict::rolled_back:
      return "rolled back";
    case Verdict::unreadable:
      return "unreadable";
  }
  return "unknown";
}

std::string_view to_string(Severity severity) {
  return severity == Severity::note ? "note" : "error";
}

Verdict verdict_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::corrupt:
    case ErrorCode::unsupported:  // a version or number that this volume cannot hold
      return Verdict::rot;
    case ErrorCode::tampered:
    case ErrorCode::wrong_key:
      return Verdict::tampered;
    case ErrorCode::missing:
    case ErrorCode::not_found:
      return Verdict::missing;
    case ErrorCode::rolled_back:
      return Verdict::rolled_back;
    default:
      return Verdict::unreadable;
  }
}

void FindingList::add(Finding finding) {
  if (finding.severity == Severity::error) ++error_count_;
  if (findings_.size() >= kept_count_max) {
    ++dropped_count_;
    return;
  }
  findings_.push_back(std::move(finding));
}

void FindingList::add_error(const Error& error, std::string file,
                            std::optional<std::uint64_t> offset, Severity severity) {
  std::string what = error.message.empty() ? std::string(to_string(error.code)) : error.message;
  // If the message begins with the file's name, the name is not printed twice.
  if (const std::string prefix = file + ": "; !file.empty() && what.starts_with(prefix)) {
    what.erase(0, prefix.size());
  }
  add({.severity = severity,
       .verdict = verdict_of(error.code),
       .what = std::move(what),
       .file = std::move(file),
       .offset = offset});
}

}  // namespace nacre::fs
