// SPDX-License-Identifier: Apache-2.0
#include "tools/papers/render.h"

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

// The number of characters of UTF-8 text that has no wide ones.
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

// The series that have lines of their own, in the order of the rows; empty if the plot has none.
std::vector<SeedCell> series_of(const SeedTable& table) {
  std::vector<SeedCell> series;
  if (!table.plot.series) return series;
  for (const auto& row : table.rows) {
    const SeedCell& value = row[*table.plot.series];
    if (std::ranges::find(series, value) == series.end()) series.push_back(value);
  }
  return series;
}

std::string data_line(const std::vector<SeedCell>& row) {
  std::string line;
  for (const SeedCell& value : row) {
    if (const auto* const text = std::get_if<std::string>(&value))
      line += fmt::format("\"{}\" ", *text);
    else if (const auto* const number = std::get_if<double>(&value))
      line += fmt::format("{} ", *number);
    else
      line += "? ";
  }
  line.back() = '\n';
  return line;
}

// Text in quotes, numbers in the unit's base, "?" for nothing. In gnuplot's files an empty line
// ends a line, so there is one before each separate row. Two empty lines end a block, which is a
// series.
std::string data_of(const SeedTable& table) {
  std::string data = "#";
  for (const SeedColumn& column : table.columns)
    data += fmt::format(" \"{}{}\"", column.is_published ? "paper: " : "", column.title);
  data += '\n';
  const std::vector<SeedCell> series = series_of(table);
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (i > 0) data += "\n\n";
    for (const auto& row : table.rows)
      if (row[*table.plot.series] == series[i]) data += data_line(row);
  }
  for (std::size_t i = 0; i < table.rows.size() && series.empty(); ++i) {
    if (i + table.rows_apart == table.rows.size()) data += '\n';
    data += data_line(table.rows[i]);
  }
  return data;
}

// A line of a figure, or the bars of a column.
struct PlotLine {
  std::string title;
  std::string source;  // in the syntax of gnuplot's plot command
  std::size_t style;   // the same in all panels
};
struct PlotPanel {
  std::string title;
  SeedUnit unit;  // that of its vertical axis
  std::vector<PlotLine> lines;
};

bool has_numbers(const SeedTable& table, std::size_t column, const SeedCell* series) {
  return std::ranges::any_of(table.rows, [&](const std::vector<SeedCell>& row) {
    return std::holds_alternative<double>(row[column]) &&
           (series == nullptr || row[*table.plot.series] == *series);
  });
}

std::string title_of(const SeedColumn& column) {
  return (column.is_published ? "paper: " : "") + column.title;
}

// all: also lines of which nothing was measured.
std::vector<PlotPanel> panels_of(const SeedTable& table, bool all) {
  const SeedPlot& plot = table.plot;
  const std::vector<SeedCell> series = series_of(table);
  // The rows of one of the series, or of the whole table.
  const auto add = [&](PlotPanel& panel, const std::string& title, std::size_t y,
                       const std::optional<std::size_t>& of, std::size_t place) {
    if (!all && !has_numbers(table, y, of ? &series[*of] : nullptr)) return;
    const bool has_bars = table.columns[plot.x].unit == SeedUnit::text;
    const std::string columns = has_bars ? fmt::format("{}:xtic({})", y + 1, plot.x + 1)
                                         : fmt::format("{}:{}", plot.x + 1, y + 1);
    panel.lines.push_back({title,
                           fmt::format("'{}.dat'{} using {}", table.name,
                                       of ? fmt::format(" index {}", *of) : "", columns),
                           place + 1});
  };
  const auto add_columns = [&](const std::string& title, const std::optional<std::size_t>& of) {
    PlotPanel panel = {title, table.columns[plot.y.front()].unit, {}};
    for (std::size_t i = 0; i < plot.y.size(); ++i)
      add(panel, title_of(table.columns[plot.y[i]]), plot.y[i], of, i);
    return panel;
  };
  std::vector<PlotPanel> panels;
  if (series.empty()) {
    panels.push_back(add_columns(table.title, std::nullopt));
  } else if (const SeedColumn& column = table.columns[*plot.series];
             column.unit != SeedUnit::text) {
    for (std::size_t i = 0; i < series.size(); ++i)
      panels.push_back(add_columns(column.title + ": " + to_text(series[i], column.unit), i));
  } else {
    for (const std::size_t y : plot.y) {
      panels.push_back({title_of(table.columns[y]), table.columns[y].unit, {}});
      for (std::size_t i = 0; i < series.size(); ++i)
        add(panels.back(), to_text(series[i], column.unit), y, i, i);
    }
  }
  std::erase_if(panels, [](const PlotPanel& panel) { return panel.lines.empty(); });
  return panels;
}

// gnuplot's format for the numbers of an axis.
const char* axis_format(SeedUnit unit) {
  switch (unit) {
    case SeedUnit::seconds:
      return "%.0s %cs";
    case SeedUnit::bits_per_second:
      return "%.0s %cbit/s";
    case SeedUnit::bytes_per_second:
      return "%.0s %cB/s";
    case SeedUnit::bytes:
      return "%.0b %BB";
    case SeedUnit::count:
      return "%.0f";
    default:
      return "%g";
  }
}

std::string plot_command(const std::vector<PlotLine>& lines, const char* with) {
  std::string command = "plot ";
  const char* separator = "";
  for (const PlotLine& line : lines) {
    command += fmt::format("{}{} with {} lt {} title \"{}\"", separator, line.source, with,
                           line.style, line.title);
    separator = ", \\\n  ";
  }
  return command + "\n";
}

// The key of several panels, in a place of its own.
std::string key_command(const std::vector<PlotPanel>& panels) {
  std::vector<PlotLine> key;
  for (const PlotPanel& panel : panels) {
    for (const PlotLine& line : panel.lines)
      if (std::ranges::find(key, line.style, &PlotLine::style) == key.end())
        key.push_back({line.title, "NaN", line.style});
  }
  std::ranges::sort(key, {}, &PlotLine::style);
  return "unset title\nunset xlabel\nunset logscale\nunset tics\nunset grid\nunset border\n"
         "set xrange [0:1]\nset yrange [0:1]\nset key center center\n" +
         plot_command(key, "linespoints");
}

std::string script_of(const SeedTable& table) {
  const SeedColumn& x = table.columns[table.plot.x];
  const bool has_bars = x.unit == SeedUnit::text;
  std::vector<PlotPanel> panels = panels_of(table, false);
  if (panels.empty()) panels = panels_of(table, true);
  const bool is_one = panels.size() == 1;
  const std::size_t across = is_one ? 1 : panels.size() < 4 ? 2 : 3;
  const std::size_t down = is_one ? 1 : panels.size() / across + 1;
  std::string script = fmt::format(
      "# gnuplot {0}.gp makes {0}.svg.\nset encoding utf8\n"
      "set terminal svg size {1},{2} noenhanced font 'sans,11' background 'white'\n"
      "set output '{0}.svg'\nset datafile missing '?'\nset grid\nset logscale y\n"
      "set linetype 5 lc rgb 'dark-goldenrod'\nset linetype 9 lc rgb 'gray40'\n",
      table.name, is_one ? 860 : 400 * across, is_one ? 420 : 300 * down);
  if (has_bars)
    script += "set style fill solid 0.8\nset boxwidth 0.9\nset xtics rotate by -25\n";
  else
    script += fmt::format(
        "set logscale x 2\nset xlabel \"{}\"\nset format x '{}'\nset xtics rotate by -40\n",
        title_of(x), axis_format(x.unit));
  script += is_one ? "set key outside right top\n"
                   : fmt::format("set multiplot layout {},{} title \"{}\"\nunset key\n", down,
                                 across, table.title);
  for (const PlotPanel& panel : panels) {
    script +=
        fmt::format("set title \"{}\"\nset format y '{}'\n", panel.title, axis_format(panel.unit));
    script += plot_command(panel.lines, has_bars ? "histogram" : "linespoints");
  }
  return is_one ? script : script + key_command(panels) + "unset multiplot\n";
}

Result<> write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return {};
  return fail(ErrorCode::io, fmt::format("{}: {}", path.string(), std::strerror(errno)));
}

// The image exists once gnuplot has made it.
std::string links_to(const std::string& name, const SeedFigures& figures) {
  std::error_code error;
  std::string links;
  if (std::filesystem::exists(std::filesystem::path(figures.folder) / (name + ".svg"), error))
    links = fmt::format("[svg]({}/{}.svg), ", figures.link, name);
  return links + fmt::format("[gp]({0}/{1}.gp), [dat]({0}/{1}.dat)", figures.link, name);
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
                          const SeedFigures& figures) {
  std::string text = fmt::format(
      "# The source papers' tables\n\n"
      "Written by `nacre-papers --markdown`. Columns whose names begin with \"paper\" show what "
      "the "
      "paper says, in its\nunits, on its machine. All others were measured here:\n\n"
      "* {}; {}\n* \"all threads\" are {}; {} s for each figure, medians; {}{}\n* the bytes: {}\n\n"
      "What the columns are:\n\n"
      "* *plain code*: a serial program as the papers describe theirs.\n"
      "* *library*: the fastest library that this build has.\n"
      "* *kernels*: the GPU without copies, with everything on the device.\n"
      "* *with copies*: the GPU, from page-locked memory to the device and back.\n\n"
      "A dash in a column of the paper means that the paper's text has no figure. A dash in "
      "another "
      "column means that\nnothing was measured: the row was left out, there is no device, or "
      "Nacre's "
      "engine does not give such messages to\na device. A figure of the processor never stands in "
      "a column of the GPU. All outputs were compared with a\nlibrary's output, or undone and then "
      "compared.\n\n"
      "A *crossover* is the size from which on the GPU with copies stays faster than another "
      "column. \"Not up to 2 MiB\" means\nthat it is not at 2 MiB, the largest size.\n",
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
      if (!table.notes.empty() || !figures.link.empty()) text += "\n";
      for (const std::string& note : table.notes)
        text += "* " + note + "\n";
      if (!figures.link.empty()) text += "* Figure: " + links_to(table.name, figures) + "\n";
    }
  }
  return text;
}

std::string seed_json(const SeedSetting& setting, const std::vector<SeedTable>& tables) {
  ordered_json all = ordered_json::array();
  for (const SeedTable& table : tables)
    all.push_back(to_json(table));
  const ordered_json whole = {
      {"schema", "nacre-papers 1"},     {"version", NACRE_VERSION},
      {"processor", setting.processor}, {"thread_count", setting.thread_count},
      {"engine", setting.engine},       {"data", setting.data},
      {"seconds", setting.seconds},     {"date", setting.date},
      {"note", setting.note},           {"tables", all}};
  // Paths may be any bytes.
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<> write_seed_figures(const std::string& folder, const std::vector<SeedTable>& tables) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", folder, error.message()));
  for (const SeedTable& table : tables) {
    const auto base = std::filesystem::path(folder) / table.name;
    NACRE_TRY(write_file(base.string() + ".dat", data_of(table)));
    NACRE_TRY(write_file(base.string() + ".gp", script_of(table)));
  }
  return {};
}

}  // namespace nacre::tools
