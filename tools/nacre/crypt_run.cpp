// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/crypt_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "metadata/text/exact_bytes.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/crypt.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

struct Totals {
  std::size_t failed_count = 0;
  std::uint64_t plain_bytes = 0, stored_bytes = 0;
};

Totals total_of(const std::vector<CryptFile>& files) {
  Totals totals;
  for (const CryptFile& file : files) {
    if (file.error) {
      ++totals.failed_count;
      continue;
    }
    totals.plain_bytes += file.plain_bytes;
    totals.stored_bytes += file.stored_bytes;
  }
  return totals;
}

json to_json(const CryptFile& file) {
  json object = {{"ok", !file.error}};
  metadata::put_bytes(object, "input", file.input);
  metadata::put_bytes(object, "output", file.output);
  if (file.error) {
    object["error"] = {{"code", std::string(to_string(file.error->code))},
                       {"message", file.error->message}};
  } else {
    object["plain_bytes"] = file.plain_bytes;
    object["stored_bytes"] = file.stored_bytes;
  }
  if (!file.warning.empty()) object["warning"] = file.warning;
  return object;
}

void print_json(const std::vector<CryptFile>& files, double seconds) {
  const Totals totals = total_of(files);
  json object = {{"files", json::array()},
                 {"file_count", files.size()},
                 {"failed_count", totals.failed_count},
                 {"plain_bytes", totals.plain_bytes},
                 {"stored_bytes", totals.stored_bytes},
                 {"seconds", seconds}};
  for (const CryptFile& file : files)
    object["files"].push_back(to_json(file));
  print_as_json(object);
}

// Puts the file's name in front, unless the message begins with a name.
Error named(const CryptFile& file) {
  const Error& error = *file.error;
  const std::string name = input_name(file.input);
  const auto begins_with = [&](const std::string& path) {
    return error.message.starts_with(path + ":") || error.message.starts_with(path + " ");
  };
  return begins_with(name) || begins_with(file.output) ? error : add_context(error, name).value();
}

int report_files(const std::vector<CryptFile>& files, bool verbose) {
  int code = exit_fine;
  for (const CryptFile& file : files) {
    if (!file.warning.empty()) print_warning(file.warning);
    if (file.error) {
      const int own = report(named(file));
      if (code == exit_fine) code = own;
    } else if (verbose) {
      print_note(fmt::format("{} -> {} ({} in the clear, {} sealed)", input_name(file.input),
                             file.output == standard_stream ? "standard output" : file.output,
                             format_bytes(file.plain_bytes), format_bytes(file.stored_bytes)));
    }
  }
  const Totals totals = total_of(files);
  if (files.size() > 1 && totals.failed_count > 0) {
    print_error(fmt::format("{} of {} files failed; the others are done", totals.failed_count,
                            files.size()));
  }
  return code;
}

}  // namespace

void add_crypt_run_options(CLI::App& command, CryptPaths& paths, CryptRunOptions& options) {
  command.add_option("FILE", paths.inputs,
                     "Files to read; - or none: standard input, written to standard output");
  command.add_option("-o,--output", paths.output, "The output's name; - is standard output");
  command.add_option("-C,--folder", paths.folder,
                     "Put the outputs into this folder; it is made if it is missing");
  command.add_flag("-r,--recursive", paths.recursive, "Take the files in folders");
  command.add_flag("-f,--force", options.replace,
                   "Replace existing files that have an output's name");
  auto* remove = command.add_flag("--remove", options.remove_input,
                                  "Remove each input once its output is on the disk");
  command
      .add_flag_function(
          "--keep", [](std::int64_t) {}, "Leave the inputs where they are (the default)")
      ->excludes(remove);
  command
      .add_flag("--no-sync", options.no_sync,
                "Do not wait for the disk: a power loss soon after may leave less than was written")
      ->excludes(remove);
  command.add_option("--engine", options.engine, "auto, cpu or cuda")->capture_default_str();
  command.add_flag("--json", options.json, "Say what was done as JSON");
  command.add_flag("-v,--verbose", options.verbose, "Say what was done");
}

Result<> check_crypt_run(const std::vector<CryptFile>& files, CryptDirection direction,
                         const CryptRunOptions& options) {
  NACRE_TRY(parse_engine(options.engine));
  const bool to_stream = std::any_of(files.begin(), files.end(), [](const CryptFile& file) {
    return file.output == standard_stream;
  });
  if (!to_stream) return {};
  if (options.json) {
    return fail(ErrorCode::invalid_argument,
                "--json prints to standard output, where the data goes: give -o FILE");
  }
  if (direction == CryptDirection::encrypt && ::isatty(STDOUT_FILENO) != 0) {
    return fail(ErrorCode::invalid_argument,
                "a container is not for a terminal: give -o FILE, or send it into a file or pipe");
  }
  return {};
}

int run_crypt(std::vector<CryptFile>& files, CryptDirection direction, engine::Codec encoder,
              const CryptRunOptions& options, const RunContainers& run) {
  const auto start = std::chrono::steady_clock::now();
  // This comes before the engine's threads.
  const SignalCleanup cleanup;
  auto choice = parse_engine(options.engine);
  if (!choice) return report(choice.error());
  std::uint64_t input_bytes = 0;  // as far as they are known; those of streams are not
  for (const CryptFile& file : files)
    input_bytes += file.input_bytes;
  const auto engine =
      engine::Engine::create(engine_options(engine_for_files(*choice, encoder, input_bytes),
                                            [](std::string_view text) { print_warning(text); }));
  if (!engine) return report(engine.error());

  const CryptTaskOptions task_options{
      .direction = direction,
      .replace = options.replace,
      .remove_input = options.remove_input,
      .make_folders = true,
      .durability = options.no_sync ? Durability::left_to_system : Durability::synced};
  OutputQueue queue(options.replace, task_options.durability);
  ProgressPrinter printer(::isatty(STDERR_FILENO) != 0 && !options.json);
  fs::Progress progress{.stage = direction == CryptDirection::encrypt ? "encrypting" : "decrypting",
                        .total = input_bytes};
  std::size_t next_index = 0;
  const auto outcome = run(
      **engine,
      [&]() -> std::unique_ptr<fs::ContainerTask> {
        if (next_index == files.size()) return nullptr;
        return make_crypt_task(files[next_index++], task_options, queue);
      },
      [&](std::uint64_t bytes) {
        progress.done += bytes;
        printer.update(progress);
      });
  queue.flush();
  printer.clear();
  for (CryptFile& file : files) {
    if (file.is_done) continue;
    file.error = outcome ? Error{ErrorCode::io, "it was not finished"} : outcome.error();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) print_json(files, seconds);
  return report_files(files, options.verbose && !options.json);
}

}  // namespace nacre::tools
