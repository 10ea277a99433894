// SPDX-License-Identifier: Apache-2.0
// Makes untrusted text (names of files, labels, error messages that quote them) safe for a terminal
// or a log: nothing in the result moves the cursor, begins a line, or changes the order in which
// characters are shown. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace nacre {

// Replaces control characters (C0 with newline and tab, DEL, and C1, also as U+0080 to U+009F), the
// controls of writing direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), the
// separators U+2028 and U+2029, and bytes that are not UTF-8. Single bytes become \xNN, longer
// characters \uNNNN. Everything else stays as it is, also a backslash. So a second call changes
// nothing.
std::string printable(std::string_view text);
// printable() for each line of text; newlines stay.
std::string printable_lines(std::string_view text);

// The same characters in the strings of a JSON text, in UTF-8, become \uNNNN, as JSON writes them.
// JSON's own writers leave those past U+001F as they are.
std::string printable_json(std::string_view json);

}  // namespace nacre
