// SPDX-License-Identifier: Apache-2.0
// Reads whole small files, and replaces them as a whole.
#include <fmt/format.h>

#include "metadata/backing/backing.h"
#include "metadata/backing/path.h"

namespace nacre::metadata {

Result<Bytes> read_file(BackingDirectory& directory, std::string_view path, std::size_t size_max) {
  NACRE_ASSIGN(const auto file, directory.open(path, OpenMode::read));
  NACRE_ASSIGN(const std::uint64_t size, file->size());
  if (size > size_max) {
    return fail(ErrorCode::too_big, fmt::format("{}/{}: {} bytes, more than the {} allowed",
                                                directory.description(), path, size, size_max));
  }
  Bytes content(size);
  NACRE_ASSIGN(const std::size_t count, file->read(0, content));
  content.resize(count);
  return content;
}

Result<void> replace_file(BackingDirectory& directory, std::string_view path, ByteView content) {
  NACRE_ASSIGN(const PathParts parts, split_path(path));
  const std::string fresh = fmt::format("{}.new", path);
  const auto write = [&]() -> Result<void> {
    NACRE_ASSIGN(const auto file, directory.open(fresh, OpenMode::create_or_empty));
    NACRE_TRY(file->write(0, content));
    NACRE_TRY(file->sync());
    return directory.rename(fresh, path);
  };
  if (auto written = write(); !written) {
    static_cast<void>(directory.remove(fresh));  // the first error is the one that counts
    return written;
  }
  return directory.sync_directory(parts.folder);
}

}  // namespace nacre::metadata
