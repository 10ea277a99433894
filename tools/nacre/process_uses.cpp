// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/process_uses.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "gpu_engine/base/printable.h"

namespace nacre::tools {

namespace {

namespace files = std::filesystem;

// The kernel's own form of a device number.
constexpr unsigned kernel_minor_bits = 20;

struct BoundSocket {
  unsigned inode = 0;
  unsigned device = 0;
};

void take_socket(const nlmsghdr& header, std::vector<BoundSocket>& found) {
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      header.nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg))) {
    return;
  }
  const auto* message = static_cast<const unix_diag_msg*>(NLMSG_DATA(&header));
  auto left = static_cast<unsigned>(header.nlmsg_len - NLMSG_LENGTH(sizeof *message));
  for (const auto* at = reinterpret_cast<const rtattr*>(message + 1); RTA_OK(at, left);
       at = RTA_NEXT(at, left)) {
    if (at->rta_type != UNIX_DIAG_VFS || RTA_PAYLOAD(at) < sizeof(unix_diag_vfs)) continue;
    unix_diag_vfs file{};
    std::memcpy(&file, RTA_DATA(at), sizeof file);
    found.push_back({.inode = message->udiag_ino, .device = file.udiag_vfs_dev});
  }
}

// The Unix sockets of this network namespace that have a name in a file system (sock_diag(7)).
std::vector<BoundSocket> bound_sockets() {
  std::vector<BoundSocket> found;
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (socket < 0) return found;
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = AF_UNIX;
  question.request.udiag_states = ~0u;
  question.request.udiag_show = UDIAG_SHOW_VFS;
  bool is_done = ::send(socket, &question, sizeof question, 0) < 0;
  alignas(nlmsghdr) std::array<char, 64 << 10> answer;
  while (!is_done) {
    const ssize_t got = ::recv(socket, answer.data(), answer.size(), 0);
    if (got <= 0) break;
    auto left = static_cast<unsigned>(got);
    for (const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
         NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
      is_done = is_done || header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR;
      take_socket(*header, found);
    }
  }
  ::close(socket);
  return found;
}

pid_t pid_of(const files::path& folder) {
  const std::string text = folder.filename();
  pid_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Nearly all threads of a process share one table of files; it is not looked through again.
bool shares_files(pid_t thread, pid_t process) {
  return ::syscall(SYS_kcmp, thread, process, KCMP_FILES, 0, 0) == 0;
}

}  // namespace

std::string name_of_process(const files::path& folder) {
  std::string name;
  std::ifstream file(folder / "comm");
  std::getline(file, name);
  return fmt::format("process {} ({})", folder.filename().string(), printable(name));
}

MountedDevice::MountedDevice(unsigned device_major, unsigned device_minor)
    : major_(device_major), minor_(device_minor) {
  for (const BoundSocket& socket : bound_sockets()) {
    if (socket.device == (major_ << kernel_minor_bits | minor_)) {
      sockets_.insert(fmt::format("socket:[{}]", socket.inode));
    }
  }
}

bool MountedDevice::holds(const files::path& link) const {
  struct statx status = {};
  return ::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &status) == 0 &&
         status.stx_dev_major == major_ && status.stx_dev_minor == minor_;
}

bool MountedDevice::is_bound_here(const files::path& link) const {
  std::error_code error;
  return !sockets_.empty() && sockets_.count(files::read_symlink(link, error)) > 0;
}

// "7f00-7f01 r--s 00000000 00:2d 12  /path"
bool MountedDevice::is_mapped(const files::path& folder) const {
  const std::string device = fmt::format(" {:02x}:{:02x} ", major_, minor_);
  std::ifstream maps(folder / "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(device) != std::string::npos) return true;
  }
  return false;
}

void MountedDevice::add_files(const files::path& thread, const std::string& who,
                              std::vector<std::string>& uses) const {
  std::error_code error;
  bool has_file = false, has_socket = false;
  for (const auto& file : files::directory_iterator(thread / "fd", error)) {
    has_file = has_file || holds(file.path());
    has_socket = has_socket || is_bound_here(file.path());
  }
  if (has_file) uses.push_back(who + "has a file open in it");
  if (has_socket) uses.push_back(who + "has a socket that is bound to a name in it");
}

std::vector<std::string> MountedDevice::uses_of(const files::path& folder) const {
  std::vector<std::string> uses;
  const pid_t process = pid_of(folder);
  const auto add_folders = [&](const files::path& thread, const std::string& who) {
    if (holds(thread / "cwd")) uses.push_back(who + "has its current directory in it");
    if (holds(thread / "root")) uses.push_back(who + "has its root directory in it");
  };
  add_folders(folder, "");
  if (holds(folder / "exe")) {
    uses.emplace_back("runs a program from it");
  } else if (is_mapped(folder)) {
    uses.emplace_back("maps a file of it");
  }
  add_files(folder, "", uses);
  std::error_code error;
  for (const auto& thread : files::directory_iterator(folder / "task", error)) {
    const pid_t number = pid_of(thread.path());
    if (number == process || !uses.empty()) continue;
    const std::string who = fmt::format("in its thread {} ", number);
    add_folders(thread.path(), who);
    if (!shares_files(number, process)) add_files(thread.path(), who, uses);
  }
  return uses;
}

}  // namespace nacre::tools
