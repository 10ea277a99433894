// SPDX-License-Identifier: Apache-2.0
// Does random calls to files, and compares each byte that it reads with a plain array. What it
// prints of a failure is a history of few calls, which --replay repeats.
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/mount/exerciser/exercised_files.h"
#include "tests/mount/exerciser/history_maker.h"
#include "tests/mount/exerciser/kernel_calls.h"
#include "tests/mount/exerciser/shrink.h"

namespace nacre::tests {

namespace {

constexpr const char* usage =
    R"(usage: file_exerciser [options] FILE

Makes FILE.0 (FILE.1, …) in a file system and removes them again.

  -N COUNT      operations (1000)           -S SEED   (1)
  -l BYTES      the largest file (600000)   -o BYTES  the largest operation (128000)
  -f COUNT      files (1)
  -r, -w, -t N  offsets and sizes of reads, writes, truncations are multiples of N (1)
  -Z            O_DIRECT                    -A        AIO       -U  io_uring
  -M            reads and writes of all kinds in turns: plain, O_DIRECT, AIO, io_uring
  -R, -W        no mapped reads, no mapped writes
  -c N          closes and opens one time in N
  -k N          reads a whole file through another descriptor one time in N (500)
  --sync-first  an O_DIRECT read by AIO or io_uring comes after an fdatasync: without it, the kernel
                leaves such reads to the file system, which may not know of a larger size yet
  --state       states of a program: small files rewritten in place, then left alone
  --upkeep COMMAND, --one-upkeep-in N
                a command for the file system to put itself in order, one time in N
  --drop-caches the kernel's pages of all files go before a whole file is read (root)
  --replay HISTORY
                does what a file says, a line for each operation
  --replays N   replays to shrink a history that failed (400)
  --history PATH
                where such a history is put (the system's folder for such files)

Exit status: 0 all was as written, 1 it was not, 2 usage, 77 it cannot run here.
)";

struct Arguments {
  std::string path;
  std::uint64_t operation_count = 1000;
  HistoryOptions history;
  ExercisedOptions files;
  bool is_direct = false, is_aio = false, is_uring = false, is_mixed = false;
  bool is_state = false;
  std::string replay_path, history_path;
  ShrinkBounds shrinking;
};

enum LongOption {
  sync_first = 256,
  state,
  upkeep,
  one_upkeep_in,
  drop_caches,
  replay,
  replays,
  history
};
constexpr std::array<option, 9> long_options = {
    {{"sync-first", no_argument, nullptr, sync_first},
     {"state", no_argument, nullptr, state},
     {"upkeep", required_argument, nullptr, upkeep},
     {"one-upkeep-in", required_argument, nullptr, one_upkeep_in},
     {"drop-caches", no_argument, nullptr, drop_caches},
     {"replay", required_argument, nullptr, replay},
     {"replays", required_argument, nullptr, replays},
     {"history", required_argument, nullptr, history},
     {}}};

[[noreturn]] void end_with_usage() {
  fmt::print(stderr, "{}", usage);
  std::exit(2);
}

[[noreturn]] void skip(std::string_view why) {
  fmt::print("skipped: file_exerciser: {}\n", why);
  std::exit(77);
}

std::uint64_t number(std::string_view text, std::uint64_t min) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < min) end_with_usage();
  return value;
}

void take_option(Arguments& arguments, int option) {
  HistoryOptions& options = arguments.history;
  const auto argument = [](std::uint64_t min) { return number(optarg, min); };
  switch (option) {
    case 'N':
      arguments.operation_count = argument(0);
      break;
    case 'S':
      options.seed = argument(0);
      break;
    case 'l':
      options.file_size_max = argument(1);
      break;
    case 'o':
      options.operation_size_max = argument(1);
      break;
    case 'f':
      options.file_count = static_cast<std::uint32_t>(argument(1));
      break;
    case 'r':
      options.read_boundary = argument(1);
      break;
    case 'w':
      options.write_boundary = argument(1);
      break;
    case 't':
      options.truncate_boundary = argument(1);
      break;
    case 'Z':
      arguments.is_direct = true;
      break;
    case 'A':
      arguments.is_aio = true;
      break;
    case 'U':
      arguments.is_uring = true;
      break;
    case 'M':
      arguments.is_mixed = true;
      break;
    case 'R':
      options.has_mapped_reads = false;
      break;
    case 'W':
      options.has_mapped_writes = false;
      break;
    case 'c':
      options.one_reopen_in = argument(1);
      break;
    case 'k':
      options.one_check_in = argument(1);
      break;
    case sync_first:
      options.syncs_first = true;
      break;
    case state:
      arguments.is_state = true;
      break;
    case upkeep:
      arguments.files.upkeep = optarg;
      break;
    case one_upkeep_in:
      options.one_upkeep_in = argument(1);
      break;
    case drop_caches:
      arguments.files.drops_caches = true;
      break;
    case replay:
      arguments.replay_path = optarg;
      break;
    case replays:
      arguments.shrinking.replay_count_max = argument(0);
      break;
    case history:
      arguments.history_path = optarg;
      break;
    default:
      end_with_usage();
  }
}

Arguments arguments_of(int count, char** words) {
  Arguments arguments;
  int option = 0;
  while ((option = ::getopt_long(count, words, "N:S:l:o:f:r:w:t:ZAUMRWc:k:", long_options.data(),
                                 nullptr)) != -1) {
    take_option(arguments, option);
  }
  if (optind + 1 != count) end_with_usage();
  arguments.path = words[optind];
  arguments.files.file_size_max = arguments.history.file_size_max;
  arguments.files.read_boundary = arguments.history.read_boundary;
  arguments.files.write_boundary = arguments.history.write_boundary;
  if (arguments.history_path.empty()) {
    std::error_code ignored;
    arguments.history_path = std::filesystem::temp_directory_path(ignored) /
                             fmt::format("file_exerciser.{}.history", arguments.history.seed);
  }
  return arguments;
}

// The channels that the options ask for, as far as the kernel has them.
std::vector<Channel> channels_of(const Arguments& arguments, const KernelCalls& calls) {
  if (arguments.is_mixed) {
    std::vector<Channel> channels = {Channel::plain, Channel::direct};
    if (calls.why_no_aio().empty()) channels.push_back(Channel::direct_aio);
    if (calls.why_no_uring().empty()) {
      channels.insert(channels.end(), {Channel::io_uring, Channel::direct_io_uring});
    }
    return channels;
  }
  if (arguments.is_aio) {
    if (!calls.why_no_aio().empty()) skip(calls.why_no_aio());
    return {arguments.is_direct ? Channel::direct_aio : Channel::aio};
  }
  if (arguments.is_uring) {
    if (!calls.why_no_uring().empty()) skip(calls.why_no_uring());
    return {arguments.is_direct ? Channel::direct_io_uring : Channel::io_uring};
  }
  return {arguments.is_direct ? Channel::direct : Channel::plain};
}

History read_history(const std::string& path) {
  std::ifstream file(path);
  History history;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const auto operation = operation_from(line);
    if (!operation) {
      fmt::print(stderr, "{}: «{}» is no operation\n", path, line);
      std::exit(2);
    }
    history.push_back(*operation);
  }
  if (!file.eof()) {
    fmt::print(stderr, "{}: {}\n", path, std::strerror(errno));
    std::exit(2);
  }
  return history;
}

void write_history(const std::string& path, const History& history) {
  std::ofstream file(path);
  for (const Operation& operation : history)
    file << to_string(operation) << '\n';
  file.close();
  if (!file) fmt::print("{} could not be written\n", path);
}

struct Failure {
  std::size_t place = 0;
  std::string what;
};

class Exerciser {
 public:
  explicit Exerciser(Arguments arguments) : arguments_(std::move(arguments)) {
    arguments_.history.channels = channels_of(arguments_, calls_);
  }

  int run() {
    const HistoryOptions& options = arguments_.history;
    fmt::print("seed {}\n", options.seed);
    std::fflush(stdout);
    ExercisedFiles files(arguments_.path, options.file_count, arguments_.files, calls_);
    const auto failure = work(files);
    if (!failure) {
      std::string counts;
      for (const auto& [kind, count] : counts_)
        counts += fmt::format(", {} {}", to_string(kind), count);
      fmt::print("all as written: {} operations{}\n", history_.size(), counts);
      return 0;
    }
    files.keep();
    fmt::print("seed {}, operation {} ({}): {}\n", options.seed, failure->place,
               to_string(history_[failure->place]), failure->what);
    write_history(arguments_.history_path, history_);
    fmt::print("the whole history is in {}\n", arguments_.history_path);
    std::fflush(stdout);
    report_shrunk();
    return 1;
  }

 private:
  std::optional<Failure> work(ExercisedFiles& files) {
    if (!arguments_.replay_path.empty()) {
      for (const Operation& operation : read_history(arguments_.replay_path))
        if (auto failure = step(files, operation)) return failure;
    } else if (arguments_.is_state) {
      for (const Operation& operation :
           state_history(arguments_.history, arguments_.operation_count))
        if (auto failure = step(files, operation)) return failure;
    } else {
      RandomHistory random(arguments_.history);
      while (history_.size() < arguments_.operation_count) {
        const Operation operation =
            random.next([&](std::size_t file) { return files.size_of(file); });
        if (auto failure = step(files, operation)) return failure;
      }
    }
    for (const Operation& operation : last_looks())
      if (auto failure = step(files, operation)) return failure;
    return std::nullopt;
  }

  std::optional<Failure> step(ExercisedFiles& files, const Operation& operation) {
    history_.push_back(operation);
    ++counts_[operation.kind];
    const auto wrong = files.run(operation);
    if (!wrong) return std::nullopt;
    return Failure{history_.size() - 1, *wrong};
  }

  // Reads what the kernel has cached, and then what the file system has, before and after its
  // upkeep.
  History last_looks() const {
    History looks;
    for (const bool is_after : {false, true}) {
      if (is_after && (arguments_.files.upkeep.empty() || !arguments_.replay_path.empty())) break;
      if (is_after) looks.push_back({.kind = Kind::upkeep});
      for (std::uint32_t file = 0; file < arguments_.history.file_count; ++file) {
        looks.push_back({.kind = Kind::check, .file = file});
        looks.push_back({.kind = Kind::check, .file = file, .channel = Channel::direct});
      }
    }
    return looks;
  }

  // Replays the history. Returns what went wrong, or an empty text.
  std::string replay(const History& history) {
    ExercisedFiles files(fmt::format("{}.replay", arguments_.path), arguments_.history.file_count,
                         arguments_.files, calls_);
    History whole = history;
    const History looks = last_looks();
    whole.insert(whole.end(), looks.begin(), looks.end());
    for (const Operation& operation : whole) {
      const auto wrong = files.run(operation);
      // An upkeep that fails says nothing about the files.
      if (wrong) return operation.kind == Kind::upkeep ? std::string() : *wrong;
    }
    return {};
  }

  void report_shrunk() {
    std::string last;
    const Shrunk shrunk = shrink(
        history_,
        [&](const History& history) {
          const std::string what = replay(history);
          if (!what.empty()) last = what;
          return !what.empty();
        },
        arguments_.shrinking);
    if (!shrunk.fails) {
      fmt::print("it did not fail again in {} replays\n", shrunk.replay_count);
      return;
    }
    const std::string path = arguments_.history_path + ".shrunk";
    write_history(path, shrunk.history);
    fmt::print("after {} replays, also in {}:\n{}{}\n", shrunk.replay_count, path,
               to_summary(shrunk.history), last);
  }

  Arguments arguments_;
  KernelCalls calls_;
  History history_;
  std::map<Kind, std::uint64_t> counts_;
};

}  // namespace

}  // namespace nacre::tests

int main(int count, char** words) {
  return nacre::tests::Exerciser(nacre::tests::arguments_of(count, words)).run();
}
