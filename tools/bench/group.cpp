// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/group.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "tools/cli/engine_option.h"

namespace nacre::tools {

namespace {

using engine::EngineChoice;

std::string label_of(EngineChoice choice) {
  switch (choice) {
    case EngineChoice::cpu:
      return "cpu";
    case EngineChoice::cuda:
      return "cuda";
    case EngineChoice::automatic:
      return "auto";
  }
  return "";
}

// A contender and its row.
struct Entry {
  BenchRow row;
  std::size_t place;  // among the contenders
  bool gives_our_bytes = true;
  engine::Engine* engine = nullptr;  // nullptr: a library
};

std::string describe_group(const BenchGroup& group, const std::string& by) {
  return fmt::format("{} by {}", group.operation, by);
}

}  // namespace

Result<BenchEngines> BenchEngines::open(const std::string& choice) {
  BenchEngines engines;
  if (choice != "cuda") engines.choices_.push_back(EngineChoice::cpu);
  if (choice == "cpu") return engines;
  auto cuda = engine::Engine::create({.choice = EngineChoice::cuda});
  if (cuda) {
    engines.choices_.push_back(EngineChoice::cuda);
    engines.engines_[{EngineChoice::cuda, 0}] = std::move(*cuda);
    // Without devices auto is the cpu.
    if (choice == "auto") engines.choices_.push_back(EngineChoice::automatic);
  } else if (choice == "cuda") {
    return tl::unexpected(cuda.error());
  }
  return engines;
}

Result<std::vector<BenchEngines::Named>> BenchEngines::with_threads(unsigned thread_count) {
  std::vector<Named> named;
  for (const EngineChoice choice : choices_) {
    // Costs are kept only for an engine on all cores.
    if (choice == EngineChoice::automatic && thread_count != 0 &&
        thread_count != std::thread::hardware_concurrency())
      continue;
    // A device is measured once, however many threads there are.
    const unsigned count = choice == EngineChoice::cpu ? thread_count : 0;
    auto& made = engines_[{choice, count}];
    if (!made) {
      engine::EngineOptions options = engine_options(choice, {});
      options.thread_count = count;
      NACRE_ASSIGN(made, engine::Engine::create(options));
    }
    named.push_back({label_of(choice), made.get()});
  }
  return named;
}

std::optional<engine::DeviceCeilings> BenchEngines::ceilings() {
  const auto cuda = engines_.find({EngineChoice::cuda, 0});
  if (cuda == engines_.end()) return std::nullopt;
  const auto measured = cuda->second->measure_ceilings();
  return measured ? std::optional(*measured) : std::nullopt;
}

std::vector<std::string> BenchEngines::descriptions() {
  std::vector<std::string> names;
  const auto all = with_threads(0);
  if (!all) return names;
  for (const Named& named : *all)
    if (named.label != label_of(EngineChoice::automatic))  // auto uses the others
      names.push_back(named.engine->backend_name());
  return names;
}

std::vector<ByteView> BenchOutcome::outputs_of(std::size_t contender,
                                               std::size_t message_count) const {
  std::vector<ByteView> outputs;
  if (contenders[contender] == nullptr) return outputs;
  for (std::size_t i = 0; i < message_count; ++i)
    outputs.push_back(contenders[contender]->output(i));
  return outputs;
}

namespace {

class GroupRun {
 public:
  GroupRun(Bench& bench, const BenchGroup& group, const std::vector<std::vector<ByteView>>& inputs)
      : bench_(bench), group_(group), inputs_(inputs) {}

  Result<BenchOutcome> run() {
    NACRE_TRY(add_engines());
    NACRE_TRY(add_libraries());
    NACRE_TRY(warm_up());
    NACRE_TRY(compare_outputs());
    NACRE_TRY(undo_outputs());
    std::vector<Contender*> present;
    for (const auto& contender : outcome_.contenders)
      if (contender != nullptr) present.push_back(contender.get());
    // Engines differ by a few per cent, so their turns are as short as the machine's other work.
    const double turn_seconds_max = bench_.is_payload ? 0.006 : bench_.options.seconds;
    NACRE_ASSIGN(const auto rates,
                 measure(present, group_.weights, group_.thread_count, full_seconds_,
                         bench_.options.seconds, turn_seconds_max));
    // A sample leaves only some of the outputs.
    if (group_.keeps_outputs) {
      for (Contender* contender : present)
        NACRE_TRY(contender->run());
    }
    report(rates);
    report_resident();
    return std::move(outcome_);
  }

 private:
  const std::vector<ByteView>& inputs_of(std::size_t place) const {
    return inputs_.size() == 1 ? inputs_[0] : inputs_[place];
  }

  BenchRow make_row(const std::string& by) const {
    BenchRow row;
    row.family = group_.family;
    row.operation = group_.operation;
    row.chunk_size_bytes = group_.chunk_size_bytes;
    row.thread_count = group_.thread_count;
    if (bench_.is_payload) row.payload_size_bytes = bench_.data.bytes.size();
    row.unit = group_.unit;
    row.by = by;
    return row;
  }

  Result<> add_engines() {
    NACRE_ASSIGN(const auto engines, bench_.engines.with_threads(group_.thread_count));
    for (const BenchEngines::Named& named : engines) {
      const std::size_t place = outcome_.contenders.size();
      // Engines are compared on the same bytes, because one backend's streams may be quicker to
      // decode than another's.
      const auto& inputs = bench_.is_payload ? inputs_[0] : inputs_of(place);
      const bool takes_all = bench_.is_payload || named.label != label_of(EngineChoice::cpu);
      auto contender = make_engine_contender(*named.engine, group_.task,
                                             {inputs, group_.output_sizes}, takes_all);
      if (!contender) return add_context(contender.error(), describe_group(group_, named.label));
      outcome_.contenders.push_back(std::move(*contender));
      entries_.push_back({make_row(named.label), place, true, named.engine});
      if (named.label == label_of(EngineChoice::cuda)) devices_.push_back({named.label, place});
    }
    return {};
  }

  Result<> add_libraries() {
    if (bench_.is_payload) return {};
    const auto& sizes =
        group_.library_output_sizes.empty() ? group_.output_sizes : group_.library_output_sizes;
    for (const auto& library : engine::find_baselines(to_baseline_task(group_.task))) {
      const std::size_t place = outcome_.contenders.size();
      Entry entry{make_row(library.name), place, library.gives_our_bytes};
      entry.row.is_library = true;
      entry.row.note = library.note;
      outcome_.contenders.emplace_back();
      if (library.make) {
        auto contender =
            make_library_contender(library, group_.thread_count, {inputs_of(place), sizes});
        if (!contender) return add_context(contender.error(), describe_group(group_, library.name));
        outcome_.contenders[place] = std::move(*contender);
      } else {
        entry.row.missing = library.build_package;
      }
      entries_.push_back(std::move(entry));
    }
    return {};
  }

  // Runs twice, because the first run pays for memory that was never touched; once if that takes
  // long.
  Result<> warm_up() {
    for (const Entry& entry : entries_) {
      Contender* const contender = outcome_.contenders[entry.place].get();
      if (contender == nullptr) continue;
      double seconds = 0;
      for (int pass = 0; pass < 2 && (pass == 0 || seconds < bench_.options.seconds); ++pass) {
        const double begin = wall_seconds();
        if (const auto run = contender->run(); !run)
          return add_context(run.error(), describe_group(group_, entry.row.by));
        seconds = wall_seconds() - begin;
      }
      if (!contender->takes_all()) full_seconds_ = std::max(full_seconds_, seconds);
    }
    return {};
  }

  // A figure for a wrong result would be worthless.
  Result<> compare_outputs() const {
    const Contender& first = *outcome_.contenders[0];
    for (const Entry& entry : entries_) {
      const Contender* const contender = outcome_.contenders[entry.place].get();
      if (contender == nullptr) continue;
      if (group_.expected.empty() && (!entry.gives_our_bytes || !group_compares())) continue;
      for (std::size_t i = 0; i < group_.weights.size(); ++i) {
        const ByteView wanted = group_.expected.empty() ? first.output(i) : group_.expected[i];
        if (const auto right = compare_output(i, contender->output(i), wanted); !right)
          return add_context(right.error(), describe_group(group_, entry.row.by));
      }
    }
    return {};
  }

  Result<> undo_outputs() const {
    if (!group_.undo) return {};
    const auto libraries = engine::find_baselines(to_baseline_task(group_.undo->task));
    for (const Entry& entry : entries_) {
      const Contender* const contender = outcome_.contenders[entry.place].get();
      if (contender == nullptr) continue;
      Result<> right;
      if (entry.engine != nullptr) {
        right = judge_by_undoing(*group_.undo, *contender, *entry.engine);
      } else {
        const auto same =
            std::ranges::find(libraries, entry.row.by, &engine::BaselineLibrary::name);
        if (same == libraries.end() || !same->make) continue;
        right = judge_by_undoing(*group_.undo, *contender, *same, group_.thread_count);
      }
      if (!right)
        return add_context(right.error(), describe_group(group_, entry.row.by) + ", undone");
    }
    return {};
  }

  // Whether equal inputs give equal outputs with every contender.
  bool group_compares() const {
    switch (group_.task.message.operation) {
      case engine::Operation::checksum:
      case engine::Operation::encrypt:
      case engine::Operation::decrypt:
      case engine::Operation::rsa_private:
        return true;
      case engine::Operation::rsa_public:
        return group_.task.message.rsa_padding == engine::RsaPadding::none;
      default:
        return false;
    }
  }

  void report(const std::vector<Rate>& rates) {
    std::vector<BenchRow> rows;
    std::size_t next = 0;
    const Rate* yardstick = nullptr;
    for (Entry& entry : entries_) {
      const Contender* const contender = outcome_.contenders[entry.place].get();
      if (contender != nullptr) {
        entry.row.rate = rates[next++];
        if (entry.row.is_library && yardstick == nullptr) yardstick = &*entry.row.rate;
        if (group_.plain_bytes > 0) {
          double stored = 0;
          for (std::size_t i = 0; i < group_.weights.size(); ++i)
            stored += static_cast<double>(contender->output(i).size());
          if (stored > 0) entry.row.ratio = group_.plain_bytes / stored;
        }
      }
    }
    for (Entry& entry : entries_) {
      if (entry.row.rate && yardstick != nullptr && &*entry.row.rate != yardstick) {
        std::vector<double> shares;
        for (std::size_t i = 0; i < yardstick->rounds.size(); ++i)
          shares.push_back(entry.row.rate->rounds[i] / yardstick->rounds[i]);
        entry.row.against_library = median_of(std::move(shares));
      }
    }
    compare_auto();
    for (Entry& entry : entries_)
      rows.push_back(std::move(entry.row));
    bench_.report.add(std::move(rows));
  }

  // How auto compares with the backends that it chooses from.
  void compare_auto() {
    const auto rate_of = [&](EngineChoice choice) -> Rate* {
      for (Entry& entry : entries_)
        if (!entry.row.is_library && entry.row.by == label_of(choice)) return &*entry.row.rate;
      return nullptr;
    };
    const Rate* const chosen = rate_of(EngineChoice::automatic);
    const Rate* const cpu = rate_of(EngineChoice::cpu);
    const Rate* const cuda = rate_of(EngineChoice::cuda);
    if (chosen == nullptr || cpu == nullptr || cuda == nullptr) return;
    const Rate& better = cpu->median > cuda->median ? *cpu : *cuda;
    for (Entry& entry : entries_)
      if (entry.row.by == label_of(EngineChoice::automatic))
        entry.row.against_better = chosen->median / better.median;
  }

  // A device's kernels, without copies to it and back.
  void report_resident() {
    // The figure would be the same for every size of payload that keeps the device busy.
    if (bench_.is_payload && bench_.options.engine != "cuda") return;
    for (const Device& named : devices_) {
      const auto seconds = outcome_.contenders[named.place]->resident_seconds();
      if (!seconds) continue;
      BenchRow row = make_row(named.label + ", on the device");
      row.rate.emplace();
      row.rate->median =
          std::accumulate(group_.weights.begin(), group_.weights.end(), 0.0) / *seconds;
      row.rate->lowest = row.rate->highest = row.rate->median;
      bench_.report.add_to_last(std::move(row));
    }
  }

  Bench& bench_;
  const BenchGroup& group_;
  const std::vector<std::vector<ByteView>>& inputs_;
  BenchOutcome outcome_;
  std::vector<Entry> entries_;
  // Engines with a device.
  struct Device {
    std::string label;
    std::size_t place;
  };
  std::vector<Device> devices_;
  double full_seconds_ = 0;
};

}  // namespace

Result<BenchOutcome> run_group(Bench& bench, const BenchGroup& group,
                               const std::vector<std::vector<ByteView>>& inputs) {
  return GroupRun(bench, group, inputs).run();
}

}  // namespace nacre::tools
