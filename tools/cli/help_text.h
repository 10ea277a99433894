// SPDX-License-Identifier: Apache-2.0
// What --help and --help-all say. The first fits a screen of 24 lines by 80 columns, which a test
// asks of every command: what is needed most, with examples; what is needed seldom is only named.
// The second says all there is, in a form that packaging/help_tree.py reads as well.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace nacre::tools {

// For App::formatter(), before commands are added: they inherit it. A value is named after its
// option's last word, "--log-file FILE", unless the option has a type name of its own; footers are
// taken as they stand, with examples below a line "Examples:".
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

// Of these options --help says only that they exist.
void mark_seldom(CLI::App& app, std::initializer_list<const char*> options);

// What is no option of the command that was called, the command, and what to call for help.
std::string unknown_argument_text(const CLI::App& app);
// The words that lead to the command that was called: "nacre key add".
std::string command_words(const CLI::App& app);

}  // namespace nacre::tools
