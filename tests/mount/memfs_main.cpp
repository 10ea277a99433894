// SPDX-License-Identifier: Apache-2.0
// memory_mount MOUNTPOINT [OPTIONS]: serves a volume in memory until it is unmounted or told to
// end. It shows the cost of the way through the kernel without a volume below it, which is the
// floor for benchmarks. With it the POSIX suites tell faults of the FUSE layer from those of the
// volume. OPTIONS as after -o.
#include <csignal>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/fuse/fuse_session.h"
#include "fs/fuse/mount_options.h"
#include "tests/support/memory_volume.h"

namespace {

nacre::fs::FuseSession* session_to_end = nullptr;

void on_signal(int) {
  if (session_to_end != nullptr) session_to_end->request_exit();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: memory_mount MOUNTPOINT [OPTION,…]\n");
    return 2;
  }
  nacre::fs::FuseOptions options;
  nacre::fs::VolumeOptions unused;
  options.fsname = "memory";
  if (argc == 3) {
    if (const auto parsed = nacre::fs::parse_mount_options(argv[2], options, unused); !parsed) {
      fmt::print(stderr, "memory_mount: {}\n", parsed.error().message);
      return 2;
    }
  }
  nacre::tests::MemoryVolume volume;
  auto session = nacre::fs::FuseSession::create(volume.served(), argv[1], options);
  if (!session) {
    fmt::print(stderr, "memory_mount: {}\n", session.error().message);
    return 8;
  }
  session_to_end = session->get();
  std::signal(SIGTERM, on_signal);
  std::signal(SIGINT, on_signal);
  const auto served = (*session)->run([] {
    fmt::print("ready\n");
    std::fflush(stdout);
  });
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  if (!served) {
    fmt::print(stderr, "memory_mount: {}\n", served.error().message);
    return 8;
  }
  const nacre::fs::OpcodeCounts counts = (*session)->opcode_counts();
  for (std::uint32_t opcode = 0; opcode < counts.size(); ++opcode) {
    if (counts[opcode] == 0) continue;
    fmt::print("{:>10} {}\n", counts[opcode], nacre::fs::opcode_name(opcode));
  }
  return 0;
}
