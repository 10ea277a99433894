// SPDX-License-Identifier: Apache-2.0
// Finds matches. Candidates for a position are earlier positions: a chain of those whose first four
// bytes have the same hash, the nearest first, and the last position whose first three bytes have
// the same hash.
//
// A page has at most 2^16 positions, so 16 bits hold any of them and the tables never slide or
// wrap. Position 0 ends every chain and is a candidate itself; that is safe, since the bytes of
// every candidate are compared.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/codec/gdeflate/format.h"
#include "gpu_engine/codec/gdeflate/match_size.h"

namespace nacre::engine::gdeflate {

struct Match {
  std::uint32_t size = 0;      // in bytes; 0: no match
  std::uint32_t distance = 0;  // how many bytes back the equal bytes begin
};

// Finds matches in 1 to 65,536 plain bytes, which must outlive the search. begin() comes first.
// Then every position from 1 on is passed once, in order, to find_longest(), find_all() or
// insert(). Not thread-safe.
class MatchFinder {
 public:
  // How many bytes are hashed. A position with fewer bytes left has no candidates and is none.
  static constexpr std::size_t hashed_bytes = 4;

  void begin(ByteView plain) {
    plain_ = plain;
    last_of_three_.fill(0);
    last_of_four_.fill(0);
    if (plain.size() > hashed_bytes) insert(0);
  }

  // Returns the longest match at a position, the nearest of several. If none is longer than
  // size_min, the result has size 0. Looks at no more than depth candidates of the chain, and stops
  // at a match of nice_size bytes. Also inserts the position.
  Match find_longest(std::size_t at, std::size_t size_min, unsigned depth, std::size_t nice_size) {
    Search search(*this, at);
    Match best;
    std::size_t size_over = size_min;
    if (size_min < match_size_min && search.has_three()) {
      best = {match_size_min, search.three_distance()};
      size_over = match_size_min;
    }
    search.run(depth, size_over, [&](std::size_t size, std::size_t distance) {
      best = {static_cast<unsigned>(size), static_cast<unsigned>(distance)};
      return size < nice_size;
    });
    return best;
  }

  // Writes into matches (at least one) the matches at a position, each longer than all nearer ones,
  // shortest first, until matches is full. Returns their count. Also inserts the position. depth
  // and nice_size are as in find_longest().
  std::size_t find_all(std::size_t at, unsigned depth, std::size_t nice_size,
                       std::span<Match> matches) {
    Search search(*this, at);
    std::size_t count = 0;
    if (search.has_three()) matches[count++] = {match_size_min, search.three_distance()};
    search.run(depth, match_size_min, [&](std::size_t size, std::size_t distance) {
      matches[count++] = {static_cast<unsigned>(size), static_cast<unsigned>(distance)};
      return size < nice_size && count < matches.size();
    });
    return count;
  }

  // Inserts the next position.
  void insert(std::size_t at) {
    if (plain_.size() - at < hashed_bytes) return;
    insert(at, load_le<std::uint32_t>(plain_.data() + at));
  }

 private:
  // Looks up the first candidates of a position, and then inserts the position.
  class Search {
   public:
    Search(MatchFinder& finder, std::size_t at)
        : finder_(finder), at_(at), room_(finder.plain_.size() - at) {
      if (room_ < hashed_bytes) return;
      bytes_ = load_le<std::uint32_t>(here());
      three_ = finder.last_of_three_[hash_three(bytes_)];
      candidate_ = finder.last_of_four_[hash_four(bytes_)];
      finder.insert(at, bytes_);
    }

    bool has_three() const {
      return room_ >= hashed_bytes && (load_le<std::uint32_t>(there(three_)) ^ bytes_) << 8 == 0;
    }
    unsigned three_distance() const { return static_cast<unsigned>(at_ - three_); }

    // Calls found(size, distance) with each match that is longer than size_over and than all
    // matches before it, until found() returns false.
    template <typename Found>
    void run(unsigned depth, std::size_t size_over, const Found& found) {
      if (room_ < hashed_bytes) return;
      const Byte* const end = here() + room_;
      for (; depth > 0 && size_over < room_; --depth) {
        const Byte* const candidate = there(candidate_);
        // A longer match also has the next byte: most candidates fail here.
        if (candidate[size_over] == here()[size_over] &&
            load_le<std::uint32_t>(candidate) == bytes_) {
          const std::size_t size =
              hashed_bytes + count_equal(candidate + hashed_bytes, here() + hashed_bytes, end);
          if (size > size_over) {
            size_over = size;
            if (!found(size, at_ - candidate_)) return;
          }
        }
        if (candidate_ == 0) return;
        candidate_ = finder_.before_[candidate_];
      }
    }

   private:
    const Byte* there(std::size_t position) const { return finder_.plain_.data() + position; }
    const Byte* here() const { return there(at_); }

    MatchFinder& finder_;
    std::size_t at_;
    std::size_t room_;
    std::uint32_t bytes_ = 0;
    std::size_t three_ = 0;
    std::size_t candidate_ = 0;
  };

  static constexpr unsigned three_bits = 13;
  static constexpr unsigned four_bits = 15;

  static std::uint32_t hash_three(std::uint32_t bytes) {
    return ((bytes << 8) * 0x9e3779b1u) >> (32 - three_bits);
  }
  static std::uint32_t hash_four(std::uint32_t bytes) {
    return (bytes * 0x9e3779b1u) >> (32 - four_bits);
  }
  void insert(std::size_t at, std::uint32_t bytes) {
    const auto position = static_cast<std::uint16_t>(at);
    last_of_three_[hash_three(bytes)] = position;
    std::uint16_t& last = last_of_four_[hash_four(bytes)];
    before_[at] = last;
    last = position;
  }

  ByteView plain_;
  std::array<std::uint16_t, 1u << three_bits> last_of_three_;
  std::array<std::uint16_t, 1u << four_bits> last_of_four_;
  std::array<std::uint16_t, page_plain_size_max> before_;  // by position: the next in its chain
};

}  // namespace nacre::engine::gdeflate
