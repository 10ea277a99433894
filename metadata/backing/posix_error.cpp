// SPDX-License-Identifier: Apache-2.0
#include "metadata/backing/posix_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace nacre::metadata {

ErrorCode code_of_errno(int number) {
  switch (number) {
    case ENOENT:
      return ErrorCode::not_found;
    case EEXIST:
      return ErrorCode::exists;
    case ENOTDIR:
      return ErrorCode::not_directory;
    case EISDIR:
      return ErrorCode::is_directory;
    case ENOTEMPTY:
      return ErrorCode::not_empty;
    case ENAMETOOLONG:
      return ErrorCode::name_too_long;
    case EACCES:
      return ErrorCode::permission;
    case EPERM:
      return ErrorCode::not_permitted;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::no_space;
    case EROFS:
      return ErrorCode::read_only;
    case EFBIG:
    case EOVERFLOW:
      return ErrorCode::too_big;
    case EMLINK:
      return ErrorCode::too_many_links;
    // Running out of descriptors is no fault of the medium, and may pass.
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return ErrorCode::out_of_memory;
    case ESTALE:
      return ErrorCode::stale;
    case EBUSY:
    case ETXTBSY:
      return ErrorCode::busy;
    case EINVAL:
    case ELOOP:
    case EBADF:
      return ErrorCode::invalid_argument;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::io;
  }
}

tl::unexpected<Error> fail_errno(int number, std::string_view where) {
  return fail(code_of_errno(number),
              fmt::format("{}: {}", where, std::generic_category().message(number)));
}

tl::unexpected<Error> fail_linked(const std::string& path) {
  return fail(
      ErrorCode::not_permitted,
      fmt::format("{}: the file has another name somewhere (a hard link), and a change would "
                  "change it there, too: put a copy of it in its place first",
                  path));
}

}  // namespace nacre::metadata
