// SPDX-License-Identifier: Apache-2.0
// The names of the error codes as messages print them.
#include "gpu_engine/base/result.h"

namespace nacre {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::tampered:
      return "tampered";
    case ErrorCode::wrong_key:
      return "wrong key";
    case ErrorCode::missing:
      return "missing";
    case ErrorCode::rolled_back:
      return "rolled back";
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::no_space:
      return "no space";
    case ErrorCode::io:
      return "input/output error";
    case ErrorCode::read_only:
      return "read-only";
    case ErrorCode::out_of_memory:
      return "out of memory";
    case ErrorCode::permission:
      return "permission denied";
    case ErrorCode::not_permitted:
      return "not permitted";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::exists:
      return "exists";
    case ErrorCode::not_directory:
      return "not a directory";
    case ErrorCode::is_directory:
      return "is a directory";
    case ErrorCode::not_empty:
      return "not empty";
    case ErrorCode::name_too_long:
      return "name too long";
    case ErrorCode::no_attribute:
      return "no such attribute";
    case ErrorCode::range:
      return "buffer too small";
    case ErrorCode::too_big:
      return "too big";
    case ErrorCode::too_many_links:
      return "too many links";
    case ErrorCode::no_position:
      return "no such position";
    case ErrorCode::stale:
      return "stale";
  }
  return "unknown error";
}

}  // namespace nacre
