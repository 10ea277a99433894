// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/judge.h"

#include <algorithm>

#include <fmt/format.h>

namespace nacre::tools {

namespace {

BenchMessages messages_of(const BenchUndo& undo, const Contender& contender) {
  BenchMessages messages{.inputs = {}, .output_sizes = undo.output_sizes};
  for (std::size_t i = 0; i < undo.expected.size(); ++i) {
    messages.inputs.push_back(contender.output(i));
    if (undo.task.message.codec == engine::Codec::automatic)
      messages.codecs.push_back(contender.codec(i));
  }
  return messages;
}

Result<> judge(const BenchUndo& undo, Result<std::unique_ptr<Contender>> undoing) {
  if (!undoing) return tl::unexpected(undoing.error());
  NACRE_TRY((*undoing)->run());
  for (std::size_t i = 0; i < undo.expected.size(); ++i)
    NACRE_TRY(compare_output(i, (*undoing)->output(i), undo.expected[i]));
  return {};
}

}  // namespace

Result<> judge_by_undoing(const BenchUndo& undo, const Contender& contender,
                          engine::Engine& engine) {
  return judge(undo, make_engine_contender(engine, undo.task, messages_of(undo, contender), true));
}

Result<> judge_by_undoing(const BenchUndo& undo, const Contender& contender,
                          const engine::BaselineLibrary& library, unsigned thread_count) {
  return judge(undo, make_library_contender(library, thread_count, messages_of(undo, contender)));
}

Result<> compare_output(std::size_t message, ByteView output, ByteView expected) {
  if (std::equal(output.begin(), output.end(), expected.begin(), expected.end())) return {};
  return fail(ErrorCode::io,
              fmt::format("message {} came out wrong: this is a defect of the program or of the "
                          "machine; please report it",
                          message));
}

}  // namespace nacre::tools
