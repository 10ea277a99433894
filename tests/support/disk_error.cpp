// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: a disk that fails. Reads, writes and syncs at a place in a file, and changes in a
// folder, fail with an error number. A test puts it into the file that NACRE_DISK_ERROR names (4
// bytes, in the machine's byte order); 0 means no failure. /dev/fuse, sockets and logs are used by
// other calls, which do not fail.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

const volatile std::int32_t* map_error() {
  static const std::int32_t none = 0;
  const char* path = std::getenv("NACRE_DISK_ERROR");
  const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &none;
  void* mapped = ::mmap(nullptr, sizeof none, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  return mapped == MAP_FAILED ? &none : static_cast<const std::int32_t*>(mapped);
}

// False, with errno set, while the disk fails.
bool disk_works() {
  static const volatile std::int32_t* const place = map_error();
  const std::int32_t error = *place;
  if (error != 0) errno = error;
  return error == 0;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pread(int file, void* out, size_t size, off_t offset) {
  static const auto real = next<decltype(&pread)>("pread");
  return disk_works() ? real(file, out, size, offset) : -1;
}
ssize_t pread64(int file, void* out, size_t size, off64_t offset) {
  static const auto real = next<decltype(&pread64)>("pread64");
  return disk_works() ? real(file, out, size, offset) : -1;
}
ssize_t pwritev(int file, const iovec* pieces, int count, off_t offset) {
  static const auto real = next<decltype(&pwritev)>("pwritev");
  return disk_works() ? real(file, pieces, count, offset) : -1;
}
ssize_t pwritev64(int file, const iovec* pieces, int count, off64_t offset) {
  static const auto real = next<decltype(&pwritev64)>("pwritev64");
  return disk_works() ? real(file, pieces, count, offset) : -1;
}
int fdatasync(int file) {
  static const auto real = next<decltype(&fdatasync)>("fdatasync");
  return disk_works() ? real(file) : -1;
}
int fsync(int file) {
  static const auto real = next<decltype(&fsync)>("fsync");
  return disk_works() ? real(file) : -1;
}
int ftruncate(int file, off_t size) noexcept {
  static const auto real = next<decltype(&ftruncate)>("ftruncate");
  return disk_works() ? real(file, size) : -1;
}
int ftruncate64(int file, off64_t size) noexcept {
  static const auto real = next<decltype(&ftruncate64)>("ftruncate64");
  return disk_works() ? real(file, size) : -1;
}
int unlinkat(int folder, const char* name, int flags) noexcept {
  static const auto real = next<decltype(&unlinkat)>("unlinkat");
  return disk_works() ? real(folder, name, flags) : -1;
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  static const auto real = next<decltype(&renameat)>("renameat");
  return disk_works() ? real(from_folder, from, to_folder, to) : -1;
}

}  // extern "C"
