// SPDX-License-Identifier: Apache-2.0
// An inode that is being loaded is in its shard already, so that two threads cannot make two
// objects of it. The loading thread holds the inode's lock during that time.
#include "fs/volume/inode_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::Table;

namespace {

// For each inode that comes, this many are looked at. Those in use are passed over.
constexpr int shrink_tries = 4;

}  // namespace

InodeRef::InodeRef(const InodeRef& other) : table_(other.table_), inode_(other.inode_) {
  // The pin of other keeps the count above zero.
  if (inode_ != nullptr) inode_->pins_.fetch_add(1, std::memory_order_relaxed);
}

InodeRef::~InodeRef() {
  if (inode_ != nullptr) table_->release(inode_);
}

InodeTable::InodeTable(const metadata::Database& database, std::function<void(InodeRef)> retire,
                       std::size_t count_max)
    : database_(database),
      retire_(std::move(retire)),
      shard_count_max_(std::max<std::size_t>(count_max / shard_count, 1)) {}

InodeRef InodeTable::pin(InodeNumber number) {
  std::vector<std::unique_ptr<Inode>> shrunk;  // freed after the lock
  Shard& shard = shard_of(number);
  LockGuard lock(shard.mutex);
  auto& slot = shard.inodes[number];
  if (!slot) {
    slot = std::make_unique<Inode>(number);
    slot->place_ = shard.order.insert(shard.order.end(), slot.get());
    slot->lookups_ = shard.shrunk.take(number).value_or(0);
  }
  Inode* inode = slot.get();
  inode->used_ = true;
  inode->pins_.fetch_add(1, std::memory_order_relaxed);
  shrunk = shrink(shard);
  return InodeRef(this, inode);
}

// Second chance: an inode that was used since it was last looked at goes to the end of the line.
std::vector<std::unique_ptr<Inode>> InodeTable::shrink(Shard& shard) const {
  std::vector<std::unique_ptr<Inode>> shrunk;
  for (int tries = shrink_tries; tries > 0 && shard.inodes.size() > shard_count_max_; --tries) {
    Inode* inode = shard.order.front();
    if (closing_ || std::exchange(inode->used_, false) || !is_idle(*inode)) {
      shard.order.splice(shard.order.end(), shard.order, inode->place_);
      continue;
    }
    shard.shrunk.insert(inode->number(), inode->lookups_);
    shrunk.push_back(take_out(shard, inode->number()));
  }
  return shrunk;
}

// Whether all of its state can be read again. No reference to it exists, and none can be made while
// the shard is locked.
bool InodeTable::is_idle(const Inode& inode) {
  const InodeState& state = inode.state_of_unused();
  return inode.pins_.load(std::memory_order_acquire) == 0 && inode.lookups_ > 0 &&
         inode.loaded_.load(std::memory_order_acquire) && !inode.is_gone() &&
         state.row.link_count > 0 && !state.dirty && state.data.use_count() <= 1;
}

std::unique_ptr<Inode> InodeTable::take_out(Shard& shard, InodeNumber number) {
  const auto found = shard.inodes.find(number);
  auto inode = std::move(found->second);
  shard.order.erase(inode->place_);
  shard.inodes.erase(found);
  return inode;
}

Result<InodeRef> InodeTable::acquire(InodeNumber number) {
  if (number.value == 0) return fail(ErrorCode::stale);
  InodeRef inode = pin(number);
  if (!inode->loaded_.load(std::memory_order_acquire)) NACRE_TRY(load(*inode));
  if (inode->is_gone()) return fail(ErrorCode::stale);
  return inode;
}

std::vector<InodeRef> InodeTable::acquire_all(std::span<const InodeNumber> numbers) {
  std::vector<InodeRef> inodes(numbers.size());
  std::vector<Inode*> missing;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i].value == 0) continue;
    inodes[i] = pin(numbers[i]);
    if (!inodes[i]->loaded_.load(std::memory_order_acquire)) missing.push_back(&*inodes[i]);
  }
  const auto by_number = [](const Inode* a, const Inode* b) { return a->number() < b->number(); };
  std::sort(missing.begin(), missing.end(), by_number);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::vector<std::string> keys;
  keys.reserve(missing.size());
  for (const Inode* inode : missing)
    keys.push_back(metadata::inode_key(inode->number()));
  const auto values = database_.get_many(Table::inodes, keys);
  for (std::size_t i = 0; i < missing.size(); ++i) {
    auto locked = missing[i]->lock();
    // An acquire() of it alone returns the error
    static_cast<void>(adopt(*missing[i], locked, values[i]));
  }
  for (InodeRef& inode : inodes) {
    if (!inode) continue;
    if (!inode->loaded_.load(std::memory_order_acquire) || inode->is_gone()) inode = {};
  }
  return inodes;
}

Result<> InodeTable::load(Inode& inode) {
  auto locked = inode.lock();
  if (inode.loaded_.load(std::memory_order_relaxed)) return {};
  return adopt(inode, locked, database_.get(Table::inodes, metadata::inode_key(inode.number())));
}

Result<> InodeTable::adopt(Inode& inode, Inode::Locked& locked,
                           const Result<std::optional<std::string>>& value) {
  if (inode.loaded_.load(std::memory_order_relaxed)) return {};
  if (!value) return tl::unexpected(value.error());
  if (!*value) return fail(ErrorCode::stale);
  auto row = metadata::decode_inode_row(**value);
  if (!row) return add_context(row.error(), fmt::format("inode {}", inode.number().value));
  locked->row = std::move(*row);
  locked->has_row = true;
  locked->has_orphan_row = locked->row.link_count == 0;
  locked->linkable = locked->has_orphan_row && linkable_.contains(inode.number());
  locked->staged_data_bytes = locked->row.data_bytes;
  locked->staged_group = staged_group_;
  inode.type_ = locked->row.mode & S_IFMT;
  inode.loaded_.store(true, std::memory_order_release);
  return {};
}

InodeRef InodeTable::find(InodeNumber number) {
  Shard& shard = shard_of(number);
  LockGuard lock(shard.mutex);
  const auto found = shard.inodes.find(number);
  if (found == shard.inodes.end()) return {};
  Inode* inode = found->second.get();
  if (!inode->loaded_.load(std::memory_order_acquire)) return {};
  inode->pins_.fetch_add(1, std::memory_order_relaxed);
  return InodeRef(this, inode);
}

InodeRef InodeTable::create(InodeNumber number, InodeState state) {
  // Another thread may be asking for the number already, in vain until now.
  InodeRef inode = pin(number);
  const auto locked = inode->lock();
  inode->type_ = state.row.mode & S_IFMT;
  *locked = std::move(state);
  inode->loaded_.store(true, std::memory_order_release);
  return inode;
}

void InodeTable::add_lookup(const InodeRef& inode) {
  LockGuard lock(shard_of(inode->number()).mutex);
  ++inode->lookups_;
}

bool InodeTable::forget(InodeNumber number, std::uint64_t lookups) {
  Leaving leaving;
  bool is_known = false;
  {
    Shard& shard = shard_of(number);
    LockGuard lock(shard.mutex);
    const auto found = shard.inodes.find(number);
    if (found == shard.inodes.end()) return shard.shrunk.subtract(number, lookups);
    Inode* inode = found->second.get();
    inode->lookups_ -= std::min(lookups, inode->lookups_);
    is_known = inode->lookups_ > 0;
    leaving = settle(shard, inode);
  }
  carry_out(std::move(leaving));
  return is_known;
}

void InodeTable::forget_all() {
  std::vector<InodeNumber> numbers;
  for (Shard& shard : shards_) {
    LockGuard lock(shard.mutex);
    shard.shrunk.clear();
    for (const auto& [number, inode] : shard.inodes) {
      if (inode->lookups_ > 0) numbers.push_back(number);
    }
  }
  for (const InodeNumber number : numbers)
    forget(number, ~std::uint64_t{0});
}

void InodeTable::release(Inode* inode) {
  std::uint64_t pins = inode->pins_.load(std::memory_order_relaxed);
  while (pins > 1) {
    if (inode->pins_.compare_exchange_weak(pins, pins - 1, std::memory_order_release)) return;
  }
  Leaving leaving;
  {
    Shard& shard = shard_of(inode->number());
    LockGuard lock(shard.mutex);
    const std::uint64_t before = inode->pins_.fetch_sub(1, std::memory_order_acq_rel);
    NACRE_CHECK(before > 0, "inode {} is released twice", inode->number().value);
    if (before > 1) return;
    leaving = settle(shard, inode);
  }
  carry_out(std::move(leaving));
}

InodeTable::Leaving InodeTable::settle(Shard& shard, Inode* inode) {
  Leaving leaving;
  if (closing_ || inode->lookups_ > 0 || inode->pins_.load(std::memory_order_acquire) > 0) {
    return leaving;
  }
  // No reference to it exists, and none can be made while the shard is locked, so this thread may
  // read its state.
  const InodeState& state = inode->state_of_unused();
  const bool loaded = inode->loaded_.load(std::memory_order_acquire);
  if (loaded && !inode->is_gone()) {
    if (state.row.link_count == 0 && !state.reaped) {
      inode->pins_ = 1;
      leaving.retired = InodeRef(this, inode);
      return leaving;
    }
    if (state.dirty) return leaving;  // stays until it is staged
    if (state.data.use_count() > 1) {
      // A second object would not know the size that the file is about to get from its data.
      LockGuard lists(lists_mutex_);
      lingering_.push_back(inode->number());
      return leaving;
    }
  }
  leaving.dropped = take_out(shard, inode->number());
  return leaving;
}

void InodeTable::carry_out(Leaving leaving) {
  if (leaving.retired) retire_(std::move(leaving.retired));
}

void InodeTable::mark_dirty(Inode& inode, Inode::Locked& locked) {
  if (locked->dirty || inode.is_gone()) return;
  locked->dirty = true;
  LockGuard lists(lists_mutex_);
  dirty_.push_back(inode.number());
}

std::vector<InodeRef> InodeTable::take_dirty(std::uint64_t group) {
  staged_group_ = group;
  std::vector<InodeNumber> numbers;
  {
    LockGuard lists(lists_mutex_);
    numbers = std::exchange(dirty_, {});
  }
  std::vector<InodeRef> inodes;
  inodes.reserve(numbers.size());
  for (const InodeNumber number : numbers) {
    if (InodeRef inode = find(number)) inodes.push_back(std::move(inode));
  }
  return inodes;
}

KernelKnowledge InodeTable::knowledge() {
  KernelKnowledge knowledge;
  std::vector<InodeRef> known;
  for (Shard& shard : shards_) {
    LockGuard lock(shard.mutex);
    shard.shrunk.for_each([&](InodeNumber number, std::uint64_t count) {
      knowledge.lookups.emplace_back(number, count);
    });
    for (const auto& [number, inode] : shard.inodes) {
      if (inode->lookups_ == 0) continue;
      knowledge.lookups.emplace_back(number, inode->lookups_);
      inode->pins_.fetch_add(1, std::memory_order_relaxed);
      known.push_back(InodeRef(this, inode.get()));
    }
  }
  for (const InodeRef& inode : known) {
    const auto locked = inode->lock();
    if (locked->row.link_count == 0 && locked->linkable) {
      knowledge.linkable.push_back(inode->number());
    }
  }
  return knowledge;
}

void InodeTable::adopt_knowledge(const KernelKnowledge& knowledge) {
  linkable_.insert(knowledge.linkable.begin(), knowledge.linkable.end());
  for (const auto& [number, count] : knowledge.lookups) {
    Shard& shard = shard_of(number);
    LockGuard lock(shard.mutex);
    shard.shrunk.insert(number, count);
  }
}

void InodeTable::drop_lingering() {
  std::vector<InodeNumber> numbers;
  {
    LockGuard lists(lists_mutex_);
    numbers = std::exchange(lingering_, {});
  }
  for (const InodeNumber number : numbers)
    forget(number, 0);
}

InodeTable::Count InodeTable::count() const {
  Count count;
  for (const Shard& shard : shards_) {
    LockGuard lock(shard.mutex);
    count.in_memory += shard.inodes.size();
    count.known += shard.inodes.size() + shard.shrunk.size();
    count.shrunk_bytes += shard.shrunk.memory_bytes();
  }
  return count;
}

}  // namespace nacre::fs
