// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/seeds/aes_plain.h"

#include <algorithm>

namespace nacre::engine::seeds {
namespace {

using State = std::array<std::uint8_t, 16>;  // column by column

void add_key(State& state, const std::uint8_t* key) {
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] ^= key[i];
}

void substitute(State& state, const std::uint8_t (&table)[256]) {
  for (std::uint8_t& byte : state)
    byte = table[byte];
}

// Row r moves r columns to the left; with step -1 to the right.
void shift_rows(State& state, int step) {
  const State from = state;
  for (int column = 0; column < 4; ++column) {
    for (int row = 0; row < 4; ++row)
      state[static_cast<std::size_t>(4 * column + row)] =
          from[static_cast<std::size_t>(4 * ((column + step * row + 4) % 4) + row)];
  }
}

std::uint8_t times(std::uint8_t value, std::uint8_t factor) {
  if (value == 0) return 0;
  return aes_constants
      .power[aes_constants.logarithm[value] + unsigned{aes_constants.logarithm[factor]}];
}

void mix_columns(State& state, const std::array<std::uint8_t, 4>& factors) {
  for (std::size_t column = 0; column < 16; column += 4) {
    std::uint8_t mixed[4] = {};
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t i = 0; i < 4; ++i)
        mixed[row] ^= times(state[column + (row + i) % 4], factors[i]);
    }
    std::copy_n(mixed, 4, state.begin() + static_cast<std::ptrdiff_t>(column));
  }
}

template <typename EachBlock>
void each_block(ByteView in, MutableByteView out, const EachBlock& work) {
  for (std::size_t at = 0; at + 16 <= in.size(); at += 16)
    work(in.data() + at, out.data() + at);
}

}  // namespace

PlainAes::PlainAes(ByteView key) : round_count_(aes_round_count(key.size())) {
  expand_aes_key(key.data(), key.size(), schedule_);
  for (int i = 0; i < 4 * (round_count_ + 1); ++i)
    words_[i] = load_le<std::uint32_t>(schedule_ + 4 * i);
  for (int round = 0; round <= round_count_; ++round) {
    for (int column = 0; column < 4; ++column) {
      const std::uint32_t word = words_[4 * (round_count_ - round) + column];
      std::uint32_t mixed = 0;
      for (int row = 0; row < 4; ++row)
        mixed ^= aes_constants.undo[row][aes_constants.substitution[word >> 8 * row & 0xff]];
      undo_words_[4 * round + column] = round == 0 || round == round_count_ ? word : mixed;
    }
  }
}

void PlainAes::encrypt_bytewise(ByteView in, MutableByteView out) const {
  each_block(in, out, [&](const Byte* from, Byte* to) {
    State state;
    std::copy_n(from, 16, state.begin());
    add_key(state, schedule_);
    for (int round = 1; round <= round_count_; ++round) {
      substitute(state, aes_constants.substitution);
      shift_rows(state, 1);
      if (round < round_count_) mix_columns(state, {2, 3, 1, 1});
      add_key(state, schedule_ + 16 * round);
    }
    std::copy(state.begin(), state.end(), to);
  });
}

void PlainAes::decrypt_bytewise(ByteView in, MutableByteView out) const {
  each_block(in, out, [&](const Byte* from, Byte* to) {
    State state;
    std::copy_n(from, 16, state.begin());
    add_key(state, schedule_ + 16 * round_count_);
    for (int round = round_count_; round-- > 0;) {
      shift_rows(state, -1);
      substitute(state, aes_constants.inverse);
      add_key(state, schedule_ + 16 * round);
      if (round > 0) mix_columns(state, {14, 11, 13, 9});
    }
    std::copy(state.begin(), state.end(), to);
  });
}

PlainAes::Columns PlainAes::encrypt_columns(Columns columns) const {
  const auto& table = aes_constants.round;
  for (std::size_t i = 0; i < 4; ++i)
    columns[i] ^= words_[i];
  for (int round = 1; round < round_count_; ++round) {
    Columns next;
    for (std::size_t i = 0; i < 4; ++i)
      next[i] = table[0][columns[i] & 0xff] ^ table[1][columns[(i + 1) % 4] >> 8 & 0xff] ^
                table[2][columns[(i + 2) % 4] >> 16 & 0xff] ^ table[3][columns[(i + 3) % 4] >> 24] ^
                words_[4 * static_cast<std::size_t>(round) + i];
    columns = next;
  }
  Columns last;
  for (std::size_t i = 0; i < 4; ++i) {
    last[i] = words_[4 * static_cast<std::size_t>(round_count_) + i];
    for (std::size_t row = 0; row < 4; ++row)
      last[i] ^= std::uint32_t{aes_constants.substitution[columns[(i + row) % 4] >> 8 * row & 0xff]}
                 << 8 * row;
  }
  return last;
}

PlainAes::Columns PlainAes::decrypt_columns(Columns columns) const {
  const auto& table = aes_constants.undo;
  for (std::size_t i = 0; i < 4; ++i)
    columns[i] ^= undo_words_[i];
  for (int round = 1; round < round_count_; ++round) {
    Columns next;
    for (std::size_t i = 0; i < 4; ++i)
      next[i] = table[0][columns[i] & 0xff] ^ table[1][columns[(i + 3) % 4] >> 8 & 0xff] ^
                table[2][columns[(i + 2) % 4] >> 16 & 0xff] ^ table[3][columns[(i + 1) % 4] >> 24] ^
                undo_words_[4 * static_cast<std::size_t>(round) + i];
    columns = next;
  }
  Columns last;
  for (std::size_t i = 0; i < 4; ++i) {
    last[i] = undo_words_[4 * static_cast<std::size_t>(round_count_) + i];
    for (std::size_t row = 0; row < 4; ++row)
      last[i] ^= std::uint32_t{aes_constants.inverse[columns[(i + 4 - row) % 4] >> 8 * row & 0xff]}
                 << 8 * row;
  }
  return last;
}

void PlainAes::encrypt_by_tables(ByteView in, MutableByteView out) const {
  each_block(in, out, [&](const Byte* from, Byte* to) {
    store_le(to, encrypt_columns(load_le<Columns>(from)));
  });
}

void PlainAes::decrypt_by_tables(ByteView in, MutableByteView out) const {
  each_block(in, out, [&](const Byte* from, Byte* to) {
    store_le(to, decrypt_columns(load_le<Columns>(from)));
  });
}

void PlainAes::encrypt_cbc(ByteView in, MutableByteView out, ByteView iv) const {
  Columns chain = load_le<Columns>(iv.data());
  each_block(in, out, [&](const Byte* from, Byte* to) {
    const auto plain = load_le<Columns>(from);
    for (std::size_t i = 0; i < 4; ++i)
      chain[i] ^= plain[i];
    chain = encrypt_columns(chain);
    store_le(to, chain);
  });
}

void PlainAes::apply_counter(ByteView in, MutableByteView out, ByteView first_counter) const {
  State counter;
  std::copy_n(first_counter.begin(), counter.size(), counter.begin());
  each_block(in, out, [&](const Byte* from, Byte* to) {
    const Columns stream = encrypt_columns(load_le<Columns>(counter.data()));
    auto columns = load_le<Columns>(from);
    for (std::size_t i = 0; i < 4; ++i)
      columns[i] ^= stream[i];
    store_le(to, columns);
    for (std::size_t i = counter.size(); i-- > 0 && ++counter[i] == 0;) {
    }
  });
}

}  // namespace nacre::engine::seeds
