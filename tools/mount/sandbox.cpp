// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

namespace nacre::tools {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t own_architecture = 0;
#endif

constexpr std::uint32_t deny = SECCOMP_RET_ERRNO | EPERM;
// The calls of x32, which the architecture's number does not tell from those of x86-64.
constexpr std::uint32_t x32_bit = 0x40000000;

constexpr int run_programs[] = {SYS_execve, SYS_execveat};

constexpr int never_made[] = {
    // Other processes' memory and state.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_perf_event_open,
    SYS_pidfd_getfd,
    SYS_process_madvise,
    // Helpers of attacks on the kernel.
    SYS_userfaultfd,
    SYS_bpf,
    // The kernel's keyrings. Nacre keeps no key in them.
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    // Mounts are made before, and unmounting stays allowed.
    SYS_mount,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_fanotify_init,
    SYS_quotactl,
    SYS_quotactl_fd,
    // The machine.
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
#ifdef __x86_64__
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
#endif
};

constexpr sock_filter statement(unsigned code, std::uint32_t value) {
  return {static_cast<std::uint16_t>(code), 0, 0, value};
}
// Goes on with the next but one if the value compares like that.
constexpr sock_filter skip_one_if(unsigned comparison, std::uint32_t value) {
  return {static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K), 1, 0, value};
}
constexpr sock_filter skip_one_unless(unsigned comparison, std::uint32_t value) {
  return {static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K), 0, 1, value};
}

std::vector<sock_filter> program(const SandboxNeeds& needs) {
  std::vector<sock_filter> code = {
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      skip_one_if(BPF_JEQ, own_architecture),
      statement(BPF_RET | BPF_K, deny),
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
#ifdef __x86_64__
  code.push_back(skip_one_unless(BPF_JGE, x32_bit));
  code.push_back(statement(BPF_RET | BPF_K, deny));
#endif
  for (const int call : forbidden_calls(needs)) {
    code.push_back(skip_one_unless(BPF_JEQ, static_cast<std::uint32_t>(call)));
    code.push_back(statement(BPF_RET | BPF_K, deny));
  }
  code.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return code;
}

}  // namespace

std::vector<int> forbidden_calls(const SandboxNeeds& needs) {
  std::vector<int> calls(std::begin(never_made), std::end(never_made));
  if (!needs.runs_programs) {
    calls.insert(calls.end(), std::begin(run_programs), std::end(run_programs));
  }
  return calls;
}

Result<> enter_sandbox(const SandboxNeeds& needs) {
  if (own_architecture == 0) {
    return fail(ErrorCode::unsupported, "there is no table of calls for this architecture");
  }
  auto code = program(needs);
  const sock_fprog filter{.len = static_cast<std::uint16_t>(code.size()), .filter = code.data()};
  // SPEC_ALLOW: older kernels would otherwise switch off speculation for every filtered thread,
  // which costs speed and has nothing to do with calls.
  const long result =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
  if (result == 0) return {};
  if (result > 0) return fail(ErrorCode::io, fmt::format("thread {} has another filter", result));
  const int error = errno;
  const auto code_of_error = error == EACCES || error == EPERM    ? ErrorCode::not_permitted
                             : error == ENOSYS || error == EINVAL ? ErrorCode::unsupported
                                                                  : ErrorCode::io;
  return fail(
      code_of_error,
      code_of_error == ErrorCode::not_permitted
          ? fmt::format("seccomp: {}; only daemons of root's mounts can have a sandbox, since "
                        "others could not unmount within one",
                        strerror(error))
          : fmt::format("seccomp: {}", strerror(error)));
}

}  // namespace nacre::tools
