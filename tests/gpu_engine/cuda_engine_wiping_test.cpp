// SPDX-License-Identifier: Apache-2.0
// Keys and plain bytes in devices' memory and in page-locked memory are wiped, in every part of
// every slot. The test learns the addresses of the parts from an earlier wiping.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "gpu_engine/cuda/runtime.h"
#include "gpu_engine/cuda/tuning.h"
#include "gpu_engine/forget_keys.h"
#include "tests/gpu_engine/cuda_engine_fixture.h"
#include "tests/gpu_engine/cuda_test_device.h"

namespace nacre::engine {
namespace {

struct Region {
  const Byte* data = nullptr;
  std::size_t size = 0;
  bool on_device = false;
  auto operator<=>(const Region&) const = default;
};

// Whether look(bytes) is true for some stretch of the region. Stretches overlap, so every
// occurrence of a pattern lies wholly in one of them.
template <typename Look>
bool any_stretch(const Region& region, const Look& look) {
  constexpr std::size_t stretch = 4u << 20;
  constexpr std::size_t overlap = 64;
  Bytes copy(std::min(region.size, stretch + overlap));
  for (std::size_t at = 0; at < region.size; at += stretch) {
    const std::size_t size = std::min(stretch + overlap, region.size - at);
    if (!region.on_device) {
      std::memcpy(copy.data(), region.data + at, size);
    } else if (cudaMemcpy(copy.data(), region.data + at, size, cudaMemcpyDeviceToHost) !=
               cudaSuccess) {
      ADD_FAILURE() << "memory of a device could not be read";
      return true;
    }
    if (look(ByteView(copy).first(size))) return true;
  }
  return false;
}

bool holds(const Region& region, ByteView pattern) {
  return any_stretch(region, [&](ByteView bytes) {
    return memmem(bytes.data(), bytes.size(), pattern.data(), pattern.size()) != nullptr;
  });
}

bool is_zero(const Region& region) {
  return !any_stretch(region, [](ByteView bytes) {
    // The bytes are all zero if the first one is, and each equals the one before.
    return bytes[0] != 0 || std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) != 0;
  });
}

// While it exists, it sees each region that is wiped, in the order of each thread. Only one may
// exist at a time.
class WipeWatch {
 public:
  WipeWatch() {
    const std::lock_guard lock(mutex_);
    by_thread_.clear();
    not_wiped_count_ = 0;
    cuda::set_wipe_hook(note);
  }
  ~WipeWatch() { cuda::set_wipe_hook(nullptr); }
  WipeWatch(const WipeWatch&) = delete;
  WipeWatch& operator=(const WipeWatch&) = delete;

  static std::vector<std::vector<Region>> seen() {
    const std::lock_guard lock(mutex_);
    std::vector<std::vector<Region>> all;
    for (const auto& [thread, regions] : by_thread_)
      all.push_back(regions);
    return all;
  }
  static std::multiset<Region> all_seen() {
    std::multiset<Region> all;
    for (const auto& regions : seen())
      all.insert(regions.begin(), regions.end());
    return all;
  }
  static std::uint64_t not_wiped() { return not_wiped_count_; }

 private:
  static void note(const Byte* data, std::size_t size, bool on_device) {
    const Region region = {data, size, on_device};
    if (!is_zero(region)) ++not_wiped_count_;
    const std::lock_guard lock(mutex_);
    by_thread_[std::this_thread::get_id()].push_back(region);
  }

  static inline std::mutex mutex_;
  static inline std::map<std::thread::id, std::vector<Region>> by_thread_;
  static inline std::atomic<std::uint64_t> not_wiped_count_ = 0;
};

// The memory of a slot, as Slot::forget() reports it.
struct SlotMemory {
  Region memory, upload_on_device, upload, download_on_device, download, staging_in, staging_out;
  std::array<Region, 7> all() const {
    return {memory,   upload_on_device, upload,     download_on_device,
            download, staging_in,       staging_out};
  }
};

constexpr std::size_t chunk = 65536;
// Two kinds of payloads, of one batch each. What is sealed is more than what is opened, so what
// came in to be sealed outlasts the records that come in later.
constexpr std::size_t sealed_count = 24;
constexpr std::size_t opened_count = 16;
// More than enough for every slot to have had one.
constexpr int round_count_max = 100;

// Makes an engine, fills its slots by payloads, and knows where the memory of the slots is.
class FilledSlots {
 public:
  FilledSlots(std::unique_ptr<Engine>& cuda, Engine& cpu, TestRandom& random)
      : cuda_(cuda), random_(random), secret_(random.bytes(32)), key_(random.bytes(32)) {
    cuda_.reset();
    const std::uint64_t before = cuda::runtime_counts().streams;
    cuda_ = Engine::create({.choice = EngineChoice::cuda}).value();
    // Each slot has one.
    count_ = cuda::runtime_counts().streams - before;
    make_items(cpu);
  }

  // Finds them, and fills each part of each. With failures of the test where that cannot be.
  void fill() {
    ASSERT_NO_FATAL_FAILURE(find());
    ASSERT_NO_FATAL_FAILURE(fill(to_seal_, &SlotMemory::staging_in));
    ASSERT_NO_FATAL_FAILURE(fill(to_open_, &SlotMemory::staging_out));
    expect_full();
    ASSERT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
  }
  std::size_t count() const { return count_; }  // that of callers included
  const std::vector<SlotMemory>& get() const { return slots_; }

 private:
  void make_items(Engine& cpu) {
    Bytes plain;
    while (plain.size() < chunk)
      plain.insert(plain.end(), secret_.begin(), secret_.end());
    for (std::size_t i = 0; i < sealed_count; ++i) {
      Item& item = to_seal_.emplace_back();
      item.input = plain;
      item.key = key_;
      item.message.operation = Operation::seal;
      item.message.counter = static_cast<std::uint32_t>(i);
      item.message.output_capacity = record_size_bound(item.use.suite, Padding::none, chunk);
    }
    Built sealed(to_seal_, nullptr, random_);
    cpu.run(sealed.get());
    for (std::size_t i = 0; i < opened_count; ++i) {
      Item& item = to_open_.emplace_back();
      item.input.assign(sealed.output(i).begin(), sealed.output(i).end());
      item.key = key_;
      item.message.operation = Operation::unseal;
      item.message.output_capacity = chunk;
    }
  }

  // In memory that devices do not reach, so that slots keep copies: for their threads more than
  // there are slots at once, and one for this thread, which has a slot of its own.
  void run_beside_each_other(const std::vector<Item>& items) {
    std::vector<std::unique_ptr<Built>> payloads;
    std::latch ended(static_cast<std::ptrdiff_t>(2 * count_));
    for (std::size_t i = 0; i < 2 * count_; ++i) {
      payloads.push_back(std::make_unique<Built>(items, nullptr, random_));
      cuda_->submit(payloads.back()->get(), [&] { ended.count_down(); });
    }
    ended.wait();
    payloads.push_back(std::make_unique<Built>(items, nullptr, random_));
    cuda_->run(payloads.back()->get());
    for (const auto& payload : payloads) {
      for (std::size_t i = 0; i < items.size(); ++i)
        ASSERT_TRUE(payload->result(i).ok) << payload->result(i).detail;
    }
  }

  // Runs payloads until each slot has all of its memory, and tells where that is. It is wiped then.
  void find() {
    for (int round = 0; round < round_count_max && slots_.size() < count_; ++round) {
      run_beside_each_other(to_seal_);
      run_beside_each_other(to_open_);
      const WipeWatch watch;
      forget_keys(*cuda_);
      slots_.clear();
      ASSERT_EQ(WipeWatch::seen().size(), count_) << "a slot has a thread";
      for (const std::vector<Region>& of_slot : WipeWatch::seen()) {
        ASSERT_LE(of_slot.size(), 7u);
        if (of_slot.size() == 7)  // else its staging memory is not made yet
          slots_.push_back(
              {of_slot[0], of_slot[1], of_slot[2], of_slot[3], of_slot[4], of_slot[5], of_slot[6]});
      }
      ASSERT_EQ(WipeWatch::not_wiped(), 0u);
    }
    ASSERT_EQ(slots_.size(), count_) << "slots that had nothing to do";
    for (const SlotMemory& slot : slots_) {
      ASSERT_EQ(slot.memory.size, cuda::slot_size_bytes);
      for (const Region* const upload : {&slot.upload_on_device, &slot.upload})
        ASSERT_EQ(upload->size, cuda::upload_size_bytes);
      for (const Region* const download : {&slot.download_on_device, &slot.download})
        ASSERT_EQ(download->size, cuda::download_size_bytes);
      for (const Region* const on_device :
           {&slot.memory, &slot.upload_on_device, &slot.download_on_device})
        ASSERT_TRUE(on_device->on_device);
      for (const Region* const on_host :
           {&slot.upload, &slot.download, &slot.staging_in, &slot.staging_out})
        ASSERT_FALSE(on_host->on_device);
    }
  }

  // Runs payloads until every slot has the secret in this part.
  void fill(const std::vector<Item>& items, Region SlotMemory::*staging) {
    const auto all_have_it = [&] {
      return std::ranges::all_of(
          slots_, [&](const SlotMemory& slot) { return holds(slot.*staging, secret_); });
    };
    for (int round = 0; round < round_count_max && !all_have_it(); ++round)
      run_beside_each_other(items);
  }

  // Expects every part of each slot to hold secrets, or at least some bytes that are not zero.
  void expect_full() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "slot " << i);
      const SlotMemory& slot = slots_[i];
      EXPECT_TRUE(holds(slot.memory, secret_));
      EXPECT_TRUE(holds(slot.staging_in, secret_));
      EXPECT_TRUE(holds(slot.staging_out, secret_));
      EXPECT_TRUE(holds(slot.upload_on_device, key_));
      EXPECT_TRUE(holds(slot.upload, key_));
      EXPECT_FALSE(is_zero(slot.download_on_device));
      EXPECT_FALSE(is_zero(slot.download));
    }
  }

  std::unique_ptr<Engine>& cuda_;
  TestRandom& random_;
  const Bytes secret_;
  const Bytes key_;
  std::size_t count_ = 0;
  std::vector<Item> to_seal_;
  std::vector<Item> to_open_;
  std::vector<SlotMemory> slots_;
};

// Before the wiping, the memory holds keys, plain bytes and records. Afterwards it holds zeros.
TEST_F(CudaEngine, wipes_memory_of_devices_and_page_locked_memory_at_its_end) {
  FilledSlots slots(cuda_, *cpu_, random_);
  ASSERT_NO_FATAL_FAILURE(slots.fill());
  const cuda::RuntimeCounts before = cuda::runtime_counts();
  const WipeWatch watch;
  cuda_.reset();
  EXPECT_EQ(WipeWatch::not_wiped(), 0u);
  const std::multiset<Region> seen = WipeWatch::all_seen();
  for (std::size_t i = 0; i < slots.count(); ++i) {
    for (const Region& region : slots.get()[i].all())
      EXPECT_EQ(seen.count(region), 1u) << "of slot " << i << ", " << region.size << " bytes";
  }
  // No memory was freed without having been checked.
  EXPECT_EQ(cuda::runtime_counts().device_frees - before.device_frees, 3 * slots.count());
  EXPECT_EQ(cuda::runtime_counts().pinned_frees - before.pinned_frees, 4 * slots.count());
  EXPECT_EQ(seen.size(), 7 * slots.count());
}

// A key that was destroyed must not be left where a batch had it, whichever slot that was of.
TEST_F(CudaEngine, forgets_keys_in_memory_of_devices_and_goes_on) {
  FilledSlots slots(cuda_, *cpu_, random_);
  ASSERT_NO_FATAL_FAILURE(slots.fill());
  Maker maker(*cpu_, random_);
  std::vector<Item> items;
  for (std::size_t i = 0; i < std::max<std::size_t>(400 / test_part(), 4); ++i)
    items.push_back(maker.make());
  for (int round = 0; round < 2; ++round) {
    {
      const WipeWatch watch;
      forget_keys(*cuda_);
      EXPECT_EQ(WipeWatch::not_wiped(), 0u);
    }
    for (std::size_t i = 0; i < slots.count(); ++i) {
      // Staging memory may be another since: the hook has seen it.
      const SlotMemory& slot = slots.get()[i];
      for (const Region& region : {slot.memory, slot.upload_on_device, slot.upload,
                                   slot.download_on_device, slot.download})
        EXPECT_TRUE(is_zero(region)) << "of slot " << i << ", " << region.size << " bytes";
    }
    Built built(items, nullptr, random_);
    Built on_cpu(items, nullptr, random_);
    cuda_->run(built.get());
    cpu_->run(on_cpu.get());
    expect_same(items, built, on_cpu, *cpu_, random_);
  }
}

TEST_F(CudaEngine, wipes_memory_of_payloads_when_that_is_freed) {
  Maker maker(*cpu_, random_);
  std::vector<Item> items;
  for (int i = 0; i < 400; ++i)
    items.push_back(maker.make());
  const WipeWatch watch;
  std::vector<Region> arenas;
  {
    Built built(items, cuda_.get(), random_);
    cuda_->run(built.get());
    const Payload& payload = built.get();
    arenas = {{payload.input, payload.input_size, false},
              {payload.output, payload.output_size, false}};
    for (const Region& arena : arenas)
      EXPECT_FALSE(is_zero(arena));
  }
  EXPECT_GT(cuda_->stats().cuda_message_count, 100u);
  for (const Region& arena : arenas)
    EXPECT_EQ(WipeWatch::all_seen().count(arena), 1u);
  EXPECT_EQ(WipeWatch::not_wiped(), 0u);
}

}  // namespace
}  // namespace nacre::engine
