// SPDX-License-Identifier: Apache-2.0
// A table or figure of a paper, with our figures next to the paper's: columns with units, rows of
// cells, and how the contenders of its rows compare. render.h makes text, Markdown, JSON and
// gnuplot's files of it.
#pragma once

#include <optional>
#include <string>
#include <utility>
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

// Nothing is shown as a dash. Numbers are in the column's unit, without prefixes.
using SeedCell = std::variant<std::monostate, std::string, double>;

// The number, or a dash if there is none.
SeedCell cell(const std::optional<double>& value);
// Seconds, or the rate of these bytes in that time: bytes or bits a second.
SeedCell rate_cell(double bytes, const std::optional<double>& seconds, SeedUnit unit);
// a / b, if there are both and b is not 0.
SeedCell ratio(const std::optional<double>& a, const std::optional<double>& b);

struct SeedColumn {
  std::string title;
  SeedUnit unit = SeedUnit::text;
  bool is_published = false;  // the paper says it; otherwise measured in this run
};

// Which columns a figure shows, on logarithmic axes: bars for each text in column x, lines over
// numbers. A column of series separates rows: the rows of one text are a line in the panel of each
// y, the rows of one number have a panel of their own.
struct SeedPlot {
  std::size_t x = 0;
  std::vector<std::size_t> y;
  std::optional<std::size_t> series = std::nullopt;
};

struct SeedTable {
  std::string paper;  // "000"
  std::string name;   // that of its files: "000_section_5"
  std::string title;
  std::vector<SeedColumn> columns;
  std::vector<std::vector<SeedCell>> rows;  // as long as columns
  std::size_t rows_apart = 0;  // how many of the last rows have lines of their own in a figure
  std::vector<std::string> notes;
  SeedPlot plot;
};

// "4.35 s", "78.9 MiB", "15,423"; a dash for nothing.
std::string to_text(const SeedCell& cell, SeedUnit unit);
// The unit as a column's head names it; empty if each cell has its own.
const char* unit_name(SeedUnit unit);

// What the contenders of a row take for the same work, in seconds; nothing if it was not measured.
// kernels and with_copies are the engine's on a device.
struct SeedTimes {
  std::optional<double> plain, plain_all, library, library_all, kernels, with_copies;
  std::string library_name;  // the fastest on one thread
};
using SeedTime = std::optional<double> SeedTimes::*;
inline const std::vector<SeedTime> seed_times_all = {&SeedTimes::plain,   &SeedTimes::plain_all,
                                                     &SeedTimes::library, &SeedTimes::library_all,
                                                     &SeedTimes::kernels, &SeedTimes::with_copies};

// What a table compares.
struct SeedContenders {
  std::string plain_name = "plain code";
  SeedUnit unit = SeedUnit::seconds;  // or bytes or bits a second
  std::vector<SeedTime> shown;        // each has a column
  std::vector<SeedTime> beaten = {};  // the GPU's speed-ups by each, without and with copies
  // The sizes from which on a contender is behind: "16 KiB", "16 messages".
  SeedUnit size_unit = SeedUnit::bytes;
  std::string size_noun = {};
};

// The columns of a table that are filled from SeedTimes, and the sizes from which on the GPU is
// ahead.
class SeedComparison {
 public:
  explicit SeedComparison(SeedContenders contenders) : contenders_(std::move(contenders)) {}

  // Columns of the contenders, which the table's figure shows then, and of the speed-ups.
  void add_columns(SeedTable& table) const;
  // Appends the cells of those columns to the row, for work on this many bytes.
  void add_row(SeedTable& table, std::vector<SeedCell> row, const SeedTimes& times, double bytes);
  // Adds a row to the search for crossovers. The rows of a group are added in the order of their
  // sizes. The group is "" or what its rows have in common, for example "messages of 16 blocks".
  void add_place(double size, const SeedTimes& times, const std::string& group = {});
  // The library's name, and for each group the sizes from which on the GPU with copies stays faster
  // than the processor's contenders.
  void add_notes(SeedTable& table) const;
  // The title of the column with that time.
  std::string title(SeedTime time) const;

 private:
  struct Place {
    double size;
    SeedTimes times;
  };
  struct Group {
    std::string name;
    std::vector<Place> places;
  };
  void keep_library_name(const SeedTimes& times);
  std::string crossover(const Group& group, SeedTime other) const;

  SeedContenders contenders_;
  std::vector<Group> groups_;
  std::string library_name_;
};

}  // namespace nacre::tools
