// SPDX-License-Identifier: Apache-2.0
// See render.h.
#include "tools/bench/seeds/render.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace nacre::tools {
namespace {

using nlohmann::ordered_json;

// Characters, of UTF-8 without any that are wide.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string padded(const std::string& text, std::size_t width, bool to_the_right) {
  const std::string room(width - std::min(width, width_of(text)), ' ');
  return to_the_right ? room + text : text + room;
}

std::string head_of(const SeedColumn& column) {
  const std::string unit = unit_name(column.unit);
  return (column.is_published ? "paper: " : "") + column.title + (unit.empty() ? "" : ", " + unit);
}

std::string json_unit(SeedUnit unit) {
  switch (unit) {
    case SeedUnit::text:
      return "text";
    case SeedUnit::seconds:
      return "seconds";
    case SeedUnit::bytes:
      return "bytes";
    case SeedUnit::bits_per_second:
      return "bits_per_second";
    case SeedUnit::bytes_per_second:
      return "bytes_per_second";
    case SeedUnit::times:
      return "times";
    case SeedUnit::percent:
      return "percent";
    case SeedUnit::count:
      return "count";
  }
  return "";
}

ordered_json to_json(const SeedCell& cell) {
  if (const auto* const text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* const number = std::get_if<double>(&cell)) return *number;
  return nullptr;
}

ordered_json to_json(const SeedTable& table) {
  ordered_json columns = ordered_json::array();
  for (const SeedColumn& column : table.columns)
    columns.push_back({{"title", column.title},
                       {"unit", json_unit(column.unit)},
                       {"published", column.is_published}});
  ordered_json rows = ordered_json::array();
  for (const auto& row : table.rows) {
    ordered_json cells = ordered_json::array();
    for (const SeedCell& value : row)
      cells.push_back(to_json(value));
    rows.push_back(std::move(cells));
  }
  return {{"paper", table.paper}, {"name", table.name}, {"title", table.title},
          {"columns", columns},   {"rows", rows},       {"notes", table.notes}};
}

// Text in quotes, numbers in the unit's base, "?" for nothing; an empty line before each row apart.
std::string data_of(const SeedTable& table) {
  std::string data = "#";
  for (const SeedColumn& column : table.columns)
    data += fmt::format(" \"{}{}\"", column.is_published ? "paper: " : "", column.title);
  data += '\n';
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    // To gnuplot an empty line ends a line.
    if (i + table.rows_apart >= table.rows.size()) data += '\n';
    for (const SeedCell& value : table.rows[i]) {
      if (const auto* const text = std::get_if<std::string>(&value))
        data += fmt::format("\"{}\" ", *text);
      else if (const auto* const number = std::get_if<double>(&value))
        data += fmt::format("{} ", *number);
      else
        data += "? ";
    }
    data.back() = '\n';
  }
  return data;
}

std::string script_of(const SeedTable& table) {
  const SeedPlot& plot = *table.plot;
  const SeedColumn& x = table.columns[plot.x];
  const SeedUnit y_unit = table.columns[plot.y.front()].unit;
  std::string script = fmt::format(
      "# gnuplot {0}.gp makes {0}.svg.\n"
      "set terminal svg size 900,600\nset output '{0}.svg'\nset datafile missing '?'\n"
      "set title \"{1}\"\nset xlabel '{2}'\nset ylabel '{3}'\nset key left top\n",
      table.name, table.title, x.title, json_unit(y_unit));
  if (plot.is_logarithmic) script += "set logscale xy\n";
  // Text is a place of its own for each row.
  const bool is_text = x.unit == SeedUnit::text;
  if (is_text) script += "set xtics rotate by -20\nset yrange [0:*]\n";
  std::string separator = "plot ";
  for (const std::size_t y : plot.y) {
    script += separator;
    script += is_text ? fmt::format("'{}.dat' using {}:xtic({})", table.name, y + 1, plot.x + 1)
                      : fmt::format("'{}.dat' using {}:{}", table.name, plot.x + 1, y + 1);
    script += fmt::format(" with linespoints title \"{}\"", head_of(table.columns[y]));
    separator = ", \\\n  ";
  }
  return script + "\n";
}

Result<> write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return {};
  return fail(ErrorCode::io, fmt::format("{}: {}", path.string(), std::strerror(errno)));
}

}  // namespace

const std::vector<SeedPaper> seed_papers = {
    {"000",
     "Tosoni, Sorio: A high performance parallel calculation of 32-bit Cyclic Redundancy Check "
     "for GP-GPU (GeForce RTX 2070 Super)"},
    {"001",
     "Masood: Protect your data at the speed of light with gKrypt, part 2, 2012 (Tesla C2050)"},
    {"002",
     "Harrison, Waldron: Practical symmetric key cryptography on modern graphics hardware, 2008 "
     "(GeForce 8800 GTX, G80)"},
    {"003", "Guan, Li: Parallel implementations of compression and cryptographic algorithms, 2015"},
};

std::string seed_text(const SeedTable& table) {
  std::vector<std::vector<std::string>> lines(1);
  for (const SeedColumn& column : table.columns)
    lines[0].push_back(head_of(column));
  for (const auto& row : table.rows) {
    lines.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i)
      lines.back().push_back(to_text(row[i], table.columns[i].unit));
  }
  std::string text = fmt::format("{}: {}\n", table.paper, table.title);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      std::size_t width = 0;
      for (const auto& other : lines)
        width = std::max(width, width_of(other[i]));
      text +=
          (i == 0 ? "" : "  ") + padded(line[i], width, table.columns[i].unit != SeedUnit::text);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  for (const std::string& note : table.notes)
    text += "* " + note + "\n";
  return text + "\n";
}

std::string seed_markdown(const SeedSetting& setting, const std::vector<SeedTable>& tables,
                          const std::string& figures) {
  std::string text = fmt::format(
      "# The source papers' tables\n\n"
      "Written by `nacre bench seeds --markdown`. Columns that begin with \"paper\" are what the "
      "paper says, in its units, on\nits machine; all others were measured here:\n\n"
      "* {}; {}\n* \"all threads\" are {}; {} s for each figure, medians; {}{}\n* the bytes: {}\n\n"
      "A dash in a paper's column: its text does not say. In ours: nothing here does it (no "
      "device, "
      "or the device's engine\ndoes not take such messages; then it is never the processor's "
      "figure), "
      "or the row was left out. *plain code* is a serial\nprogram as the papers describe "
      "theirs; *library* the best of those that this build knows. *kernels* are without copies, "
      "all "
      "being on\nthe device; *with copies* goes from page-locked memory to the device and back. "
      "What every column computed was compared with\nwhat a library computes, or undone and then "
      "compared.\n",
      setting.processor, setting.engine, setting.thread_count, setting.seconds, setting.date,
      setting.note.empty() ? "" : "; " + setting.note, setting.data);
  for (const SeedPaper& paper : seed_papers) {
    bool is_first = true;
    for (const SeedTable& table : tables) {
      if (table.paper != paper.number) continue;
      if (is_first) text += fmt::format("\n## {}. {}\n", paper.number, paper.reference);
      is_first = false;
      text += fmt::format("\n### {}\n\n|", table.title);
      std::string rule = "\n|";
      for (const SeedColumn& column : table.columns) {
        text += fmt::format(" {} |", head_of(column));
        rule += column.unit == SeedUnit::text ? "---|" : "---:|";
      }
      text += rule + "\n";
      for (const auto& row : table.rows) {
        text += "|";
        for (std::size_t i = 0; i < row.size(); ++i)
          text += fmt::format(" {} |", to_text(row[i], table.columns[i].unit));
        text += "\n";
      }
      if (!table.notes.empty() || (table.plot && !figures.empty())) text += "\n";
      for (const std::string& note : table.notes)
        text += "* " + note + "\n";
      if (table.plot && !figures.empty())
        text += fmt::format("* Figure: [{0}.gp]({1}/{0}.gp), [{0}.dat]({1}/{0}.dat)\n", table.name,
                            figures);
    }
  }
  return text;
}

std::string seed_json(const SeedSetting& setting, const std::vector<SeedTable>& tables) {
  ordered_json all = ordered_json::array();
  for (const SeedTable& table : tables)
    all.push_back(to_json(table));
  const ordered_json whole = {{"schema", "nacre bench seeds 1"},
                              {"version", NACRE_VERSION},
                              {"processor", setting.processor},
                              {"thread_count", setting.thread_count},
                              {"engine", setting.engine},
                              {"data", setting.data},
                              {"seconds", setting.seconds},
                              {"date", setting.date},
                              {"note", setting.note},
                              {"tables", all}};
  // Paths are any bytes.
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<> write_seed_figures(const std::string& folder, const std::vector<SeedTable>& tables) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", folder, error.message()));
  for (const SeedTable& table : tables) {
    const auto base = std::filesystem::path(folder) / table.name;
    NACRE_TRY(write_file(base.string() + ".dat", data_of(table)));
    if (table.plot) NACRE_TRY(write_file(base.string() + ".gp", script_of(table)));
  }
  return {};
}

}  // namespace nacre::tools
