// SPDX-License-Identifier: Apache-2.0
// nacre-papers: repeats the tables of the four papers that Nacre began with, and sets our figures
// next to theirs. It measures on the user's own bytes, and is no part of the packages.
#include <algorithm>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "tools/bench/list_argument.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/size_argument.h"
#include "tools/cli/terminal.h"
#include "tools/papers/papers.h"

namespace nacre::tools {
namespace {

constexpr std::uint64_t generated_size_max = 64u << 20;

struct CommandLine {
  std::string path;
  std::string engine = "auto";
  std::string threads;
  std::string only;
  std::string sample = "8M";
  PaperArguments papers;
};

Result<> run(CommandLine& line) {
  NACRE_TRY(check_seconds(line.papers.seconds));
  NACRE_ASSIGN(line.papers.thread_counts, parse_thread_counts(line.threads));
  if (!line.only.empty()) line.papers.only = split_list(line.only);
  const auto sample = parse_size(line.sample);
  if (!sample) return add_context(sample.error(), "--sample");
  if (*sample == 0) return fail(ErrorCode::invalid_argument, "--sample: more than 0 bytes");
  NACRE_ASSIGN(BenchEngines engines, BenchEngines::open(line.engine));
  BenchData data;
  if (line.path.empty()) {
    data = generate_bench_data(std::min(*sample, generated_size_max));
  } else {
    NACRE_ASSIGN(data, load_bench_data(line.path, *sample));
  }
  return run_papers(line.papers, engines, data);
}

std::function<int()> add_arguments(CLI::App& app) {
  auto line = std::make_shared<CommandLine>();
  PaperArguments& papers = line->papers;
  app.add_option("PATH", line->path,
                 "A file or folder whose bytes are used; without it, generated text");
  app.add_option("--only", line->only, "Only these papers, separated by commas: 000,002");
  app.add_option("--size-max", papers.size_max, "Leave out longer inputs")->capture_default_str();
  app.add_option("--sample", line->sample, "The most bytes of PATH that are used")
      ->capture_default_str();
  app.add_option("--seconds", papers.seconds, "About this long for each figure")
      ->capture_default_str();
  app.add_option("--threads", line->threads,
                 "Processor threads, separated by commas; the largest number counts as all. By "
                 "default 1 and all cores");
  app.add_option("--engine", line->engine, "cpu leaves the device's columns empty")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--json", papers.json,
                 "Also write the figures to this file as JSON; - : to standard output, instead of "
                 "the tables");
  app.add_option("--markdown", papers.markdown, "Also write a document");
  app.add_option("--figures", papers.figures, "Also write the input of gnuplot into this folder");
  app.add_option("--note", papers.note, "A line for the document, such as a commit");
  app.footer(
      "Examples:\n"
      "  nacre-papers --only 000 --size-max 2M\n"
      "  nacre-papers CORPUS --markdown SEEDS.md --figures seeds\n"
      "Exit status: 0 measured, 2 usage, 8 failed");
  return [line] {
    const auto done = run(*line);
    return done ? exit_fine : report(done.error());
  };
}

}  // namespace
}  // namespace nacre::tools

int main(int argc, char** argv) {
  return nacre::tools::run_command_line("nacre-papers",
                                        "Repeat the tables of the papers that Nacre began with",
                                        argc, argv, nacre::tools::add_arguments);
}
