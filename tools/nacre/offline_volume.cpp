// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/offline_volume.h"

#include <spdlog/spdlog.h>

#include "tools/cli/volume_age_check.h"

namespace nacre::tools {

Result<std::unique_ptr<fs::Mounted>> open_offline(const VolumePlace& place,
                                                  const metadata::VolumeKeys& keys,
                                                  const SecretOptions& secret_options,
                                                  engine::EngineOptions engine_options) {
  NACRE_TRY(metadata::check_writable(keys.superblock));
  // The volume's messages are for the log of a mount; here standard output belongs to the command.
  spdlog::set_level(spdlog::level::warn);
  NACRE_ASSIGN(auto engine, engine::Engine::create(engine_options));
  fs::VolumeOptions options;
  options.background_compaction = false;
  options.store.chunk_size_bytes = keys.superblock.chunk_size_bytes;
  options.store.codec = keys.superblock.codec;
  options.store.level = keys.superblock.level;
  options.store.padding = keys.superblock.padding;
  options.superblock_generation = metadata::generation_to_note(keys.superblock);
  NACRE_TRY(check_age_beforehand(place, keys, secret_options));
  options.accept = [&](const metadata::Database& database) {
    return check_age(place, keys, database, secret_options);
  };
  auto volume = fs::Mounted::open(place.directory, keys.keys, keys.keyring.generation,
                                  std::move(engine), options);
  if (!volume) return add_context(volume.error(), place.path);
  note_age(place, keys, keys.keyring.generation, (*volume)->age(), Witness::Moment::opened);
  return volume;
}

Result<> close_offline(const VolumePlace& place, const metadata::VolumeKeys& keys,
                       fs::Mounted& volume) {
  NACRE_TRY(volume.close());
  note_age(place, keys, keys.keyring.generation, volume.age(), Witness::Moment::closed);
  return {};
}

}  // namespace nacre::tools
