// SPDX-License-Identifier: Apache-2.0
// The texts of --help and --help-all. --help fits a screen of 24 lines by 80 columns; a test checks
// that of every command. It shows the options that are needed most, and examples; options that are
// seldom needed are only named. --help-all shows everything, in a form that packaging/help_tree.py
// reads.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace nacre::tools {

// For App::formatter(). Set it before commands are added, because they inherit it. A value is named
// after its option's last word, "--log-file FILE", unless the option has a type name of its own.
// Footers are printed as they are, with examples below a line "Examples:".
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

// For these options --help says only that they exist.
void mark_seldom(CLI::App& app, std::initializer_list<const char*> options);

// The message for an unknown option: the option, the command, and what to call for help.
std::string unknown_argument_text(const CLI::App& app);
// The words that lead to the command that was called: "nacre key add".
std::string command_words(const CLI::App& app);

}  // namespace nacre::tools
