// SPDX-License-Identifier: Apache-2.0
#include "tools/papers/papers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "tools/cli/size_argument.h"
#include "tools/cli/terminal.h"
#include "tools/papers/render.h"
#include "tools/papers/run.h"

namespace nacre::tools {
namespace {

struct Paper {
  const char* number;
  Result<> (*run)(SeedRun& run, std::vector<SeedTable>& tables);
};
constexpr std::array<Paper, 4> papers = {{{"000", run_paper_000},
                                          {"001", run_paper_001},
                                          {"002", run_paper_002},
                                          {"003", run_paper_003}}};

struct CloseOutput {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TableFile = std::unique_ptr<std::FILE, CloseOutput>;

tl::unexpected<Error> file_error(const std::string& path) {
  return fail(ErrorCode::io, fmt::format("{}: {}", path, std::strerror(errno)));
}

// Opens the file before minutes of work rather than after. Returns nothing if there is no name, or
// for standard output.
Result<TableFile> open_output(const std::string& path) {
  if (path.empty() || path == "-") return TableFile();
  TableFile file(std::fopen(path.c_str(), "w"));
  if (!file) return file_error(path);
  return file;
}

// Replaces the file's content. The text only grows from one call to the next, so nothing old is
// left.
Result<> write_output(std::FILE* file, const std::string& path, const std::string& text) {
  if (file != stdout) std::rewind(file);
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0)
    return file_error(path);
  return {};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Result<SeedOptions> parse(const PaperArguments& arguments) {
  SeedOptions seeds = {.papers = arguments.only, .seconds = arguments.seconds};
  for (const std::string& name : seeds.papers) {
    if (std::ranges::find(papers, name, [](const Paper& p) { return std::string(p.number); }) ==
        papers.end())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--only {}: the papers are 000, 001, 002 and 003", name));
  }
  const auto size_max = parse_size(arguments.size_max);
  if (!size_max) return add_context(size_max.error(), "--size-max");
  seeds.size_max = *size_max;
  return seeds;
}

// The figures' folder as a link relative to the document.
std::string link_to(const std::string& figures, const std::string& markdown) {
  if (figures.empty() || markdown.empty()) return "";
  const auto base = std::filesystem::absolute(markdown).parent_path();
  return std::filesystem::absolute(figures).lexically_relative(base).generic_string();
}

}  // namespace

Result<> run_papers(const PaperArguments& arguments, BenchEngines& engines, const BenchData& data) {
  NACRE_ASSIGN(const SeedOptions seeds, parse(arguments));
  const unsigned thread_count = *std::ranges::max_element(arguments.thread_counts);
  const std::string& json = arguments.json;
  NACRE_ASSIGN(const TableFile json_file, open_output(json));
  NACRE_ASSIGN(const TableFile markdown_file, open_output(arguments.markdown));

  engine::EngineOptions cpu_options;
  cpu_options.choice = engine::EngineChoice::cpu;
  cpu_options.thread_count = thread_count;
  NACRE_ASSIGN(const auto cpu, engine::Engine::create(cpu_options));
  NACRE_ASSIGN(const auto named, engines.with_threads(thread_count));
  const auto cuda = std::ranges::find(named, std::string("cuda"), &BenchEngines::Named::label);
  engine::Engine* const device = cuda == named.end() ? nullptr : cuda->engine;

  const SeedSetting setting = {
      .processor = processor_name(),
      .thread_count = thread_count,
      .engine =
          device != nullptr ? device->backend_name() : cpu->backend_name() + "; no CUDA device",
      .data = data.source.empty() ? "generated text" : printable(data.source),
      .seconds = arguments.seconds,
      .date = today(),
      .note = arguments.note};
  const bool has_text = json != "-";
  if (has_text)
    fmt::print("on: {}, {} threads; {}\nbytes: {}\n\n", setting.processor, thread_count,
               setting.engine, setting.data);

  SeedRun run(seeds, thread_count, *cpu, device, data);
  std::vector<SeedTable> tables;
  // Written after each paper, so that an interrupted run leaves what it has.
  const auto write_files = [&]() -> Result<> {
    if (!arguments.figures.empty()) NACRE_TRY(write_seed_figures(arguments.figures, tables));
    if (json_file) NACRE_TRY(write_output(json_file.get(), json, seed_json(setting, tables)));
    if (!markdown_file) return {};
    const SeedFigures figures = {arguments.figures, link_to(arguments.figures, arguments.markdown)};
    return write_output(markdown_file.get(), arguments.markdown,
                        seed_markdown(setting, tables, figures));
  };
  for (const Paper& paper : papers) {
    if (!seeds.papers.empty() &&
        std::ranges::find(seeds.papers, paper.number) == seeds.papers.end())
      continue;
    const std::size_t before = tables.size();
    NACRE_TRY(paper.run(run, tables));
    for (std::size_t i = before; i < tables.size() && has_text; ++i)
      fmt::print("{}", seed_text(tables[i]));
    std::fflush(stdout);
    NACRE_TRY(write_files());
  }
  if (!json_file && !json.empty()) return write_output(stdout, json, seed_json(setting, tables));
  return {};
}

}  // namespace nacre::tools
