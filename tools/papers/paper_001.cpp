// SPDX-License-Identifier: Apache-2.0
// Masood: AES-256, by the size of the input (figures 8 and 9) and by the steps of its kernel. The
// article's figures are drawn, not printed: its text says "25+ times" of figure 9 (Tesla C2050
// against 8 threads of a Core i7 at 2.8 GHz).
#include <array>

#include <fmt/format.h>

#include "gpu_engine/seeds/device_codes.h"
#include "tools/papers/tasks.h"

namespace nacre::tools {
namespace {

using engine::BlockCipher;
using engine::CipherMode;
using engine::seeds::AesStep;
using engine::seeds::CryptTimes;

constexpr std::size_t aes_message_size = 64u << 10;
constexpr std::array<std::size_t, 6> sizes = {64u << 10, 1u << 20,  4u << 20,
                                              16u << 20, 64u << 20, 128u << 20};
constexpr std::size_t step_size = 64u << 20;
constexpr const char* plain_name = "plain code (tables)";

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
  // Nothing without a device; an error if the step computes something else.
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

  // The library's output, which every plain code and the engine were compared with.
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
                                   {"article's kernel", SeedUnit::seconds},
                                   {"article's with copies", SeedUnit::seconds}},
                       .rows = {},
                       .notes = {},
                       .plot = {.x = 0, .y = {2, 3}}};
    SeedComparison comparison(
        {.plain_name = plain_name,
         .shown = seed_times_all,
         .beaten = {&SeedTimes::plain, &SeedTimes::plain_all, &SeedTimes::library_all}});
    comparison.add_columns(table);
    for (const std::size_t size : sizes) {
      SeedTimes times;
      std::optional<CryptTimes> article;
      if (run_.takes(size)) {
        NACRE_ASSIGN(const SeedPairTimes pair,
                     run_.time_pair(seed_aes(run_.messages(size, aes_message_size),
                                             BlockCipher::aes_256, CipherMode::ecb, false)));
        times = pair.forward;
        NACRE_ASSIGN(const Bytes expected, encrypt(run_.bytes(size)));
        NACRE_ASSIGN(article, measure(AesStep::unrolled, true, run_.bytes(size), expected));
      }
      comparison.add_row(
          table,
          {double(size), size == sizes.back() ? SeedCell(std::string("25+ times")) : SeedCell(),
           article ? SeedCell(article->kernel) : SeedCell(),
           article ? SeedCell(article->with_copies) : SeedCell()},
          times, double(size));
      comparison.add_place(double(size), times);
    }
    table.notes.push_back(
        "Nacre and the processor encrypt ECB in messages of 64 KiB. The article's kernel encrypts "
        "one buffer. The article's \"25+ times\" is for large inputs; it does not say how large "
        "they are.");
    comparison.add_notes(table);
    tables_.push_back(std::move(table));
    return {};
  }

  Result<> by_step() {
    SeedTable table = {.paper = "001",
                       .name = "001_steps",
                       .title = "The article's steps: AES-256 on 64 MiB",
                       .columns = {{"step"}},
                       .rows = {},
                       .notes = {},
                       .plot = {.x = 0, .y = {1, 2, 4, 5}}};
    const std::string by_plain = fmt::format(" by {}, all threads", plain_name);
    for (const char* const way : {"encryption", "decryption"}) {
      const std::string copied = std::string(way) + " with copies";
      table.columns.push_back({way, SeedUnit::bytes_per_second});
      table.columns.push_back({copied, SeedUnit::bytes_per_second});
      table.columns.push_back({copied + by_plain, SeedUnit::times});
    }
    const ByteView plain = run_.takes(step_size) ? run_.bytes(step_size) : ByteView();
    NACRE_ASSIGN(const Bytes coded, encrypt(plain));
    SeedPairTimes ours;
    if (!plain.empty()) {
      NACRE_ASSIGN(ours, run_.time_pair(seed_aes(run_.messages(step_size, aes_message_size),
                                                 BlockCipher::aes_256, CipherMode::ecb, false)));
    }
    const auto add_cells = [&](std::vector<SeedCell>& row, const std::optional<double>& seconds,
                               const std::optional<double>& with_copies, const SeedTimes& times) {
      row.push_back(rate_cell(step_size, seconds, SeedUnit::bytes_per_second));
      row.push_back(rate_cell(step_size, with_copies, SeedUnit::bytes_per_second));
      row.push_back(ratio(times.plain_all, with_copies));
    };
    for (const Step& step : steps) {
      std::vector<SeedCell> row = {std::string(step.name)};
      for (const bool encrypts : {true, false}) {
        std::optional<CryptTimes> times;
        if (!plain.empty()) {
          NACRE_ASSIGN(times, measure(step.step, encrypts, encrypts ? plain : ByteView(coded),
                                      encrypts ? ByteView(coded) : plain));
        }
        add_cells(row, times ? std::optional(times->kernel) : std::nullopt,
                  times ? std::optional(times->with_copies) : std::nullopt,
                  encrypts ? ours.forward : ours.back);
      }
      table.rows.push_back(std::move(row));
    }
    SeedComparison comparison({.plain_name = plain_name, .shown = {}});
    for (const SeedTime time : {&SeedTimes::kernels, &SeedTimes::plain, &SeedTimes::plain_all,
                                &SeedTimes::library, &SeedTimes::library_all}) {
      const bool is_gpu = time == &SeedTimes::kernels;
      std::vector<SeedCell> row = {is_gpu ? "Nacre on the GPU" : comparison.title(time)};
      for (const SeedTimes* const times : {&ours.forward, &ours.back})
        add_cells(row, times->*time, is_gpu ? times->with_copies : std::nullopt, *times);
      table.rows.push_back(std::move(row));
    }
    table.notes.push_back(
        "The article gives no figures for its steps. On a GPU, figures without copies are the "
        "kernels' time. Nacre and the processor have messages of 64 KiB; Nacre also expands the "
        "keys on the device.");
    tables_.push_back(std::move(table));
    return {};
  }

  SeedRun& run_;
  std::vector<SeedTable>& tables_;
};

}  // namespace

Result<> run_paper_001(SeedRun& run, std::vector<SeedTable>& tables) {
  return Paper001(run, tables).run();
}

}  // namespace nacre::tools
