// SPDX-License-Identifier: Apache-2.0
// Result<T> and Error: what every function of the project that can fail returns.
//
// Foreign errors (errno, rocksdb::Status, OpenSSL, cudaError_t) are translated into an ErrorCode
// once, in the folder that owns the foreign library. Verdicts about data stay apart all the way to
// the user: corrupt (rot), tampered (authentication), wrong_key, missing, rolled_back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace nacre {

enum class ErrorCode : std::uint8_t {
  // Verdicts about stored data.
  corrupt,      // CRC or structure is wrong: rot, or a damaged medium
  tampered,     // the authentication tag or the identity is wrong
  wrong_key,    // the secret does not open this volume
  missing,      // a record, segment or file that the metadata names is not there
  rolled_back,  // a part of the volume is older than another part says it must be
  // The request is wrong, or the system cannot fulfil it.
  invalid_argument,
  unsupported,  // a format version, feature or operation that this build does not have
  busy,         // another process or operation is using it
  no_space,     // ENOSPC, EDQUOT
  io,           // EIO and similar errors
  read_only,    // EROFS
  out_of_memory,
  permission,     // EACCES
  not_permitted,  // EPERM
  cancelled,
  // Answers for which POSIX has names.
  not_found,       // ENOENT
  exists,          // EEXIST
  not_directory,   // ENOTDIR
  is_directory,    // EISDIR
  not_empty,       // ENOTEMPTY
  name_too_long,   // ENAMETOOLONG
  no_attribute,    // ENODATA
  range,           // ERANGE: the buffer is too small
  too_big,         // E2BIG, EFBIG
  too_many_links,  // EMLINK
  no_position,     // ENXIO: SEEK_DATA or SEEK_HOLE past the end
  stale,           // ESTALE
};

// The code's name as messages print it, e.g. "rolled back".
std::string_view to_string(ErrorCode code);

// message says what failed and where; it is empty for answers of the hot path such as not_found.
struct Error {
  ErrorCode code;
  std::string message = {};
};

template <typename T = void>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

// Puts "where: " in front of the message.
inline tl::unexpected<Error> add_context(Error error, std::string_view where) {
  error.message =
      error.message.empty() ? std::string(where) : std::string(where) + ": " + error.message;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace nacre

// Returns the error of a Result expression from the enclosing function.
#define NACRE_TRY(expression)                                                       \
  do {                                                                              \
    if (auto nacre_try_result = (expression); !nacre_try_result)                    \
      return ::tl::unexpected<::nacre::Error>(std::move(nacre_try_result).error()); \
  } while (false)

#define NACRE_CONCAT_2(a, b) a##b
#define NACRE_CONCAT(a, b) NACRE_CONCAT_2(a, b)

// NACRE_ASSIGN(auto x, f()): declares x from the value of f(), or returns its error.
#define NACRE_ASSIGN(declaration, expression) \
  NACRE_ASSIGN_2(NACRE_CONCAT(nacre_result_, __LINE__), declaration, expression)
#define NACRE_ASSIGN_2(result, declaration, expression)                            \
  auto result = (expression);                                                      \
  if (!result) return ::tl::unexpected<::nacre::Error>(std::move(result).error()); \
  declaration = std::move(*result)
