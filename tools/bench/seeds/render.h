// SPDX-License-Identifier: Apache-2.0
// The papers' tables as text, Markdown, JSON and gnuplot's files.
#pragma once

#include <string>
#include <vector>

#include "gpu_engine/base/result.h"
#include "tools/bench/seeds/table.h"

namespace nacre::tools {

// What ran where.
struct SeedSetting {
  std::string processor;
  unsigned thread_count = 1;  // "all"
  std::string engine;         // as it calls itself, with the device
  std::string data;           // what the bytes are
  double seconds = 0;         // for each figure
  std::string date;           // YYYY-MM-DD
  std::string note;           // given by whoever ran it: a commit; may be empty
};

// Columns side by side, lines of any width; ends with an empty line.
std::string seed_text(const SeedTable& table);
// Where the figures are.
struct SeedFigures {
  std::string folder;
  std::string link;  // the folder as links of the document name it; empty: no links
};
// A whole document.
std::string seed_markdown(const SeedSetting& setting, const std::vector<SeedTable>& tables,
                          const SeedFigures& figures);
std::string seed_json(const SeedSetting& setting, const std::vector<SeedTable>& tables);
// NAME.dat of every table in the folder, and NAME.gp, which makes NAME.svg of it. io.
Result<> write_seed_figures(const std::string& folder, const std::vector<SeedTable>& tables);

// What a paper is: "000" to its authors and title.
struct SeedPaper {
  const char* number;
  const char* reference;
};
extern const std::vector<SeedPaper> seed_papers;

}  // namespace nacre::tools
