// SPDX-License-Identifier: Apache-2.0
// A witness that lies elsewhere than on this machine: in a file on another disk, or behind a
// command that reaches a server. It says how far one volume was seen, whichever machine saw it
// (docs/SECURITY.md, "A witness elsewhere").
//
// Text: one JSON object with "nacre_witness": 1, the volume's id, "last" and "closings" as in
// witness.h. It has no paths, because those differ between machines. A witness of no bytes is one
// for its first use. One that is not there is an error, because its disk may be missing.
//
// A FILE is a regular file of this user or of root, which others cannot write to, and no symbolic
// link. It is replaced as a whole, and only if it is still there. A COMMAND is run by /bin/sh as
// `COMMAND read`, which writes the text to standard output, and as `COMMAND write`, which takes it
// from standard input. It has outside_witness_limit for each.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "gpu_engine/base/result.h"
#include "tools/cli/witness.h"

namespace CLI {
class App;
}

namespace nacre::tools {

inline constexpr std::chrono::seconds outside_witness_limit{20};
inline constexpr std::size_t outside_witness_size_bytes_max = 64u << 10;

// The options of the command line. At most one of the first two is given.
struct OutsideWitnessOptions {
  std::string file;
  std::string command;
  bool may_fail = false;  // a witness that cannot be read is no reason to refuse the volume

  bool is_named() const { return !file.empty() || !command.empty(); }
};
void add_outside_witness_options(CLI::App& app, OutsideWitnessOptions& options);
// Makes the file's path absolute. volume: absolute, links resolved. Error: invalid_argument if both
// are given, or the file lies in the volume's own directory, with which it would be put back.
Result<> settle_outside_witness(OutsideWitnessOptions& options, const std::string& volume);

// Not thread-safe: one thread uses it at a time. No call may be made under a lock for which
// requests wait.
class OutsideWitness {
 public:
  // Reads it. Errors, with words that name the witness: of reaching it; not_permitted if it is of
  // another volume or holds something else.
  static Result<OutsideWitness> read(const OutsideWitnessOptions& options,
                                     const std::string& volume_id,
                                     std::chrono::milliseconds limit = outside_witness_limit);

  // "the witness /media/key/vault", "the witness command"; a command's text may hold secrets.
  const std::string& name() const { return name_; }
  // What the witness has seen of the volume; none if it has seen nothing yet.
  const std::optional<SeenCopy>& seen() const { return seen_; }

  // The user accepts that the volume is older: the next note() replaces what was seen.
  void accept() { seen_.reset(); }
  // Pass only what is durable. Errors, with words that name the witness: of reaching it.
  Result<> note(const Sight& sight, Witness::Moment moment);

 private:
  OutsideWitness(const OutsideWitnessOptions& options, std::string volume_id,
                 std::chrono::milliseconds limit);
  OutsideWitnessOptions options_;
  std::string volume_id_;
  std::chrono::milliseconds limit_;
  std::string name_;
  std::optional<SeenCopy> seen_;
};

}  // namespace nacre::tools
