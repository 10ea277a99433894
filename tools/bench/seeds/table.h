// SPDX-License-Identifier: Apache-2.0
// A table or figure of a paper with ours beside it: columns with units, rows of cells. How it looks
// as text, Markdown, JSON and gnuplot is elsewhere (render.h).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace nacre::tools {

enum class SeedUnit {
  text,
  seconds,
  bytes,
  bits_per_second,
  bytes_per_second,
  times,  // how many times as fast
  percent,
  count,
};

// Nothing: a dash. Numbers are in the column's unit, without prefixes.
using SeedCell = std::variant<std::monostate, std::string, double>;

// A number where there is one, else a dash.
SeedCell cell(const std::optional<double>& value);
// a / b, where there are both and b is not 0.
SeedCell ratio(const std::optional<double>& a, const std::optional<double>& b);

struct SeedColumn {
  std::string title;
  SeedUnit unit = SeedUnit::text;
  bool is_published = false;  // what the paper says; else measured in this run
};

// Which columns a figure shows.
struct SeedPlot {
  std::size_t x = 0;
  std::vector<std::size_t> y;
  bool is_logarithmic = true;
};

struct SeedTable {
  std::string paper;  // "000"
  std::string name;   // of its files: "000_section_5"
  std::string title;
  std::vector<SeedColumn> columns;
  std::vector<std::vector<SeedCell>> rows;  // as long as columns
  std::size_t rows_apart = 0;               // how many of the last no line of a figure leads to
  std::vector<std::string> notes;
  std::optional<SeedPlot> plot;
};

// Where what a column measures ends up faster than another: "from 592 KiB on", "not up to
// 78.9 MiB". sizes and seconds have one entry a row, in the order of sizes; rows that lack one of
// both play no part. Empty where no row has both.
std::string crossover(const std::vector<double>& sizes,
                      const std::vector<std::optional<double>>& seconds,
                      const std::vector<std::optional<double>>& other_seconds);

// "4.35 s", "78.9 MiB", "15,423"; a dash for nothing.
std::string to_text(const SeedCell& cell, SeedUnit unit);
// The unit as a column's head names it; empty where each cell has its own.
const char* unit_name(SeedUnit unit);

}  // namespace nacre::tools
