// SPDX-License-Identifier: Apache-2.0
#include "fs/repair/plan_hash.h"

#include <algorithm>
#include <ctime>

#include "fs/repair/text_digest.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/text/text_bytes.h"

namespace nacre::fs {

namespace {

constexpr std::string_view draw_purpose = "repair draw";  // of the subkeys
constexpr std::string_view hash_purpose = "repair hash";
constexpr std::size_t time_size_bytes = 6;
constexpr std::size_t hash_tag_size_bytes = 16;

}  // namespace

PlanSeed new_plan_seed() {
  PlanSeed seed;
  engine::random_bytes(seed);
  auto seconds = static_cast<std::uint64_t>(std::max<std::time_t>(std::time(nullptr), 0));
  for (std::size_t i = time_size_bytes; i-- > 0; seconds >>= 8)
    seed[i] = static_cast<Byte>(seconds & 0xff);
  return seed;
}

void PlanDraw::fill(MutableByteView to) {
  const SecretBytes subkey = keys_.volume_subkey(draw_purpose);
  const engine::HmacSha256Key key(subkey.view());
  while (!to.empty()) {
    std::array<Byte, sizeof count_> number;
    store_le(number.data(), count_++);
    const std::array<ByteView, 2> parts = {seed_, number};
    engine::Sha256Digest drawn = key.compute(parts);
    const std::size_t size = std::min(to.size(), drawn.size());
    std::copy_n(drawn.begin(), size, to.begin());
    wipe(drawn);
    to = to.subspan(size);
  }
}

std::int64_t PlanDraw::seconds() const {
  std::int64_t seconds = 0;
  for (std::size_t i = 0; i < time_size_bytes; ++i)
    seconds = seconds << 8 | seed_[i];
  return seconds;
}

std::string plan_hash(const RepairPlan& plan, std::string_view also_shown,
                      const metadata::KeyTree& keys, const PlanSeed& seed) {
  TextDigest digest;
  for_each_lasting_line(plan, [&](std::string_view line) { digest.add(line); });
  digest.add(also_shown);  // the first line of a plan has the number of its lines
  const engine::Sha256Digest lines = digest.take();
  const SecretBytes key = keys.volume_subkey(hash_purpose);
  const std::array<ByteView, 2> parts = {seed, lines};
  const auto tag = engine::HmacSha256Key(key.view()).compute(parts);
  return metadata::to_hex(seed) + metadata::to_hex(ByteView(tag).first(hash_tag_size_bytes));
}

std::optional<PlanSeed> seed_of_hash(std::string_view hash) {
  std::array<Byte, sizeof(PlanSeed) + hash_tag_size_bytes> bytes;
  if (!metadata::from_hex(hash, bytes)) return std::nullopt;
  PlanSeed seed;
  std::copy_n(bytes.begin(), seed.size(), seed.begin());
  return seed;
}

}  // namespace nacre::fs
