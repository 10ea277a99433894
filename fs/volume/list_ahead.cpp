// SPDX-License-Identifier: Apache-2.0
#include "fs/volume/list_ahead.h"

#include <algorithm>
#include <utility>

namespace nacre::fs {

void ListAhead::stop() {
  std::list<ListPiece> dropped;  // freed without the lock
  LockGuard lock(mutex_);
  stopping_ = true;
  wishes_.remove_if([](const Wish& wish) { return !wish.is_being_read; });
  dropped.swap(pieces_);
  piece_count_ = 0;
}

std::list<ListAhead::Wish>::iterator ListAhead::find_wish(InodeNumber directory,
                                                          std::uint64_t from) {
  return std::find_if(wishes_.begin(), wishes_.end(),
                      [&](const Wish& wish) { return wish.is_of(directory, from); });
}

void ListAhead::want(InodeNumber directory, std::uint64_t from, std::size_t count) {
  LockGuard lock(mutex_);
  if (stopping_ || wishes_.size() >= piece_count_max) return;
  if (find_wish(directory, from) != wishes_.end()) return;
  const auto is_it = [&](const ListPiece& piece) {
    return piece.directory == directory && piece.from == from;
  };
  if (std::any_of(pieces_.begin(), pieces_.end(), is_it)) return;
  wishes_.push_back(Wish{.directory = directory, .from = from, .count = count});
}

void ListAhead::read_wanted() {
  UniqueLock lock(mutex_);
  const auto wish = std::find_if(wishes_.begin(), wishes_.end(),
                                 [](const Wish& waiting) { return !waiting.is_being_read; });
  if (wish == wishes_.end()) return;
  wish->is_being_read = true;
  lock.unlock();
  read_(wish->directory, wish->from, wish->count);
  lock.lock();
  wishes_.erase(wish);
  done_.notify_all();
}

void ListAhead::wait_for(InodeNumber directory, std::uint64_t from) {
  UniqueLock lock(mutex_);
  const auto wish = find_wish(directory, from);
  if (wish == wishes_.end()) return;
  if (!wish->is_being_read) {
    // The caller reads the piece sooner than this list would.
    wishes_.erase(wish);
    return;
  }
  done_.wait(lock,
             [&]() NACRE_REQUIRES(mutex_) { return find_wish(directory, from) == wishes_.end(); });
}

void ListAhead::keep(ListPiece piece) {
  std::list<ListPiece> oldest;
  LockGuard lock(mutex_);
  if (stopping_) return;
  pieces_.push_back(std::move(piece));
  if (pieces_.size() > piece_count_max) oldest.splice(oldest.begin(), pieces_, pieces_.begin());
  piece_count_ = pieces_.size();
}

std::optional<ListPiece> ListAhead::take(InodeNumber directory, std::uint64_t from) {
  if (piece_count_ == 0) return std::nullopt;
  LockGuard lock(mutex_);
  const auto place = std::find_if(pieces_.begin(), pieces_.end(), [&](const ListPiece& piece) {
    return piece.directory == directory && piece.from == from;
  });
  if (place == pieces_.end()) return std::nullopt;
  std::optional<ListPiece> piece = std::move(*place);
  pieces_.erase(place);
  piece_count_ = pieces_.size();
  return piece;
}

void ListAhead::drop(InodeNumber directory) {
  if (piece_count_ == 0) return;
  std::list<ListPiece> dropped;
  LockGuard lock(mutex_);
  for (auto place = pieces_.begin(); place != pieces_.end();) {
    const auto next = std::next(place);
    if (place->directory == directory) dropped.splice(dropped.end(), pieces_, place);
    place = next;
  }
  piece_count_ = pieces_.size();
}

}  // namespace nacre::fs
