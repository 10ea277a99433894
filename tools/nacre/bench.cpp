// SPDX-License-Identifier: Apache-2.0
// nacre bench: measures what the engine, and the libraries that one would otherwise use, do in a
// second on this machine, with the user's own bytes.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "gpu_engine/base/limits.h"
#include "tools/bench/families.h"
#include "tools/bench/list_argument.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/help_text.h"
#include "tools/cli/size_argument.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/commands.h"

namespace nacre::tools {

namespace {

constexpr std::size_t chunk_size_min = 16;
constexpr std::uint64_t generated_size_max = 64u << 20;
constexpr std::uint64_t payload_size_max = 16ull << 30;

struct BenchArguments {
  std::string what = "all";
  std::string path;
  std::string engine = "auto";
  std::string threads;
  std::string chunk_sizes = "64K";
  std::string payload_sizes;
  std::string only;
  std::string sample = "8M";
  unsigned repeat = 1;
  double seconds = 1;
  std::string json;
};

Result<std::vector<std::size_t>> parse_chunk_sizes(const std::string& text, bool for_records) {
  std::vector<std::size_t> sizes;
  for (const std::string& part : split_list(text)) {
    const auto size = parse_size(part);
    if (!size) return add_context(size.error(), "--chunk-size");
    if (*size < chunk_size_min || *size > message_size_bytes_max ||
        *size % engine::block_size_bytes_max != 0 ||
        (*size > chunk_size_bytes_max && for_records)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--chunk-size {}: a chunk has 16 bytes to 1 MiB (of ciphers, codecs "
                              "and checksum 1 GiB), a multiple of 16",
                              part));
    }
    sizes.push_back(*size);
  }
  return sizes;
}

Result<std::vector<std::uint64_t>> parse_payload_sizes(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  if (text.empty()) return sizes;
  for (const std::string& part : split_list(text)) {
    const auto size = parse_size(part);
    if (!size) return add_context(size.error(), "--payload");
    if (*size < chunk_size_min || *size > payload_size_max || *size % chunk_size_min != 0) {
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("--payload {}: a payload has 16 bytes to 16 GiB, a multiple of 16", part));
    }
    sizes.push_back(*size);
  }
  return sizes;
}

std::string family_names() {
  std::string names = "all";
  for (const BenchFamily& family : bench_families())
    names += fmt::format(", {}", family.name);
  return names;
}

Result<BenchOptions> parse(const BenchArguments& arguments) {
  BenchOptions options{.families = {},
                       .path = arguments.path,
                       .engine = arguments.engine,
                       .thread_counts = {},
                       .chunk_sizes = {},
                       .payload_sizes = {},
                       .only = {},
                       .repeat = arguments.repeat,
                       .seconds = arguments.seconds};
  for (const BenchFamily& family : bench_families()) {
    if (arguments.what == "all" || arguments.what == family.name)
      options.families.emplace_back(family.name);
  }
  if (options.families.empty()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} cannot be measured; there are {}. To measure with a file of "
                            "yours: nacre bench all FILE",
                            arguments.what, family_names()));
  }
  NACRE_TRY(check_seconds(options.seconds));
  NACRE_ASSIGN(options.thread_counts, parse_thread_counts(arguments.threads));
  const bool for_records =
      std::find(options.families.begin(), options.families.end(), "seal") != options.families.end();
  NACRE_ASSIGN(options.chunk_sizes, parse_chunk_sizes(arguments.chunk_sizes, for_records));
  NACRE_ASSIGN(options.payload_sizes, parse_payload_sizes(arguments.payload_sizes));
  if (!arguments.only.empty()) options.only = split_list(arguments.only);
  const auto sample = parse_size(arguments.sample);
  if (!sample) return add_context(sample.error(), "--sample");
  if (*sample == 0) return fail(ErrorCode::invalid_argument, "--sample: more than 0 bytes");
  options.sample_size_max = *sample;
  return options;
}

struct CloseReport {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};
using ReportFile = std::unique_ptr<std::FILE, CloseReport>;

Result<> bench(const BenchArguments& arguments) {
  NACRE_ASSIGN(const BenchOptions options, parse(arguments));
  NACRE_ASSIGN(BenchEngines engines, BenchEngines::open(options.engine));
  BenchData data;
  if (options.path.empty()) {
    data = generate_bench_data(std::min(options.sample_size_max, generated_size_max));
  } else {
    NACRE_ASSIGN(data, load_bench_data(options.path, options.sample_size_max));
  }
  if (arguments.repeat > 1) repeat_bench_data(data, arguments.repeat);
  // The file is opened before minutes of work rather than after.
  const bool json_on_stdout = arguments.json == "-";
  ReportFile file;
  const auto json_failed = [&] {
    return fail(ErrorCode::io, fmt::format("--json {}: {}", arguments.json, std::strerror(errno)));
  };
  if (!arguments.json.empty()) {
    file.reset(json_on_stdout ? stdout : std::fopen(arguments.json.c_str(), "w"));
    if (!file) return json_failed();
  }

  BenchReport report(data,
                     {.engines = engines.descriptions(),
                      .seconds = options.seconds,
                      .repeated = arguments.repeat,
                      .ceilings = engines.ceilings()},
                     !json_on_stdout);
  const auto run_families = [&](Bench bench) -> Result<> {
    for (const BenchFamily& family : bench_families()) {
      if (std::find(options.families.begin(), options.families.end(), family.name) !=
          options.families.end())
        NACRE_TRY(family.run(bench));
    }
    return {};
  };
  if (options.payload_sizes.empty()) {
    NACRE_TRY(run_families({options, data, engines, report}));
  }
  for (const std::uint64_t size : options.payload_sizes) {
    const BenchData payload = make_payload_data(data, size);
    NACRE_TRY(run_families({options, payload, engines, report, true}));
  }
  if (file) {
    const std::string text = report.json();
    if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
        std::fflush(file.get()) != 0)
      return json_failed();
  }
  return {};
}

int run(const BenchArguments& arguments) {
  const auto done = bench(arguments);
  return done ? exit_fine : report(done.error());
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure codecs, ciphers and the engine, and well-known libraries");
  auto arguments = std::make_shared<BenchArguments>();
  command->add_option("WHAT", arguments->what, "One of " + family_names())->capture_default_str();
  command->add_option("PATH", arguments->path,
                      "A file or folder whose bytes are used; without it, generated text");
  command->add_option("--engine", arguments->engine, "The engines to measure")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--threads", arguments->threads,
                      "Processor threads, separated by commas: 1,2,4. By default 1 and all cores");
  command
      ->add_option("--chunk-size", arguments->chunk_sizes, "Sizes of messages, separated by commas")
      ->capture_default_str();
  command->add_option("--sample", arguments->sample, "The most bytes that are used")
      ->capture_default_str();
  command
      ->add_option("--repeat", arguments->repeat,
                   "Use the bytes this many times; a device needs many to be busy")
      ->check(CLI::Range(1u, 1u << 16))
      ->capture_default_str();
  command->add_option(
      "--payload", arguments->payload_sizes,
      "Measure only the engines, with whole payloads of these sizes, separated by commas");
  command->add_option("--only", arguments->only,
                      "Only these codecs, ciphers and checksums, separated by commas: "
                      "lz77,aes-256-gcm");
  command->add_option("--seconds", arguments->seconds, "About this long for each operation")
      ->capture_default_str();
  command->add_option(
      "--json", arguments->json,
      "Also write the figures to this file as JSON; - : to standard output, instead "
      "of the table");
  command->get_option("--only")->type_name("LIST");
  mark_seldom(*command, {"--threads", "--chunk-size", "--sample", "--repeat", "--payload"});
  command->footer(
      "Examples:\n"
      "  nacre bench seal                               text, by all cores\n"
      "  nacre bench codecs ~/Documents --only lz77,zstd\n"
      "Exit status: 0 measured, 2 usage, 8 failed");
  command->callback([&action, arguments] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace nacre::tools
