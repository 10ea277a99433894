// SPDX-License-Identifier: Apache-2.0
// Any bytes as a repair plan. Input: a byte, then by its value the plan's text; its sealed file; or
// three bytes that damage the sealed file of a text that is one.
#include <cstdlib>

#include "fs/repair/repair_plan.h"
#include "tests/fuzz/entry.h"
#include "tests/support/memory_backing.h"

namespace {

using namespace nacre;

constexpr std::string_view name = "20260131T235959Z-01234567";
constexpr std::string_view path = "repair/20260131T235959Z-01234567.plan";

void require(bool holds) {
  if (!holds) std::abort();
}

const metadata::KeyTree& keys() {
  static const metadata::KeyTree tree = [] {
    std::vector<metadata::EpochKey> epochs;
    epochs.push_back({.number = 1, .key = SecretBytes(Bytes(32, 7))});
    return metadata::KeyTree(engine::VolumeId{1, 2, 3}, SecretBytes(Bytes(32, 9)),
                             std::move(epochs));
  }();
  return tree;
}

// An accepted plan must be the same after it is written and read once more.
std::optional<fs::RepairPlan> try_text(std::string_view text) {
  const auto plan = fs::parse_plan(text);
  if (!plan) {
    require(plan.error().code == ErrorCode::corrupt);
    return {};
  }
  const std::string written = fs::to_text(*plan);
  const auto again = fs::parse_plan(written);
  require(again && fs::to_text(*again) == written);
  return *plan;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(data + 1, size - 1);
  if (data[0] % 4 < 2) {
    static_cast<void>(try_text(as_text(bytes)));
    return 0;
  }
  const auto backing = tests::MemoryBacking::create();
  if (data[0] % 4 == 2) {
    backing->store(path, bytes);
    require(!fs::load_plan(*backing, keys(), name));
    return 0;
  }
  if (bytes.size() < 3) return 0;
  auto plan = try_text(as_text(bytes.subspan(3)));
  if (!plan) return 0;
  plan->name = name;
  plan->volume_id = keys().volume_id();
  require(fs::save_plan(*backing, keys(), *plan).has_value());
  const auto loaded = fs::load_plan(*backing, keys(), name);
  require(loaded && fs::to_text(*loaded) == fs::to_text(*plan));
  Bytes file = backing->load(path).value();
  const std::size_t at = load_le<std::uint16_t>(bytes.data()) % file.size();
  if (bytes[2] == 0) {
    file.resize(at);
  } else {
    file[at] = static_cast<Byte>(file[at] ^ bytes[2]);
  }
  backing->store(path, file);
  require(!fs::load_plan(*backing, keys(), name));
  return 0;
}
