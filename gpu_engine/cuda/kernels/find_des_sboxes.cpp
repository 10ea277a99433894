// SPDX-License-Identifier: Apache-2.0
// Finds circuits of functions of three bits (one LOP3 each) for the S-boxes of DES, and prints the
// header gpu_engine/cuda/kernels/des_sboxes.h.
//
//   find_des_sboxes SECONDS [SEED]        SECONDS of processor for each S-box
//
// An S-box's output is a function of six bits, a table of 64. This is Kwan's search ("Reducing the
// gate count of bitslice DES", 2000), with any function of three bits as a gate. To make a table
// that is right for a given set of inputs,
//   1. take an existing gate that gives it;
//   2. or add one gate, on any three existing ones;
//   3. or add two gates: one on three existing ones, and one on its output and two others;
//   4. or add three gates: two on three existing ones each, and one on their outputs and one other;
//   5. or split the set by an input bit, make both parts, and choose between them by that bit.
// Steps 3 and 4 first look for sets of 5 and 7 gates whose values tell the wanted ones from the
// wanted zeros. Then they find the inner functions by two-colouring a graph of the inputs of an
// inner gate: an edge joins two inputs for which the gate must give different values. The four
// outputs are made in all orders, in a beam search that keeps the smallest circuits; among circuits
// of equal size it keeps random ones.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gpu_engine/cuda/kernels/des_serial.h"

namespace {

using Table = std::uint64_t;  // bit v: the value for inputs v, whose highest bit is the first input
constexpr int input_count = 6;
constexpr int gates_max = 48;
constexpr int beam_width = 8;
constexpr int inverted = 64;  // added to a gate's number to mean its complement

struct Gate {
  int a, b, c;
  unsigned function;  // bit 4 a + 2 b + c
};

struct Circuit {
  int size = input_count;  // inputs and gates
  std::array<Table, gates_max> tables;
  std::array<Gate, gates_max> gates;

  int add(Gate gate) {
    Table table = 0;
    const Table a = tables[gate.a], b = tables[gate.b], c = tables[gate.c];
    for (int i = 0; i < 8; ++i) {
      if ((gate.function >> i & 1) != 0)
        table |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    tables[size] = table;
    gates[size] = gate;
    return size++;
  }
};

// The inputs that must give one, and those that must give zero. For other inputs any value is
// right.
struct Wanted {
  Table ones, zeros;
};
Wanted operator&(Wanted wanted, Table part) {
  return {wanted.ones & part, wanted.zeros & part};
}

std::mt19937_64 random_bits;
double deadline_s = 0;

bool is_late() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC > deadline_s;
}

std::vector<int> shuffled(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), random_bits);
  return numbers;
}

// Adds one gate on three existing ones that gives what is wanted. Returns its number, or -1.
int find_one_gate(Circuit& circuit, Wanted wanted) {
  const std::vector<int> order = shuffled(circuit.size);
  for (int i = 0; i < circuit.size; ++i) {
    for (int j = i + 1; j < circuit.size; ++j) {
      const Table a = circuit.tables[order[i]], b = circuit.tables[order[j]];
      const Wanted cells[4] = {wanted & ~a & ~b, wanted & ~a & b, wanted & a & ~b, wanted & a & b};
      for (int k = j + 1; k < circuit.size; ++k) {
        const Table c = circuit.tables[order[k]];
        unsigned function = 0;
        bool fits = true;
        for (int cell = 0; cell < 4 && fits; ++cell) {
          const Wanted low = cells[cell] & ~c, high = cells[cell] & c;
          fits = (low.ones == 0 || low.zeros == 0) && (high.ones == 0 || high.zeros == 0);
          function |= (low.ones != 0 ? 1u : 0u) << (2 * cell);
          function |= (high.ones != 0 ? 1u : 0u) << (2 * cell + 1);
        }
        if (fits) return circuit.add({order[i], order[j], order[k], function});
      }
    }
  }
  return -1;
}

// Colours eight inputs with 0 and 1 so that in no row a one and a zero have the same colour. Bit i
// of the result is the colour of input i; -1 if there is no such colouring.
int colour(const std::array<unsigned, 4>& ones, const std::array<unsigned, 4>& zeros) {
  std::array<unsigned, 8> neighbours = {};
  for (int row = 0; row < 4; ++row) {
    if ((ones[row] & zeros[row]) != 0) return -1;
    for (int i = 0; i < 8; ++i) {
      if ((ones[row] >> i & 1) != 0) neighbours[i] |= zeros[row];
      if ((zeros[row] >> i & 1) != 0) neighbours[i] |= ones[row];
    }
  }
  unsigned done = 0, second = 0;
  for (int start = 0; start < 8; ++start) {
    if ((done >> start & 1) != 0) continue;
    std::array<unsigned, 2> sides = {1u << start, 0};
    for (;;) {
      std::array<unsigned, 2> grown = sides;
      for (int i = 0; i < 8; ++i) {
        if ((sides[0] >> i & 1) != 0) grown[1] |= neighbours[i];
        if ((sides[1] >> i & 1) != 0) grown[0] |= neighbours[i];
      }
      if ((grown[0] & grown[1]) != 0) return -1;
      if (grown == sides) break;
      sides = grown;
    }
    done |= sides[0] | sides[1];
    second |= sides[1];
  }
  return static_cast<int>(second);
}

// For each combination of values of count gates (gate k's value is bit k of the index): whether
// some input that leads to it must give one, and whether some must give zero.
template <int count>
struct Cells {
  std::array<bool, 1 << count> one, zero;

  Cells(const Circuit& circuit, const std::array<int, count>& gates, Wanted wanted) {
    for (int i = 0; i < 1 << count; ++i) {
      Table cell = ~Table{0};
      for (int k = 0; k < count; ++k)
        cell &= (i >> k & 1) != 0 ? circuit.tables[gates[k]] : ~circuit.tables[gates[k]];
      one[i] = (wanted.ones & cell) != 0;
      zero[i] = (wanted.zeros & cell) != 0;
    }
  }
};

int three_bits(int cell, int a, int b, int c) {
  return (cell >> a & 1) << 2 | (cell >> b & 1) << 1 | (cell >> c & 1);
}

// Adds a gate on three of the five gates, and one on its output and the other two. Returns the
// latter's number, or -1.
int split_five(Circuit& circuit, const std::array<int, 5>& gates, Wanted wanted) {
  const Cells<5> cells(circuit, gates, wanted);
  for (const int pair : shuffled(25)) {
    const int d = pair / 5, e = pair % 5;
    if (d >= e) continue;
    std::vector<int> inner;
    for (int k = 0; k < 5; ++k) {
      if (k != d && k != e) inner.push_back(k);
    }
    std::array<unsigned, 4> ones = {}, zeros = {};
    for (int i = 0; i < 32; ++i) {
      const int row = (i >> d & 1) << 1 | (i >> e & 1);
      const int input = three_bits(i, inner[0], inner[1], inner[2]);
      ones[row] |= unsigned{cells.one[i]} << input;
      zeros[row] |= unsigned{cells.zero[i]} << input;
    }
    const int second = colour(ones, zeros);
    if (second < 0) continue;
    const auto high = static_cast<unsigned>(second);
    unsigned function = 0;
    for (int row = 0; row < 4; ++row) {
      if ((ones[row] & ~high) != 0) function |= 1u << row;
      if ((ones[row] & high) != 0) function |= 1u << (4 + row);
    }
    const int made = circuit.add({gates[inner[0]], gates[inner[1]], gates[inner[2]], high});
    return circuit.add({made, gates[d], gates[e], function});
  }
  return -1;
}

// Adds two gates on three of the seven gates each, and one on their outputs and the remaining gate.
// Tries all functions for the first gate, of which complements count as one. Returns the last
// gate's number, or -1.
int split_seven(Circuit& circuit, const std::array<int, 7>& gates, Wanted wanted) {
  const Cells<7> cells(circuit, gates, wanted);
  for (const int g : shuffled(7)) {
    std::vector<int> six;
    for (int k = 0; k < 7; ++k) {
      if (k != g) six.push_back(k);
    }
    for (int pair = 0; pair < 25; ++pair) {
      const int b = 1 + pair / 5, c = 1 + pair % 5;
      if (b >= c) continue;
      std::vector<int> others;
      for (int k = 1; k < 6; ++k) {
        if (k != b && k != c) others.push_back(six[k]);
      }
      unsigned ones[2][8] = {}, zeros[2][8] = {};
      for (int i = 0; i < 128; ++i) {
        const int first = three_bits(i, six[0], six[b], six[c]);
        const int second = three_bits(i, others[0], others[1], others[2]);
        ones[i >> g & 1][first] |= unsigned{cells.one[i]} << second;
        zeros[i >> g & 1][first] |= unsigned{cells.zero[i]} << second;
      }
      for (unsigned tried = 0; tried < 128; ++tried) {
        // Rows: the tried function's value, then g.
        std::array<unsigned, 4> row_ones = {}, row_zeros = {};
        for (int h = 0; h < 2; ++h) {
          for (int first = 0; first < 8; ++first) {
            const unsigned row = 2 * (tried >> first & 1) + static_cast<unsigned>(h);
            row_ones[row] |= ones[h][first];
            row_zeros[row] |= zeros[h][first];
          }
        }
        const int second = colour(row_ones, row_zeros);
        if (second < 0) continue;
        const auto high = static_cast<unsigned>(second);
        unsigned function = 0;
        for (unsigned row = 0; row < 4; ++row) {
          const unsigned place = (row >> 1) << 2 | (row & 1);
          if ((row_ones[row] & ~high) != 0) function |= 1u << place;
          if ((row_ones[row] & high) != 0) function |= 1u << (place | 2);
        }
        const int left = circuit.add({gates[six[0]], gates[six[b]], gates[six[c]], tried});
        const int right = circuit.add({gates[others[0]], gates[others[1]], gates[others[2]], high});
        return circuit.add({left, right, gates[g], function});
      }
    }
  }
  return -1;
}

// Searches for sets of count gates whose values tell ones from zeros, gate by gate. `mixed` are the
// parts in which the gates chosen so far do not; the last gate must leave none.
template <int count>
class SetSearch {
 public:
  SetSearch(Circuit& circuit, Wanted wanted, int tries)
      : circuit_(circuit), wanted_(wanted), order_(shuffled(circuit.size)), tries_(tries) {}

  int run() { return step<0>(0, {&wanted_, &wanted_ + 1}); }

 private:
  struct Mixed {
    const Wanted* begin;
    const Wanted* end;
  };

  template <int depth>
  int step(int first, Mixed mixed) {
    if constexpr (depth == count) {
      if (mixed.begin != mixed.end) return -1;
      const int size = circuit_.size;
      int found;
      if constexpr (count == 5)
        found = split_five(circuit_, chosen_, wanted_);
      else
        found = split_seven(circuit_, chosen_, wanted_);
      if (found < 0) circuit_.size = size;
      --tries_;
      return found;
    } else {
      std::array<Wanted, std::size_t{2} << depth> parts;
      for (int i = first; i + count - depth <= static_cast<int>(order_.size()); ++i) {
        const Table table = circuit_.tables[order_[i]];
        std::size_t part_count = 0;
        for (const Wanted* cell = mixed.begin; cell != mixed.end; ++cell) {
          for (const Wanted part : {*cell & table, *cell & ~table}) {
            if (part.ones != 0 && part.zeros != 0) parts[part_count++] = part;
          }
          // The last gate has to separate all of them.
          if (depth + 1 == count && part_count != 0) break;
        }
        chosen_[depth] = order_[i];
        const int found = step<depth + 1>(i + 1, {parts.data(), parts.data() + part_count});
        if (found >= 0 || tries_ <= 0) return found;
      }
      return -1;
    }
  }

  Circuit& circuit_;
  Wanted wanted_;
  std::vector<int> order_;
  std::array<int, count> chosen_ = {};
  int tries_;
};

// Makes what is wanted with a circuit of at most limit inputs and gates. Returns the number of the
// gate that gives it, or -1. may_invert: a gate that gives the complement will do; `inverted` is
// then added to its number.
int build(Circuit& circuit, Wanted wanted, int limit, unsigned split_bits, bool may_invert,
          int depth) {
  for (int i = circuit.size - 1; i >= 0; --i) {
    const Table table = circuit.tables[i];
    if ((wanted.ones & ~table) == 0 && (wanted.zeros & table) == 0) return i;
    if (may_invert && (wanted.ones & table) == 0 && (wanted.zeros & ~table) == 0)
      return i | inverted;
  }
  if (circuit.size + 1 > limit) return -1;
  if (const int found = find_one_gate(circuit, wanted); found >= 0) return found;
  if (circuit.size + 2 > limit) return -1;
  if (const int found = SetSearch<5>(circuit, wanted, INT32_MAX).run(); found >= 0) return found;
  if (circuit.size + 3 > limit) return -1;
  const int tries = depth == 0 ? 40 : 15;
  if (const int found = SetSearch<7>(circuit, wanted, tries).run(); found >= 0) return found;
  // A choice between two parts with fewer gates would have been found already.
  if (circuit.size + 4 > limit || is_late()) return -1;
  Circuit best;
  int best_gate = -1;
  int left = depth == 0 ? 2 * input_count : depth == 1 ? 4 : 2;
  for (const int choice : shuffled(2 * input_count)) {
    const int bit = choice / 2;
    if ((split_bits >> bit & 1) != 0 || left-- == 0) continue;
    const Table first = choice % 2 != 0 ? circuit.tables[bit] : ~circuit.tables[bit];
    Circuit trial = circuit;
    const unsigned bits = split_bits | 1u << bit;
    const int x = build(trial, wanted & first, limit - 1, bits, true, depth + 1);
    if (x < 0) continue;
    const int y = build(trial, wanted & ~first, limit - 1, bits, true, depth + 1);
    if (y < 0) continue;
    unsigned function = 0;
    for (int i = 0; i < 8; ++i) {
      const bool takes_x = (i >> 2 & 1) == choice % 2;
      const bool value = takes_x ? (i & 2) != 0 : (i & 1) != 0;
      const bool flips = ((takes_x ? x : y) & inverted) != 0;
      function |= unsigned{value != flips} << i;
    }
    const int gate = trial.add({bit, x & ~inverted, y & ~inverted, function});
    if (trial.size > limit) continue;
    best = trial;
    best_gate = gate;
    limit = trial.size - 1;
  }
  if (best_gate >= 0) circuit = best;
  return best_gate;
}

struct Solution {
  Circuit circuit;
  std::array<int, 4> outputs = {-1, -1, -1, -1};
};

Solution find(int box, double seconds) {
  deadline_s = static_cast<double>(std::clock()) / CLOCKS_PER_SEC + seconds;
  std::array<Table, 4> wanted = {};
  Solution start;
  for (unsigned v = 0; v < 64; ++v) {
    for (int output = 0; output < 4; ++output)
      wanted[output] |= Table{nacre::engine::cuda::des_substitute(box, v) >> (3 - output) & 1} << v;
    for (int i = 0; i < input_count; ++i)
      start.circuit.tables[i] =
          (v == 0 ? 0 : start.circuit.tables[i]) | Table{v >> (input_count - 1 - i) & 1} << v;
  }
  Solution best;
  best.circuit.size = gates_max - 4;
  while (!is_late()) {
    std::vector<Solution> level = {start};
    for (int made = 0; made < 4; ++made) {
      std::vector<Solution> next;
      for (const Solution& from : level) {
        for (int output = 0; output < 4; ++output) {
          if (from.outputs[output] >= 0) continue;
          Solution grown = from;
          // The outputs that are left take at least two gates each.
          const int limit =
              std::min(best.circuit.size - 1 - 2 * (3 - made), from.circuit.size + 14);
          grown.outputs[output] =
              build(grown.circuit, {wanted[output], ~wanted[output]}, limit, 0, false, 0);
          if (grown.outputs[output] >= 0) next.push_back(grown);
        }
      }
      std::shuffle(next.begin(), next.end(), random_bits);
      std::stable_sort(next.begin(), next.end(), [](const Solution& a, const Solution& b) {
        return a.circuit.size < b.circuit.size;
      });
      if (next.size() > beam_width) next.resize(beam_width);
      level = std::move(next);
    }
    if (!level.empty() && level.front().circuit.size < best.circuit.size) best = level.front();
  }
  return best;
}

std::string name_of(int gate) {
  std::string name(1, gate < input_count ? 'x' : 't');
  return name += std::to_string(gate < input_count ? gate + 1 : gate - input_count + 1);
}

void print(int box, const Solution& solution) {
  std::printf("\ntemplate <>\nNACRE_HOST_DEVICE inline void des_sbox<%d>(", box);
  for (int i = 1; i <= input_count; ++i)
    std::printf("std::uint32_t x%d, ", i);
  std::printf("std::uint32_t (&out)[4]) {\n");
  for (int i = input_count; i < solution.circuit.size; ++i) {
    const Gate& gate = solution.circuit.gates[i];
    std::printf("  const std::uint32_t %s = lut3<0x%02x>(%s, %s, %s);\n", name_of(i).c_str(),
                gate.function, name_of(gate.a).c_str(), name_of(gate.b).c_str(),
                name_of(gate.c).c_str());
  }
  for (int output = 0; output < 4; ++output)
    std::printf("  out[%d] = %s;\n", output, name_of(solution.outputs[output]).c_str());
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  if (seconds <= 0) {
    std::fprintf(stderr, "usage: find_des_sboxes SECONDS [SEED]\n");
    return 2;
  }
  random_bits.seed(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  std::vector<Solution> solutions;
  for (int box = 0; box < 8; ++box) {
    solutions.push_back(find(box, seconds));
    if (solutions.back().outputs[0] < 0) {
      std::fprintf(stderr, "no circuit for S-box %d in that time\n", box + 1);
      return 1;
    }
  }
  std::printf(
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// Made by find_des_sboxes.cpp. The S-boxes of DES (FIPS 46-3) as circuits of functions of\n"
      "// three bits.\n"
      "//\n"
      "// x1 to x6 are an S-box's inputs, the first being the highest of the six; out[0] is the\n"
      "// highest of the four outputs. Each word holds a bit of 32 blocks.\n"
      "#pragma once\n\n#include \"gpu_engine/cuda/kernels/lut3.h\"\n\n"
      "namespace nacre::engine::cuda {\n\ninline constexpr int des_sbox_gates[8] = {");
  for (const Solution& solution : solutions)
    std::printf("%d, ", solution.circuit.size - input_count);
  std::printf(
      "};\n\ntemplate <int box>\nNACRE_HOST_DEVICE void des_sbox(std::uint32_t x1, std::uint32_t "
      "x2,"
      " std::uint32_t x3, std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,"
      " std::uint32_t (&out)[4]);\n");
  for (int box = 0; box < 8; ++box)
    print(box, solutions[box]);
  std::printf("\n}  // namespace nacre::engine::cuda\n");
  return 0;
}
