// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_line.h"

#include <exception>
#include <limits>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/cli/exit_code.h"
#include "tools/cli/help_text.h"
#include "tools/cli/known_volumes.h"
#include "tools/cli/nearest_word.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

// What other programs call the commands of nacre.
constexpr std::pair<std::string_view, std::string_view> other_names[] = {
    {"create", "mkfs"},
    {"init", "mkfs"},
    {"format", "mkfs"},
    {"open", "mount"},
    {"close", "umount"},
    {"check", "fsck"},
    {"repair", "fsck"},
    {"verify", "scrub"},
    {"info", "stats"},
    {"status", "stats"},
    {"df", "stats"},
    {"ls", "stats"},
    {"passwd", "key passphrase"},
    {"password", "key passphrase"},
    {"encrypt", "crypt encrypt"},
    {"decrypt", "crypt decrypt"}};

std::string meant_command(std::string_view word, const CLI::App& app, bool is_outermost) {
  std::string meant;
  for (const auto& [other, own] : other_names) {
    if (is_outermost && word == other) meant = own;
  }
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({}))
    commands.push_back(command->get_name());
  if (meant.empty()) meant = nearest_word(word, commands);
  return meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
}

// The message for an unknown or missing command: "frob is no command; there are …". Empty if
// something else was wrong.
std::string missing_command(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string name;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    name += at->get_name() + " ";
  }
  std::string commands;
  for (const CLI::App* command : at->get_subcommands({}))
    commands += (commands.empty() ? "" : ", ") + command->get_name();
  if (commands.empty()) return {};
  bool has_option = false;
  for (const std::string& word : at->remaining()) {
    if (word.starts_with('-')) {
      has_option = true;
      continue;
    }
    return fmt::format("{}{} is no command; there are {}{}", name, word, commands,
                       meant_command(word, *at, at == &app));
  }
  if (has_option) return {};  // the message names that option instead
  return fmt::format(
      "a command is missing; there are {}{}", commands,
      at == &app ? ". To begin, 'nacre mkfs VOLUME' makes a volume, and 'nacre mount VOLUME "
                   "MOUNTPOINT' mounts it"
                 : "");
}

// CLI11's words, except those that speak of its types.
std::string words_of(const CLI::ParseError& error) {
  const std::string words = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return words.substr(0, words.find(':')) + ": a value is missing";
  }
  constexpr std::string_view no_conversion = "Could not convert: ";  // NAME = VALUE
  if (words.starts_with(no_conversion)) return words.substr(no_conversion.size()) + " is no number";
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const std::string_view verb = " excludes ";
    const auto at = words.find(verb);
    if (at != std::string::npos) {
      return fmt::format("{} and {} cannot be given together", words.substr(0, at),
                         words.substr(at + verb.size()));
    }
  }
  return words;
}

void add_three_sources(CLI::App& app, SecretOptions& secret, const std::string& prefix,
                       std::string_view what) {
  auto* file = app.add_option(
      prefix + "passphrase-file", secret.passphrase_file,
      fmt::format("Read {} from this file; one newline at its end is ignored", what));
  auto* descriptor =
      app.add_option(prefix + "passphrase-fd", secret.passphrase_fd,
                     fmt::format("Read {} from this file descriptor, to its end", what))
          ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  auto* command = app.add_option(prefix + "passphrase-command", secret.passphrase_command,
                                 fmt::format("Take what this shell command prints as {}", what));
  file->excludes(descriptor)->excludes(command);
  descriptor->excludes(command);
  descriptor->type_name("NUMBER");
  mark_seldom(app, {descriptor->get_name().c_str(), command->get_name().c_str()});
}

}  // namespace

int run_command_line(const std::string& program, const std::string& description, int argc,
                     char** argv, const std::function<std::function<int()>(CLI::App&)>& setup) {
  take_standard_streams();
  set_program_name(program);
  try {
    CLI::App app(description, program);
    app.set_version_flag("--version", fmt::format("nacre {}", NACRE_VERSION));
    app.formatter(make_help_formatter());
    app.set_help_flag("-h,--help", "Show what is needed most, with examples, and end");
    app.set_help_all_flag("--help-all", "Show all options at length, and end");
    const auto run = setup(app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app.exit(success);
    } catch (const CLI::ParseError& error) {
      std::string what;
      if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) what = missing_command(app);
      if (what.empty()) what = unknown_argument_text(app);
      if (what.empty()) what = words_of(error);
      print_error(fmt::format("{} ('{} --help' lists what there is)", what, command_words(app)));
      return exit_usage;
    }
    return run();
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return exit_operational;
}

void add_passphrase_options(CLI::App& app, SecretOptions& secret) {
  add_three_sources(app, secret, "--", "the passphrase");
  app.add_option_function<std::string>(
         "--kdf-limit",
         [](const std::string& text) {
           const auto limit = parse_kdf_limit(text);
           if (!limit) throw CLI::ValidationError(limit.error().message);
           metadata::set_kdf_limit(*limit);
         },
         "The most that deriving keys from passphrases may cost, as memory times passes over all "
         "of "
         "them (default: 16G, with at most 1G of memory at a time)")
      ->type_name("SIZE");
  mark_seldom(app, {"--kdf-limit"});
}

void add_new_passphrase_options(CLI::App& app, SecretOptions& secret) {
  add_three_sources(app, secret, "--new-", "the new passphrase");
}

void add_secret_options(CLI::App& app, SecretOptions& secret) {
  add_passphrase_options(app, secret);
  app.add_option(
         "--identity", secret.identity,
         "Private RSA key of a recipient: a PEM file or a URI; a URI is engine:ID:KEY or one of "
         "OpenSSL's stores, such as pkcs11:…. If the key needs a passphrase or PIN, the options "
         "above say where that comes from")
      ->type_name("KEY");
  app.add_option_function<std::string>(
         "--fingerprint",
         [&secret](const std::string& text) {
           auto fingerprint = parse_fingerprint(text);
           if (!fingerprint) throw CLI::ValidationError(fingerprint.error().message);
           secret.fingerprint = std::move(*fingerprint);
         },
         "Fingerprint of the volume that you mean: any other volume is refused, and this one is "
         "accepted although this machine does not know it")
      ->type_name("HEX");
  app.add_flag("--accept-older-state", secret.accept_older_state,
               "Open the volume although it is older than this machine has seen it, for example "
               "because you put it back yourself");
  mark_seldom(app, {"--fingerprint", "--accept-older-state"});
}

}  // namespace nacre::tools
