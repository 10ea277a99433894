// SPDX-License-Identifier: Apache-2.0
// Masood: AES-256, by the size of the input (figures 8 and 9) and by the steps of its kernel. The
// article's figures are drawn, not printed: its text says "25+ times" of figure 9 (Tesla C2050
// against 8 threads of a Core i7 at 2.8 GHz).
#include <array>

#include <fmt/format.h>

#include "gpu_engine/seeds/device_codes.h"
#include "tools/bench/seeds/tasks.h"

namespace nacre::tools {
namespace {

using engine::BlockCipher;
using engine::CipherMode;
using engine::seeds::AesStep;
using engine::seeds::CryptTimes;

constexpr std::size_t message_size = 64u << 10;
constexpr std::array<std::size_t, 6> sizes = {64u << 10, 1u << 20,  4u << 20,
                                              16u << 20, 64u << 20, 128u << 20};
constexpr std::size_t step_size = 64u << 20;

struct Step {
  const char* name;
  AesStep step;
};
constexpr std::array<Step, 5> steps = {
    {{"all in global memory", AesStep::global_memory},
     {"+ tables and schedule in constant memory", AesStep::constant_memory},
     {"+ states in shared memory", AesStep::shared_memory},
     {"+ loops unrolled", AesStep::unrolled},
     {"+ schedule made on the device", AesStep::schedule_on_device}}};

class Paper001 {
 public:
  Paper001(SeedRun& run, std::vector<SeedTable>& tables) : run_(run), tables_(tables) {}

  Result<> run() {
    NACRE_TRY(by_size());
    NACRE_TRY(by_step());
    return {};
  }

 private:
  // Nothing where there is no device; an error where the step computes something else.
  Result<std::optional<CryptTimes>> measure(AesStep step, bool encrypts, ByteView in,
                                            ByteView expected) const {
    if (run_.cuda() == nullptr) return std::optional<CryptTimes>();
    Bytes out(in.size());
    const auto times =
        engine::seeds::aes_on_device(step, encrypts, seed_key(32), in, out, run_.repetitions());
    if (!times && times.error().code == ErrorCode::unsupported) return std::optional<CryptTimes>();
    if (!times) return tl::unexpected(times.error());
    if (!std::equal(out.begin(), out.end(), expected.begin(), expected.end()))
      return fail(ErrorCode::io, "a step of 001 computes wrong bytes");
    return std::optional(*times);
  }

  // As the library has it, which every plain code and the engine were compared with.
  Result<Bytes> encrypt(ByteView plain) const {
    const BenchTask task =
        seed_cipher_task(engine::Operation::encrypt, BlockCipher::aes_256, CipherMode::ecb);
    NACRE_ASSIGN(const auto work, EngineWork::make(run_.cpu(), {{task.key_use, task.key}},
                                                   {{task.message, plain, plain.size()}}));
    NACRE_TRY(work->run());
    const ByteView coded = work->output(0);
    return Bytes(coded.begin(), coded.end());
  }

  Result<> by_size() {
    SeedTable table = {.paper = "001",
                       .name = "001_figure_8",
                       .title = "Figures 8 and 9: AES-256 encryption by the size of the input",
                       .columns = {{"input", SeedUnit::bytes},
                                   {"speed-up", SeedUnit::text, true},
                                   {"plain code (tables), one thread", SeedUnit::seconds},
                                   {"plain code, all threads", SeedUnit::seconds},
                                   {"library, one thread", SeedUnit::seconds},
                                   {"library, all threads", SeedUnit::seconds},
                                   {"article's kernel", SeedUnit::seconds},
                                   {"article's with copies", SeedUnit::seconds},
                                   {"GPU kernels", SeedUnit::seconds},
                                   {"GPU with copies", SeedUnit::seconds},
                                   {"GPU kernels by plain, all threads", SeedUnit::times},
                                   {"GPU with copies by plain, all threads", SeedUnit::times},
                                   {"GPU with copies by library, all threads", SeedUnit::times}},
                       .rows = {},
                       .notes = {},
                       .plot = SeedPlot{0, {2, 3, 4, 5, 6, 7, 8, 9}}};
    std::vector<double> all_sizes;
    std::vector<std::optional<double>> plain_all, library_all, with_copies;
    for (const std::size_t size : sizes) {
      SeedTimes times;
      std::optional<CryptTimes> article;
      if (run_.takes(size)) {
        NACRE_ASSIGN(const SeedPairTimes pair,
                     run_.time_pair(seed_aes(run_.messages(size, message_size),
                                             BlockCipher::aes_256, CipherMode::ecb, false)));
        times = pair.forward;
        library_ = times.library_name;
        NACRE_ASSIGN(const Bytes expected, encrypt(run_.bytes(size)));
        NACRE_ASSIGN(article, measure(AesStep::unrolled, true, run_.bytes(size), expected));
      }
      const auto kernel = article ? std::optional(article->kernel) : std::nullopt;
      const auto copies = article ? std::optional(article->with_copies) : std::nullopt;
      table.rows.push_back(
          {double(size), size == sizes.back() ? SeedCell(std::string("25+ times")) : SeedCell(),
           cell(times.plain), cell(times.plain_all), cell(times.library), cell(times.library_all),
           cell(kernel), cell(copies), cell(times.kernels), cell(times.with_copies),
           ratio(times.plain_all, times.kernels), ratio(times.plain_all, times.with_copies),
           ratio(times.library_all, times.with_copies)});
      all_sizes.push_back(double(size));
      plain_all.push_back(times.plain_all);
      library_all.push_back(times.library_all);
      with_copies.push_back(times.with_copies);
    }
    table.notes.push_back(fmt::format(
        "In messages of 64 KiB, ECB; the article's kernel has one buffer. The library is {}. The "
        "article's \"25+ times\" is of large inputs, without saying how large.",
        library_.empty() ? "none" : library_));
    for (const auto& [whom, others] : {std::pair("the plain code on all threads", &plain_all),
                                       std::pair("the library on all threads", &library_all)}) {
      const std::string where = crossover(all_sizes, with_copies, *others);
      if (!where.empty())
        table.notes.push_back(
            fmt::format("Nacre on the GPU, with copies, is faster than {} {}.", whom, where));
    }
    tables_.push_back(std::move(table));
    return {};
  }

  Result<> by_step() {
    SeedTable table = {.paper = "001",
                       .name = "001_steps",
                       .title = "The article's steps: AES-256 on 64 MiB",
                       .columns = {{"step"},
                                   {"encryption, kernel", SeedUnit::bytes_per_second},
                                   {"encryption with copies", SeedUnit::bytes_per_second},
                                   {"decryption, kernel", SeedUnit::bytes_per_second},
                                   {"decryption with copies", SeedUnit::bytes_per_second}},
                       .rows = {},
                       .notes = {},
                       .plot = SeedPlot{0, {1, 2, 3, 4}, false}};
    const bool is_taken = run_.takes(step_size) && run_.cuda() != nullptr;
    const ByteView plain = is_taken ? run_.bytes(step_size) : ByteView();
    NACRE_ASSIGN(const Bytes coded, encrypt(plain));
    const auto rate = [](const std::optional<double>& seconds) {
      return seconds ? SeedCell(double(step_size) / *seconds) : SeedCell();
    };
    for (const Step& step : steps) {
      std::vector<SeedCell> row = {std::string(step.name)};
      for (const bool encrypts : {true, false}) {
        std::optional<CryptTimes> times;
        if (is_taken) {
          NACRE_ASSIGN(times, measure(step.step, encrypts, encrypts ? plain : ByteView(coded),
                                      encrypts ? ByteView(coded) : plain));
        }
        row.push_back(rate(times ? std::optional(times->kernel) : std::nullopt));
        row.push_back(rate(times ? std::optional(times->with_copies) : std::nullopt));
      }
      table.rows.push_back(std::move(row));
    }
    SeedPairTimes times;
    if (is_taken) {
      NACRE_ASSIGN(times, run_.time_pair(seed_aes(run_.messages(step_size, message_size),
                                                  BlockCipher::aes_256, CipherMode::ecb, false)));
    }
    table.rows.push_back({std::string("Nacre, messages of 64 KiB, keys expanded on the device"),
                          rate(times.forward.kernels), rate(times.forward.with_copies),
                          rate(times.back.kernels), rate(times.back.with_copies)});
    table.notes.push_back("The article gives no figures of its steps.");
    tables_.push_back(std::move(table));
    return {};
  }

  SeedRun& run_;
  std::vector<SeedTable>& tables_;
  std::string library_;
};

}  // namespace

Result<> run_paper_001(SeedRun& run, std::vector<SeedTable>& tables) {
  return Paper001(run, tables).run();
}

}  // namespace nacre::tools
