// SPDX-License-Identifier: Apache-2.0
// The papers' tables as text, Markdown, JSON and gnuplot's files.
#pragma once

#include <string>
#include <vector>

#include "gpu_engine/base/result.h"
#include "tools/papers/table.h"

namespace nacre::tools {

// What ran where.
struct SeedSetting {
  std::string processor;
  unsigned thread_count = 1;  // "all"
  std::string engine;         // its own name, with the device
  std::string data;           // where the bytes come from
  double seconds = 0;         // for each figure
  std::string date;           // YYYY-MM-DD
  std::string note;           // given by the user, such as a commit; may be empty
};

// Plain text: columns side by side, lines of any width; ends with an empty line.
std::string seed_text(const SeedTable& table);
// The place of the figures.
struct SeedFigures {
  std::string folder;
  std::string link;  // the folder in links of the document; empty: no links
};
// A whole document.
std::string seed_markdown(const SeedSetting& setting, const std::vector<SeedTable>& tables,
                          const SeedFigures& figures);
std::string seed_json(const SeedSetting& setting, const std::vector<SeedTable>& tables);
// Writes NAME.dat and NAME.gp of every table into the folder; gnuplot makes NAME.svg of them.
// Error: io.
Result<> write_seed_figures(const std::string& folder, const std::vector<SeedTable>& tables);

// The authors and title of a paper, by its number: "000".
struct SeedPaper {
  const char* number;
  const char* reference;
};
extern const std::vector<SeedPaper> seed_papers;

}  // namespace nacre::tools
