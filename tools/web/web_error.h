// SPDX-License-Identifier: Apache-2.0
// The error of a request or a job as the page shows it: what went wrong, where, and what to do
// next.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gpu_engine/base/result.h"

namespace nacre::tools::web {

struct WebError {
  WebError(Error error);  // NOLINT(google-explicit-constructor): NACRE_TRY converts with it

  unsigned status = 0;  // of HTTP
  ErrorCode code = ErrorCode::io;
  std::string what;
  std::string where;    // a path; may be empty
  std::string next;     // advice; may be empty
  std::string hint;     // names the page's own words of advice (page_words.h); may be empty
  std::string command;  // the shell line that does the same; may be empty
  std::string check;    // the security check that refused the request; may be empty
};

// The object "error" of API.md.
nlohmann::json to_json(const WebError& error);

// The refusal of a security check.
WebError refusal(std::string check, unsigned status, std::string what);

// What to do about an error of this kind; may be empty.
std::string advice_for(ErrorCode code);

}  // namespace nacre::tools::web
