// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/help_text.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace nacre::tools {

namespace {

constexpr const char* seldom_group = "Seldom needed";
constexpr std::size_t line_width = 80;
constexpr std::size_t command_column = 14;
constexpr std::size_t text_column = 28;     // of --help
constexpr std::size_t text_column_all = 6;  // of --help-all, where texts have lines of their own
constexpr std::size_t brief_lines_max = 2;  // of an option's text in --help
constexpr std::string_view default_types[] = {"TEXT", "INT", "UINT", "FLOAT"};

// Columns of UTF-8 text of which every character takes one.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const auto space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > width) {
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return lines;
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t now = width_of(text);
  return now < width ? text.append(width - now, ' ') : text;
}

// The first clause, in at most two lines.
std::vector<std::string> brief_text(std::string_view text, std::size_t width) {
  for (const std::string_view end : {"; ", ". "})
    text = text.substr(0, text.find(end));
  auto lines = wrap(text, width);
  if (lines.size() <= brief_lines_max) return lines;
  lines.resize(brief_lines_max);
  std::string& last = lines.back();
  while (width_of(last) + 2 > width)
    last.resize(last.rfind(' '));
  last += " …";
  return lines;
}

bool takes_value(const CLI::Option& option) {
  return option.get_expected_max() != 0;
}

bool repeats(const CLI::Option& option) {
  return option.get_expected_max() == CLI::detail::expected_max_vector_size;
}

std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string plain = type.substr(0, type.find(':'));
  if (std::find(std::begin(default_types), std::end(default_types), plain) ==
      std::end(default_types)) {
    return plain;
  }
  const std::string& name =
      option.get_lnames().empty() ? option.get_snames().front() : option.get_lnames().back();
  std::string word = name.substr(name.rfind('-') + 1);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word;
}

// "-o, --output OUTPUT"; for a positional argument only its name.
std::string head_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true, false) + (repeats(option) ? "..." : "");
  std::string head;
  for (const std::string& name : option.get_snames())
    head += fmt::format("{}-{}", head.empty() ? "" : ", ", name);
  for (const std::string& name : option.get_lnames())
    head += fmt::format("{}--{}", head.empty() ? "" : ", ", name);
  if (takes_value(option)) head += " " + value_name(option) + (repeats(option) ? "..." : "");
  return head;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
  return app.get_options([&](const CLI::Option* option) {
    return option->get_positional() == positional && !option->get_group().empty();
  });
}

// --help, --help-all and --version, which every command has.
bool is_about_itself(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return !names.empty() &&
         (names.back() == "help" || names.back() == "help-all" || names.back() == "version");
}

std::string usage_of(const CLI::App& app, const std::string& name) {
  std::string usage = "Usage: " + name;
  if (!app.get_subcommands({}).empty()) return usage + " COMMAND [OPTION]...\n";
  usage += " [OPTION]...";
  for (const CLI::Option* option : options_of(app, true)) {
    const std::string word = head_of(*option);
    usage += option->get_required() ? " " + word : " [" + word + "]";
  }
  return usage + "\n";
}

void add_entry(std::string& out, const std::string& head, std::string_view text,
               std::size_t column) {
  std::string line = padded("  " + head, column);
  // A long head has a line of its own.
  if (width_of(head) + 3 > column) {
    out += "  " + head + "\n";
    line = std::string(column, ' ');
  }
  for (const std::string& words : brief_text(text, line_width - column)) {
    out += line + words + "\n";
    line = std::string(column, ' ');
  }
}

void add_commands(std::string& out, const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;  // a hidden one
    add_entry(out, command->get_name(), command->get_description(), command_column);
  }
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return mode == CLI::AppFormatMode::Normal ? brief(*app, name) : whole(*app, name);
  }

 private:
  static std::string brief(const CLI::App& app, const std::string& name) {
    std::string out = usage_of(app, name) + app.get_description() + ".\n\n";
    add_commands(out, app);
    for (const CLI::Option* option : options_of(app, true))
      add_entry(out, head_of(*option), option->get_description(), text_column);
    std::string seldom;
    for (const CLI::Option* option : options_of(app, false)) {
      if (is_about_itself(*option)) continue;
      if (option->get_group() == seldom_group) {
        const std::string head = head_of(*option);
        seldom += (seldom.empty() ? "Also " : ", ") +
                  head.substr(0, std::min(head.find(' '), head.find(',')));
      } else {
        add_entry(out, head_of(*option), option->get_description(), text_column);
      }
    }
    const std::string more = app.get_subcommands({}).empty()
                                 ? name + " --help-all shows everything"
                                 : name + " COMMAND --help shows one command";
    for (const std::string& line :
         wrap(seldom.empty() ? more + "." : seldom + "; " + more + ".", line_width)) {
      out += line + "\n";
    }
    if (!app.get_footer().empty()) out += app.get_footer() + "\n";
    return out;
  }

  static std::string whole(const CLI::App& app, const std::string& name) {
    std::string out = usage_of(app, name) + app.get_description() + ".\n";
    if (!app.get_subcommands({}).empty()) {
      out += "\nCommands:\n";
      add_commands(out, app);
    }
    add_options(out, "\nArguments:\n", options_of(app, true));
    add_options(out, "\nOptions:\n", options_of(app, false));
    if (!app.get_footer().empty()) out += "\n" + app.get_footer() + "\n";
    return out;
  }

  static void add_options(std::string& out, std::string_view heading,
                          const std::vector<const CLI::Option*>& options) {
    if (options.empty()) return;
    out += heading;
    for (const CLI::Option* option : options) {
      const std::string initial = takes_value(*option) ? option->get_default_str() : "";
      out += fmt::format("  {}{}\n", head_of(*option),
                         initial.empty() ? "" : fmt::format(" (default {})", initial));
      for (const std::string& line :
           wrap(option->get_description(), line_width - text_column_all)) {
        out += std::string(text_column_all, ' ') + line + "\n";
      }
    }
  }
};

const CLI::App& called(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty())
    at = at->get_subcommands().front();
  return *at;
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  return std::make_shared<HelpFormatter>();
}

void mark_seldom(CLI::App& app, std::initializer_list<const char*> options) {
  for (const char* option : options)
    app.get_option(option)->group(seldom_group);
}

std::string unknown_argument_text(const CLI::App& app) {
  for (const std::string& word : app.remaining(true)) {
    if (word == "--") continue;
    return word.starts_with('-') ? fmt::format("there is no option {}", word)
                                 : fmt::format("{} is one argument too many", word);
  }
  return {};
}

std::string command_words(const CLI::App& app) {
  std::string words = app.get_name();
  for (const CLI::App* at = &app; at != &called(app);) {
    at = at->get_subcommands().front();
    words += " " + at->get_name();
  }
  return words;
}

}  // namespace nacre::tools
