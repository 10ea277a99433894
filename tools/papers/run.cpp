// SPDX-License-Identifier: Apache-2.0
#include "tools/papers/run.h"

#include <algorithm>

#include <fmt/format.h>

namespace nacre::tools {
namespace {

constexpr std::uint64_t buffer_size_max = 256u << 20;
constexpr std::size_t resident_count_max = 4096;
constexpr int run_count_min = 3;
constexpr int run_count_max = 1001;
// Contenders that differ by a few per cent need more runs than those that differ by factors.
constexpr int round_count_min = 21;

// Some messages from the first on, done and timed.
struct SpeedSample {
  std::unique_ptr<Contender> contender;
  std::size_t count = 0;
  double seconds = 0;  // scaled to all messages
};

double weight_of(const std::vector<ByteView>& inputs, std::size_t count) {
  double weight = 0;
  for (std::size_t i = 0; i < count; ++i)
    weight += static_cast<double>(std::max<std::size_t>(inputs[i].size(), 1));
  return weight;
}

void keep_lower(std::optional<double>& kept, double value) {
  if (!kept || value < *kept) kept = value;
}

class PairRun {
 public:
  PairRun(const SeedRun& run, const SeedPair& pair) : run_(run), pair_(pair) {}

  Result<SeedPairTimes> run() {
    if (pair_.plain.empty()) return fail(ErrorCode::invalid_argument, "there is no message");
    NACRE_TRY(run_libraries());
    NACRE_TRY(run_plain_code());
    NACRE_TRY(run_device());
    return times_;
  }

 private:
  // Runs as many messages as the time allows, at least one on each thread.
  Result<SpeedSample> take_sample(const engine::BaselineLibrary& library, unsigned threads,
                                  const std::vector<ByteView>& inputs,
                                  const std::vector<std::size_t>& output_sizes) const {
    SpeedSample sample;
    const auto make = [&](std::size_t count) -> Result<> {
      sample.count = count;
      NACRE_ASSIGN(sample.contender,
                   make_library_contender(
                       library, threads,
                       {{inputs.begin(), inputs.begin() + std::ptrdiff_t(count)},
                        {output_sizes.begin(), output_sizes.begin() + std::ptrdiff_t(count)}}));
      return sample.contender->run();
    };
    NACRE_TRY(make(std::min<std::size_t>(inputs.size(), threads)));
    while (sample.count < inputs.size()) {
      const double begin = wall_seconds();
      NACRE_TRY(sample.contender->run());
      const double each = (wall_seconds() - begin) / static_cast<double>(sample.count);
      const double wanted = run_.options().seconds / run_count_min / std::max(each, 1e-9);
      const auto count =
          static_cast<std::size_t>(std::min(wanted, static_cast<double>(inputs.size())));
      if (count < 2 * sample.count && count < inputs.size()) break;
      NACRE_TRY(make(std::min({count, 64 * sample.count, inputs.size()})));
    }
    NACRE_ASSIGN(sample.seconds, run_.time_of([&] { return sample.contender->run(); }));
    sample.seconds *= weight_of(inputs, inputs.size()) / weight_of(inputs, sample.count);
    return sample;
  }

  std::vector<std::size_t> library_sizes(const BenchTask& task, std::size_t count) const {
    std::vector<std::size_t> sizes;
    const engine::BaselineTask words = to_baseline_task(task);
    const bool crypts = words.operation == engine::Operation::encrypt;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = pair_.plain[i].size();
      const std::size_t bound = pair_.output_bound(size);
      // Tens of thousands of short messages must not each get the large outputs that libraries
      // need.
      sizes.push_back(crypts ? bound
                             : std::max(bound, engine::baseline_output_size_bound(words, size)) +
                                   pair_.library_room);
    }
    return sizes;
  }

  // If equal inputs give equal outputs, each must equal the first contender's.
  Result<> compare_forward(std::size_t index, ByteView output) {
    if (!pair_.same_bytes) return {};
    if (index < reference_.size()) return compare_output(index, output, reference_[index]);
    if (index == reference_.size()) reference_.emplace_back(output.begin(), output.end());
    return {};
  }

  struct Both {
    double forward;
    std::optional<double> back;
  };
  // Runs forward, and back on the outputs.
  Result<Both> run_both(const engine::BaselineLibrary& forward, const engine::BaselineLibrary* back,
                        unsigned threads) {
    const auto context = [&](const Error& error) {
      return add_context(error, fmt::format("{}, {} threads", forward.name, threads));
    };
    const auto sample = take_sample(forward, threads, pair_.plain,
                                    library_sizes(pair_.forward, pair_.plain.size()));
    if (!sample) return context(sample.error());
    std::vector<ByteView> outputs;
    std::vector<std::size_t> plain_sizes;
    for (std::size_t i = 0; i < sample->count; ++i) {
      outputs.push_back(sample->contender->output(i));
      plain_sizes.push_back(pair_.plain[i].size());
      if (const auto same = compare_forward(i, outputs[i]); !same) return context(same.error());
    }
    Both both = {sample->seconds, std::nullopt};
    if (back == nullptr || !back->make) return both;
    const auto undone = take_sample(*back, threads, outputs, plain_sizes);
    if (!undone) return context(undone.error());
    for (std::size_t i = 0; i < undone->count; ++i) {
      if (const auto same = compare_output(i, undone->contender->output(i), pair_.plain[i]); !same)
        return context(same.error());
    }
    both.back = undone->seconds * weight_of(pair_.plain, pair_.plain.size()) /
                weight_of(pair_.plain, sample->count);
    return both;
  }

  Result<> run_libraries() {
    std::vector<engine::BaselineLibrary> back;
    if (pair_.back) back = libraries_for(*pair_.back);
    for (const engine::BaselineLibrary& library : libraries_for(pair_.forward)) {
      const auto same = std::ranges::find(back, library.name, &engine::BaselineLibrary::name);
      const engine::BaselineLibrary* const undoes = same == back.end() ? nullptr : &*same;
      for (const unsigned threads : {1u, run_.thread_count()}) {
        NACRE_ASSIGN(const Both both, run_both(library, undoes, threads));
        if (threads == 1) {
          note_library(times_.forward, both.forward, library.name);
          if (both.back) note_library(times_.back, *both.back, library.name);
        }
        if (threads == run_.thread_count()) {
          keep_lower(times_.forward.library_all, both.forward);
          if (both.back) keep_lower(times_.back.library_all, *both.back);
        }
        if (run_.thread_count() == 1) break;
      }
    }
    return {};
  }

  static void note_library(SeedTimes& times, double seconds, const std::string& name) {
    if (!times.library || seconds < *times.library) times.library_name = name;
    keep_lower(times.library, seconds);
  }

  Result<> run_plain_code() {
    if (!pair_.plain_code) return {};
    const engine::BaselineLibrary forward = pair_.plain_code(pair_.forward);
    std::optional<engine::BaselineLibrary> back;
    if (pair_.back) back = pair_.plain_code(*pair_.back);
    NACRE_ASSIGN(const Both one, run_both(forward, back ? &*back : nullptr, 1));
    times_.forward.plain = one.forward;
    times_.back.plain = one.back;
    if (!pair_.plain_on_all_threads) return {};
    NACRE_ASSIGN(const Both all, run_both(forward, back ? &*back : nullptr, run_.thread_count()));
    times_.forward.plain_all = all.forward;
    times_.back.plain_all = all.back;
    return {};
  }

  // Messages for the device.
  struct DeviceTask {
    BenchTask task;
    std::vector<ByteView> inputs;
    std::vector<std::size_t> output_sizes;
    std::vector<engine::Codec> codecs = {};  // one for each message; empty: the task's
  };
  // This many of them, from the first on.
  Result<std::unique_ptr<EngineWork>> make_work(const DeviceTask& given, std::size_t count) const {
    std::vector<SeedKey> keys;
    if (given.task.has_key) keys.push_back({given.task.key_use, given.task.key});
    std::vector<SeedMessage> messages;
    for (std::size_t i = 0; i < count; ++i) {
      messages.push_back({given.task.message, given.inputs[i], given.output_sizes[i]});
      if (!given.codecs.empty()) messages.back().message.codec = given.codecs[i];
    }
    return EngineWork::make(*run_.cuda(), keys, messages);
  }

  struct OnDevice {
    std::unique_ptr<EngineWork> work;
    std::optional<double> kernels, with_copies;
  };
  // Nothing if the device does not take them.
  Result<OnDevice> time_work(const DeviceTask& given) const {
    const std::vector<ByteView>& inputs = given.inputs;
    OnDevice done;
    // One message shows whether a device takes them. Otherwise the processor would do all of them
    // instead.
    NACRE_ASSIGN(const auto first, make_work(given, 1));
    if (!first->run() || !first->ran_on_device()) return done;
    NACRE_ASSIGN(done.work, make_work(given, inputs.size()));
    NACRE_ASSIGN(done.with_copies, run_.time_on_device(*done.work));
    if (!done.with_copies) return done;
    const std::size_t few = std::min(inputs.size(), resident_count_max);
    if (few == inputs.size()) {
      done.kernels = run_.time_kernels(*done.work);
      // The measurement left outputs of its own.
      NACRE_TRY(done.work->run());
      return done;
    }
    NACRE_ASSIGN(const auto part, make_work(given, few));
    done.kernels = run_.time_kernels(*part);
    if (done.kernels) *done.kernels *= weight_of(inputs, inputs.size()) / weight_of(inputs, few);
    return done;
  }

  Result<> run_device() {
    if (run_.cuda() == nullptr) return {};
    std::vector<std::size_t> coded_sizes, plain_sizes;
    for (const ByteView input : pair_.plain) {
      coded_sizes.push_back(pair_.output_bound(input.size()));
      plain_sizes.push_back(input.size());
    }
    const auto forward = time_work({pair_.forward, pair_.plain, coded_sizes});
    if (!forward) return add_context(forward.error(), "on the device");
    if (!forward->with_copies) return {};
    times_.forward.kernels = forward->kernels;
    times_.forward.with_copies = forward->with_copies;
    std::vector<ByteView> outputs;
    for (std::size_t i = 0; i < pair_.plain.size(); ++i) {
      outputs.push_back(forward->work->output(i));
      if (const auto same = compare_forward(i, outputs[i]); !same)
        return add_context(same.error(), "on the device");
    }
    if (!pair_.back) return {};
    DeviceTask undo = {*pair_.back, outputs, plain_sizes};
    if (undo.task.message.operation == engine::Operation::decompress) {
      for (std::size_t i = 0; i < outputs.size(); ++i)
        undo.codecs.push_back(forward->work->codec(i));
    }
    const auto back = time_work(undo);
    if (!back) return add_context(back.error(), "on the device, back");
    if (!back->with_copies) return {};
    times_.back.kernels = back->kernels;
    times_.back.with_copies = back->with_copies;
    for (std::size_t i = 0; i < pair_.plain.size(); ++i) {
      if (const auto same = compare_output(i, back->work->output(i), pair_.plain[i]); !same)
        return add_context(same.error(), "on the device, back");
    }
    return {};
  }

  const SeedRun& run_;
  const SeedPair& pair_;
  std::vector<Bytes> reference_;
  SeedPairTimes times_;
};

}  // namespace

SeedRun::SeedRun(const SeedOptions& options, unsigned thread_count, engine::Engine& cpu,
                 engine::Engine* cuda, const BenchData& data)
    : options_(options),
      thread_count_(thread_count),
      cpu_(cpu),
      cuda_(cuda),
      bytes_(make_payload_data(data, std::min(options.size_max, buffer_size_max)).bytes) {}

std::vector<ByteView> SeedRun::messages(std::size_t size, std::size_t message_size) const {
  std::vector<ByteView> messages;
  for (std::size_t at = 0; at < size; at += message_size)
    messages.push_back(ByteView(bytes_).subspan(at, std::min(message_size, size - at)));
  return messages;
}

Result<SeedPairTimes> SeedRun::time_pair(const SeedPair& pair) const {
  return PairRun(*this, pair).run();
}

std::vector<engine::BaselineLibrary> libraries_for(const BenchTask& task) {
  auto libraries = engine::find_baselines(to_baseline_task(task));
  std::erase_if(libraries, [](const engine::BaselineLibrary& library) {
    return !library.make || library.build_package.empty();
  });
  return libraries;
}

Result<double> SeedRun::median_time(const std::function<Result<double>()>& once) const {
  std::vector<double> times;
  double spent = 0;
  do {
    NACRE_ASSIGN(const double seconds, once());
    times.push_back(seconds);
    spent += seconds;
  } while (times.size() < run_count_max &&
           (spent < options_.seconds || (times.size() < run_count_min && spent < 1)));
  return median_of(std::move(times));
}

Result<double> SeedRun::time_of(const std::function<Result<>()>& work) const {
  return median_time([&]() -> Result<double> {
    const double begin = wall_seconds();
    NACRE_TRY(work());
    return wall_seconds() - begin;
  });
}

Result<std::vector<double>> SeedRun::time_in_turns(
    const std::vector<std::unique_ptr<EngineWork>>& works) const {
  std::vector<std::vector<double>> times(works.size());
  const double begin = wall_seconds();
  for (int round = 0; round < run_count_max; ++round) {
    const double spent = wall_seconds() - begin;
    if (round >= round_count_min && spent >= options_.seconds * double(works.size())) break;
    for (std::size_t turn = 0; turn < works.size(); ++turn) {
      const std::size_t index = round % 2 == 0 ? turn : works.size() - 1 - turn;
      NACRE_TRY(works[index]->run());
      times[index].push_back(works[index]->last_seconds());
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& of_work : times)
    medians.push_back(median_of(std::move(of_work)));
  return medians;
}

Result<std::optional<double>> SeedRun::time_on_device(EngineWork& work) const {
  NACRE_TRY(work.run());
  if (!work.ran_on_device()) return std::optional<double>();
  bool stayed = true;
  NACRE_ASSIGN(const double seconds, median_time([&]() -> Result<double> {
                 NACRE_TRY(work.run());
                 stayed = stayed && work.ran_on_device();
                 return work.last_seconds();
               }));
  return stayed ? std::optional(seconds) : std::nullopt;
}

std::optional<double> SeedRun::time_kernels(EngineWork& work) const {
  const auto seconds = work.resident_seconds(repetitions());
  return seconds ? std::optional(*seconds) : std::nullopt;
}

unsigned SeedRun::repetitions() const {
  return 5;
}

}  // namespace nacre::tools
