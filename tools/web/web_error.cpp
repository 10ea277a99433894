// SPDX-License-Identifier: Apache-2.0
#include "tools/web/web_error.h"

#include <nlohmann/json.hpp>

#include "gpu_engine/base/printable.h"
#include "tools/web/page_words.h"

namespace nacre::tools::web {

namespace {

unsigned status_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
    case ErrorCode::missing:
      return 404;
    case ErrorCode::permission:
    case ErrorCode::not_permitted:
    case ErrorCode::read_only:
      return 403;
    case ErrorCode::busy:
    case ErrorCode::exists:
    case ErrorCode::not_empty:
      return 409;
    case ErrorCode::too_big:
      return 413;
    case ErrorCode::corrupt:
    case ErrorCode::tampered:
    case ErrorCode::wrong_key:
    case ErrorCode::rolled_back:
      return 422;
    case ErrorCode::no_space:
      return 507;
    case ErrorCode::io:
    case ErrorCode::out_of_memory:
      return 500;
    case ErrorCode::unsupported:
      return 501;
    default:
      return 400;
  }
}

}  // namespace

std::string advice_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::wrong_key:
      return "Check the passphrase (Caps Lock, keyboard layout), or use another one or a key file.";
    case ErrorCode::corrupt:
      return "Check the disk, and restore the file or the volume from a backup.";
    case ErrorCode::tampered:
      return "Do not trust this copy. Restore it from a backup.";
    case ErrorCode::rolled_back:
      return "Use the newer copy, or say that the older state is meant.";
    case ErrorCode::busy:
      return "Wait until the other program is done, or end it, and try again.";
    case ErrorCode::no_space:
      return "Free some space on the disk, or choose another folder.";
    case ErrorCode::permission:
    case ErrorCode::not_permitted:
      return "Choose a folder or file that is yours, or ask its owner.";
    case ErrorCode::exists:
      return "Choose another name, or allow that it is replaced.";
    case ErrorCode::read_only:
      return "Choose a place that can be written.";
    case ErrorCode::stale:
      return "Unmount the folder, and mount the volume again.";
    case ErrorCode::out_of_memory:
      return "Close other programs, and try again.";
    default:
      return {};
  }
}

WebError::WebError(Error error)
    : status(status_for(error.code)),
      code(error.code),
      what(std::move(error.message)),
      next(advice_for(error.code)) {
  if (what.empty()) what = std::string(to_string(code));
  use_page_words(*this);
}

nlohmann::json to_json(const WebError& error) {
  return {{"code", std::string(to_string(error.code))},
          {"what", printable_lines(error.what)},
          {"where", printable(error.where)},
          {"next", printable(error.next)},
          {"hint", error.hint},
          {"command", printable(error.command)},
          {"check", error.check.empty() ? nlohmann::json() : nlohmann::json(error.check)}};
}

WebError refusal(std::string check, unsigned status, std::string what) {
  WebError error(Error{ErrorCode::not_permitted, std::move(what)});
  error.status = status;
  error.check = std::move(check);
  error.next = "";
  return error;
}

}  // namespace nacre::tools::web
