// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/repair_fixture.h"

#include <fmt/format.h>

namespace nacre::tests {

void store_superblock_and_keyring(MemoryBacking& backing, std::uint32_t chunk_size_bytes) {
  metadata::Superblock superblock{.volume_id = test_keys()->volume_id(),
                                  .chunk_size_bytes = chunk_size_bytes};
  NACRE_ASSERT_OK(metadata::save_superblock(backing, superblock, *test_keys()));
  // Its recipient opens nothing here: the tests have the keys. Made once, since RSA keys take time.
  static const auto made = [] {
    metadata::NewPassphrase recipient;
    recipient.passphrase = SecretBytes(Bytes(8, 'x'));
    recipient.kdf = {.memory_kib = engine::argon2_memory_kib_min, .passes = 1, .lanes = 1};
    recipient.rsa_bits = 2048;
    const metadata::NewRecipient recipients[] = {std::move(recipient)};
    return metadata::create_keyring(test_keys()->volume_id(), engine::CipherSuite::aes_256_gcm,
                                    recipients);
  }();
  NACRE_ASSERT_OK(made);
  NACRE_ASSERT_OK(metadata::save_keyring(backing, made->keyring, *made->keys));
}

metadata::VolumeKeys opened_keys(std::uint32_t chunk_size_bytes, std::uint64_t keyring_generation) {
  metadata::VolumeKeys volume;
  volume.keys = test_keys();
  volume.superblock.volume_id = test_keys()->volume_id();
  volume.superblock.chunk_size_bytes = chunk_size_bytes;
  volume.keyring.generation = keyring_generation;
  return volume;
}

std::map<std::string, std::string> state_of(const std::shared_ptr<MemoryBacking>& backing) {
  std::map<std::string, std::string> state;
  auto database = metadata::Database::open(backing, test_keys(), {.read_only = true});
  NACRE_EXPECT_OK(database);
  if (!database) return state;
  for (std::size_t i = 0; i < metadata::table_count; ++i) {
    const auto table = static_cast<metadata::Table>(i);
    NACRE_EXPECT_OK(
        (*database)->scan(table, "", "", [&](std::string_view key, std::string_view value) {
          state[fmt::format("{} {}", metadata::to_string(table), key)] = value;
          return true;
        }));
  }
  for (const auto& path : backing->files()) {
    if (path.starts_with("db/") || path.starts_with("repair/") || path == "ballast") continue;
    state[path] = as_text(*backing->load(path));
  }
  return state;
}

std::string difference(const std::map<std::string, std::string>& a,
                       const std::map<std::string, std::string>& b) {
  std::string text;
  for (const auto& [key, value] : a) {
    const auto other = b.find(key);
    if (other == b.end()) text += fmt::format("  gone: {}\n", key);
    if (other != b.end() && other->second != value) text += fmt::format("  changed: {}\n", key);
  }
  for (const auto& [key, value] : b) {
    if (!a.contains(key)) text += fmt::format("  new: {}\n", key);
  }
  return text;
}

std::string text_of(const fs::FindingList& findings) {
  std::string text;
  for (const auto& finding : findings.findings()) {
    if (finding.severity == fs::Severity::note) continue;
    text += fmt::format("  {}: {} {}\n", to_string(finding.verdict), finding.file, finding.what);
  }
  return text;
}

std::string text_of(const fs::RepairPlan& plan) {
  std::string text;
  for (const auto& step : plan.steps)
    text += fmt::format("  step: {}\n", step.why);
  for (const auto& lost : plan.lost) {
    text += fmt::format("  lost: inode {} at {}, {} bytes: {}\n", lost.inode.value, lost.offset,
                        lost.size, lost.why);
  }
  return text;
}

Repairer::Repairer(std::shared_ptr<MemoryBacking> backing, metadata::VolumeKeys volume)
    : backing_(std::move(backing)), volume_(std::move(volume)) {
  auto engine = engine::Engine::create({.thread_count = 2});
  NACRE_EXPECT_OK(engine);
  engine_ = std::move(*engine);
}

Result<fs::RepairDraft> Repairer::plan(const fs::RepairOptions& options) {
  return fs::plan_repair(backing_, volume_, *engine_, options, {});
}

Result<Repairer::Done> Repairer::repair_as_shown(fs::RepairOptions options) {
  options.seed = fs::new_plan_seed();
  const auto hash_of = [&](const fs::RepairDraft& draft) {
    return fs::plan_hash(draft.plan, text_of(draft.left), *volume_.keys, *options.seed);
  };
  fs::RepairOptions dry_options = options;
  dry_options.scratch = MemoryBacking::create();
  NACRE_ASSIGN(const auto dry, plan(dry_options));
  NACRE_ASSIGN(auto done, repair(options));
  EXPECT_EQ(hash_of(done.draft), hash_of(dry)) << text_of(dry.plan) << text_of(done.draft.plan);
  return done;
}

Result<Repairer::Done> Repairer::repair(const fs::RepairOptions& options) {
  Done done;
  NACRE_ASSIGN(done.draft, plan(options));
  if (done.draft.plan.steps.empty()) return done;
  NACRE_ASSIGN(done.name, fs::save_plan(*backing_, *volume_.keys, done.draft.plan));
  NACRE_TRY(fs::apply_plan(backing_, volume_, done.draft.plan));
  return done;
}

fs::CheckReport Repairer::check() {
  auto report = fs::check_volume(backing_, volume_, *engine_, {.deep = true}, {});
  NACRE_EXPECT_OK(report);
  return report ? std::move(*report) : fs::CheckReport{};
}

Repairer::Done Repairer::expect_repaired(const fs::RepairOptions& options) {
  const auto before = state_of(backing_);
  auto done = repair_as_shown(options);
  NACRE_EXPECT_OK(done);
  if (!done) return {};
  const std::string plan_text = text_of(done->draft.plan);
  EXPECT_EQ(done->draft.left.error_count(), 0u) << text_of(done->draft.left) << plan_text;
  const auto report = check();
  EXPECT_EQ(report.findings.error_count(), 0u) << "after the repair:\n"
                                               << text_of(report.findings) << "which was:\n"
                                               << plan_text;
  const auto repaired = state_of(backing_);
  const auto second = repair(options);
  NACRE_EXPECT_OK(second);
  if (second) {
    EXPECT_TRUE(second->draft.plan.steps.empty()) << "again:\n"
                                                  << text_of(second->draft.plan) << "after:\n"
                                                  << plan_text;
  }
  if (done->name.empty()) return std::move(*done);
  const auto loaded = fs::load_plan(*backing_, *volume_.keys, done->name);
  NACRE_EXPECT_OK(loaded);
  if (!loaded) return std::move(*done);
  EXPECT_EQ(to_text(*loaded), to_text(done->draft.plan));
  auto undone = fs::undo_plan(backing_, volume_, *loaded);
  NACRE_EXPECT_OK(undone);
  EXPECT_TRUE(undone && *undone);
  EXPECT_EQ(difference(before, state_of(backing_)), "") << plan_text;
  undone = fs::undo_plan(backing_, volume_, *loaded);
  EXPECT_TRUE(undone && !*undone) << "undone twice";
  NACRE_EXPECT_OK(fs::apply_plan(backing_, volume_, *loaded));
  EXPECT_EQ(difference(repaired, state_of(backing_)), "");
  return std::move(*done);
}

}  // namespace nacre::tests
