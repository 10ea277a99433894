// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/hardening.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "gpu_engine/publickey/openssl_memory.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

// The most devices that may lie on top of each other; more than this is a loop.
constexpr int device_depth_max = 8;

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// dm-crypt names itself in the mapping's uuid. A stack of devices is encrypted if a device is, or
// if every device below it is.
bool is_encrypted(const std::filesystem::path& device, int depth = 0) {
  if (depth > device_depth_max) return false;
  if (first_line(device / "dm/uuid").starts_with("CRYPT-")) return true;
  std::error_code error;
  bool any = false;
  for (const auto& below : std::filesystem::directory_iterator(device / "slaves", error)) {
    if (!is_encrypted(below.path(), depth + 1)) return false;
    any = true;
  }
  return any;
}

}  // namespace

void harden_process() {
  engine::wipe_what_openssl_frees();
  // If a debugger or root makes the process dumpable again, its core dump holds no memory. This
  // must come first, because a process that is not dumpable may not open its own file unless it is
  // root.
  std::ofstream("/proc/self/coredump_filter") << "0";
#ifndef NACRE_SANITIZER
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &none);
  rlimit lock{};
  if (::getrlimit(RLIMIT_MEMLOCK, &lock) == 0) {
    lock.rlim_cur = lock.rlim_max;
    ::setrlimit(RLIMIT_MEMLOCK, &lock);
  }
}

std::string unencrypted_swap(const std::string& swaps, const std::string& sys) {
  std::istringstream lines(swaps);
  std::string line;
  std::getline(lines, line);  // the heading
  std::string found;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string path, type;
    fields >> path >> type;
    if (path.empty() || path.starts_with("/dev/zram")) continue;
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
      const dev_t device = S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
      if (is_encrypted(fmt::format("{}/dev/block/{}:{}", sys, major(device), minor(device)))) {
        continue;
      }
    }
    found += (found.empty() ? "" : ", ") + path;
  }
  return found;
}

void warn_of_unencrypted_swap() {
  std::ifstream file("/proc/swaps");
  std::ostringstream text;
  text << file.rdbuf();
  const auto areas = unencrypted_swap(text.str());
  if (areas.empty()) return;
  print_warning(
      fmt::format("swap is on and seems not to be encrypted ({}): what files of the volume "
                  "hold may be written there in the clear. Keys are locked in memory",
                  areas));
}

}  // namespace nacre::tools
