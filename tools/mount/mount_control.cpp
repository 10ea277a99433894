// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/mount_control.h"

#include <chrono>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "tools/mount/logging.h"

namespace nacre::tools {

Result<std::shared_ptr<const void>> MountControl::begin_command() {
  NACRE_ASSIGN(auto use, volume_.use());
  return std::make_shared<LockableVolume::Use>(std::move(use));
}

// The kernel may still be sending what syncfs() made it write back (it does not always wait), so
// a commit counts when no write arrived around it and all that had arrived were done. What was
// refused is told from here: the kernel tells whoever asks first, and also of things that are no
// harm (docs/KERNEL.md, "Killed processes").
Result<> MountControl::sync() {
  constexpr int rounds_max = 20;
  constexpr auto quiet_time = std::chrono::milliseconds(20);
  for (int round = 0;; ++round) {
    const auto before = write_count();
    std::this_thread::sleep_for(quiet_time);
    const bool is_quiet = session_.has_all_writes();
    NACRE_TRY(mounted().volume().sync_all());
    // A program that writes without a pause is not waited for.
    if ((is_quiet && write_count() == before) || round == rounds_max) break;
  }
  return session_.take_refusal();
}

Result<std::vector<fs::LogMessage>> MountControl::messages_after(std::uint64_t number) {
  return recent_messages().after(number);
}

Result<fs::BackupSnapshot> MountControl::begin_backup() {
  const auto synced = sync();
  if (!synced && synced.error().code != ErrorCode::no_space) return tl::unexpected(synced.error());
  return mounted().begin_backup();
}

Result<> MountControl::replace_recipients(std::string_view text) {
  // This comes before a file changes, because the row must be able to follow it.
  metadata::KeyringKeeper& keyring = volume_.opened().keyring();
  NACRE_TRY(mounted().note_keyring_generation(keyring.generation()));
  NACRE_TRY(keyring.replace_recipients(as_bytes(text)));
  spdlog::info("the keyring was changed; its generation is now {}", keyring.generation());
  return {};
}

}  // namespace nacre::tools
