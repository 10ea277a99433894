// SPDX-License-Identifier: Apache-2.0
// Messages of the commands name options of the command line. On the page they name what to click:
// the text of an option is taken out of the message, and a hint takes its place, whose words are
// the page's own, in each of its languages (texts_*.js, "hint.NAME").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/web/web_error.h"

namespace nacre::tools::web {

struct PageWords {
  // The part of a message that is replaced: from the text `from` to the end of the text `to` after
  // it. If `to` is empty, the part reaches to the end of the line.
  std::string_view from, to;
  std::string_view instead;  // takes its place
  std::string_view hint;     // of the page; empty: none fits
  // The beginning of a command at the end of the replaced part. Only a terminal has a use for the
  // command. Empty: the part has no command.
  std::string_view command = {};
};

const std::vector<PageWords>& all_page_words();

// Changes error.what, and sets error.hint and error.command where they fit.
void use_page_words(WebError& error);

// The message without its lines that are warnings, unless all are.
std::string without_warnings(std::string_view message);

}  // namespace nacre::tools::web
