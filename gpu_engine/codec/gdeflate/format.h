// SPDX-License-Identifier: Apache-2.0
// GDeflate pages: what encoder and decoder share. Sources: the GDeflate README of
// microsoft/DirectStorage, draft-uralsky-gdeflate-00, RFC 1951; bit for bit as NVIDIA's reference
// codec has it (libdeflate, branch gdeflate).
//
// A page is DEFLATE64 (RFC 1951 with a window of 64 KiB, length symbol 285 = 3 + 16 extra bits, and
// distance symbols 30 and 31) whose bits are dealt out to 32 lanes, so that 32 threads can decode
// it. It is a sequence of little-endian u32 words and holds at most 64 KiB of plain bytes.
//
// Lanes. Each lane is a stream of bits, lowest bit of a word first. The page's words 0 … 31 are the
// first words of lanes 0 … 31. Whenever a read leaves fewer than 32 unread bits in a lane, that
// lane gets the next word of the page. So the order of the words is the order in which a decoder
// needs them. A page ends with the last word that a lane gets; bits left unread are zeros.
//
// Blocks follow each other until one is marked as the last. In the order of reading:
//
//   lane 0              1 bit: last block; 2 bits: kind (0 stored, 1 fixed, 2 dynamic codes)
//   stored:
//   lane 0              16 bits: count of bytes (no complement, no alignment)
//   lane i % 32         8 bits: byte i
//   dynamic codes:
//   lane 0              5 bits HLIT, 5 bits HDIST, 4 bits HCLEN, as in RFC 1951
//   lane i              3 bits: size of code i of the code length code, in the order of RFC 1951
//   lane i % 32         item i of the code lengths (the code and its extra bits)
//   fixed and dynamic codes:
//   rounds              each lane in turn: the distance (code, extra bits) of the match that it
//                       began in the round before; otherwise the next literal, length (code,
//                       extra bits) or end of block
//   After the end of block no literal or length is read: the later lanes of that round read only
//   distances, and one more round reads the distances of the matches that began in that round.
//
// The plain bytes are those of the literals and matches in the order in which they begin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nacre::engine::gdeflate {

inline constexpr unsigned lane_count = 32;
inline constexpr std::size_t page_plain_size_max = 65536;
inline constexpr unsigned word_bits = 32;
inline constexpr std::size_t word_size_bytes = 4;
inline constexpr std::size_t page_size_bytes_min = lane_count * word_size_bytes;

enum class BlockKind : unsigned { stored = 0, fixed_codes = 1, dynamic_codes = 2 };

inline constexpr unsigned literal_symbol_count = 256;
inline constexpr unsigned end_of_block = 256;
inline constexpr unsigned first_length_symbol = 257;
inline constexpr unsigned length_symbol_count = 29;
// Literals, end of block and lengths are one alphabet. The fixed code has 288 symbols, of which the
// last two stand for nothing.
inline constexpr unsigned litlen_symbol_count = 286;
inline constexpr unsigned litlen_symbol_count_max = 288;
inline constexpr unsigned distance_symbol_count = 32;
inline constexpr unsigned code_size_bits_max = 15;

inline constexpr unsigned match_size_min = 3;
inline constexpr unsigned match_size_max = 65535;  // a page less its first byte
inline constexpr unsigned distance_max = 65535;

inline constexpr unsigned code_length_symbol_count = 19;
inline constexpr unsigned code_length_code_size_bits_max = 7;
inline constexpr unsigned code_length_repeat = 16;      // the last length, 3 … 6 times: 2 bits
inline constexpr unsigned code_length_zeros = 17;       // 3 … 10 zeros: 3 bits
inline constexpr unsigned code_length_many_zeros = 18;  // 11 … 138 zeros: 7 bits
inline constexpr std::array<std::uint8_t, code_length_symbol_count> code_length_order = {
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

struct ExtraBits {
  std::uint16_t base;
  std::uint8_t bits;
};

inline constexpr std::array<ExtraBits, length_symbol_count> length_symbols = {{
    {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1}, {13, 1},
    {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3}, {59, 3},
    {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {3, 16},
}};

inline constexpr std::array<ExtraBits, distance_symbol_count> distance_symbols = {{
    {1, 0},      {2, 0},      {3, 0},      {4, 0},      {5, 1},     {7, 1},     {9, 2},
    {13, 2},     {17, 3},     {25, 3},     {33, 4},     {49, 4},    {65, 5},    {97, 5},
    {129, 6},    {193, 6},    {257, 7},    {385, 7},    {513, 8},   {769, 8},   {1025, 9},
    {1537, 9},   {2049, 10},  {3073, 10},  {4097, 11},  {6145, 11}, {8193, 12}, {12289, 12},
    {16385, 13}, {24577, 13}, {32769, 14}, {49153, 14},
}};

// Reverses the order of a code's bits: a page holds the highest bit of a code first, that is
// lowest. code < 2^bits, bits at most 15.
constexpr unsigned reverse_code(unsigned code, unsigned bits) {
  code = (code & 0x5555) << 1 | (code & 0xaaaa) >> 1;
  code = (code & 0x3333) << 2 | (code & 0xcccc) >> 2;
  code = (code & 0x0f0f) << 4 | (code & 0xf0f0) >> 4;
  code = (code & 0x00ff) << 8 | (code & 0xff00) >> 8;
  return code >> (16 - bits);
}

// RFC 1951, 3.2.6.
constexpr std::uint8_t fixed_litlen_code_size(unsigned symbol) {
  return symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
}
inline constexpr std::uint8_t fixed_distance_code_size = 5;

}  // namespace nacre::engine::gdeflate
