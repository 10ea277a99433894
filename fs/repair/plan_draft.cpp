// SPDX-License-Identifier: Apache-2.0
#include "fs/repair/plan_draft.h"

#include <algorithm>

namespace nacre::fs {

namespace {

// Whether the step changes nothing, because the row was changed and changed back.
bool is_idle(const RepairStep& step) {
  const auto* row = std::get_if<RowEdit>(&step.change);
  return row != nullptr && row->before == row->after;
}

}  // namespace

Result<> PlanDraft::put(metadata::Table table, const std::string& key, std::string value,
                        std::string why, std::optional<metadata::InodeNumber> inode) {
  return change(table, key, std::move(value), std::move(why), inode);
}

Result<> PlanDraft::erase(metadata::Table table, const std::string& key, std::string why,
                          std::optional<metadata::InodeNumber> inode) {
  return change(table, key, std::nullopt, std::move(why), inode);
}

Result<> PlanDraft::change(metadata::Table table, const std::string& key,
                           std::optional<std::string> value, std::string why,
                           std::optional<metadata::InodeNumber> inode) {
  const auto [place, is_new] = rows_.try_emplace({table, key}, plan_.steps.size());
  if (is_new) {
    NACRE_ASSIGN(auto before, database_.get(table, key));
    plan_.steps.push_back(
        {.change = RowEdit{.table = table, .key = key, .before = std::move(before), .after = value},
         .why = std::move(why),
         .inode = inode,
         .paths = {}});
  } else {
    RepairStep& step = plan_.steps[place->second];
    std::get<RowEdit>(step.change).after = value;
    if (step.why.find(why) == std::string::npos) step.why += "; " + why;
  }
  if (value) {
    database_.put(table, key, std::move(*value));
  } else {
    database_.erase(table, key);
  }
  return {};
}

void PlanDraft::add(BytesEdit change, std::string why) {
  if (change.before == change.after) return;
  plan_.steps.push_back({.change = std::move(change), .why = std::move(why), .paths = {}});
}

void PlanDraft::add(FileEdit change, std::string why) {
  if (change.before == change.after) return;
  plan_.steps.push_back({.change = std::move(change), .why = std::move(why), .paths = {}});
}

bool PlanDraft::changes_rows() const {
  return std::any_of(plan_.steps.begin(), plan_.steps.end(), [](const RepairStep& step) {
    return std::holds_alternative<RowEdit>(step.change) && !is_idle(step);
  });
}

RepairPlan PlanDraft::take() {
  rows_.clear();
  std::erase_if(plan_.steps, is_idle);
  return std::move(plan_);
}

}  // namespace nacre::fs
