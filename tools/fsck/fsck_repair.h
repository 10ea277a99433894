// SPDX-License-Identifier: Apache-2.0
// fsck.nacre --repair, --dry-run and --undo: runs fs/repair and prints what it plans and does.
#pragma once

#include <string>

#include "tools/cli/outside_witness.h"
#include "tools/cli/secret_source.h"

namespace nacre::tools {

struct RepairArguments {
  bool repair = false;
  bool dry_run = false;
  bool drop_damaged = false;
  bool accept_unreadable = false;
  std::string undo;       // the name of a plan
  std::string plan_hash;  // the only plan that may be carried out; empty: any (plan_hash.h)
  bool is_asked_for() const { return repair || dry_run || !undo.empty(); }
};

// Prints what it does on stdout. If plan_hash is given and today's plan is another one, nothing is
// changed. Returns the exit code: 0 nothing to do, or undone; 1 repaired; 4
// something is left, or would be repaired without --dry-run; otherwise exit_code_of() the error.
int run_repair(const std::string& volume, const SecretOptions& secret,
               const OutsideWitnessOptions& witness, const std::string& engine_name,
               const RepairArguments& arguments, bool json);

}  // namespace nacre::tools
