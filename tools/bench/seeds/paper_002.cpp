// SPDX-License-Identifier: Apache-2.0
// Harrison and Waldron: tables 1 and 2, figures 1 and 4 to 7, all AES with keys of 128 bits, and
// the authenticated mode that they leave to later work. Of most of their figures the text names the
// highest value alone.
#include <array>

#include <fmt/format.h>

#include "gpu_engine/seeds/device_codes.h"
#include "tools/bench/seeds/payload_orders.h"
#include "tools/bench/seeds/payload_times.h"
#include "tools/bench/seeds/tasks.h"

namespace nacre::tools {
namespace {

using engine::BlockCipher;
using engine::CipherMode;
using engine::seeds::CryptTimes;
using engine::seeds::TableLayout;
using engine::seeds::TableMemory;

constexpr std::size_t block_size = 16;
constexpr double mega = 1e6;
// What the paper says, in bits a second.
constexpr double published_kernel = 15423 * mega;
constexpr double published_with_transfer = 6914 * mega;
constexpr double published_payload = 5810 * mega;
constexpr std::uint64_t published_read_count = 5'000'000'000;
constexpr std::size_t table_2_size = 64u << 20;

struct Lookup {
  const char* name;
  TableMemory memory;
  TableLayout layout;
};
constexpr std::array<Lookup, 7> lookups = {
    {{"single table, constant memory", TableMemory::constant, TableLayout::single},
     {"single table, texture", TableMemory::texture, TableLayout::single},
     {"single table, shared memory", TableMemory::shared, TableLayout::single},
     {"single table, once for each bank", TableMemory::shared_copies, TableLayout::single},
     {"quad table, constant memory", TableMemory::constant, TableLayout::quad},
     {"quad table, texture", TableMemory::texture, TableLayout::quad},
     {"quad table, shared memory", TableMemory::shared, TableLayout::quad}}};

// Bits a second.
SeedCell rate(std::size_t size, const std::optional<double>& seconds) {
  return seconds ? SeedCell(8 * double(size) / *seconds) : SeedCell();
}

class Paper002 {
 public:
  Paper002(SeedRun& run, std::vector<SeedTable>& tables) : run_(run), tables_(tables) {}

  Result<> run() {
    NACRE_TRY(table_1());
    NACRE_TRY(table_2());
    NACRE_TRY(figure_1());
    NACRE_TRY(figure_4());
    NACRE_TRY(figure_5());
    NACRE_TRY(figure_6());
    NACRE_TRY(figure_7());
    return authenticated();
  }

 private:
  Result<> table_1() {
    SeedTable table = {.paper = "002",
                       .name = "002_table_1",
                       .title = "Table 1: 5 billion reads of a lookup table",
                       .columns = {{"memory"},
                                   {"coherent reads", SeedUnit::seconds},
                                   {"random reads", SeedUnit::seconds}},
                       .rows = {},
                       .notes = {"The paper's own figures are not in its text; it finds constant "
                                 "memory best for coherent reads and shared memory for random "
                                 "ones."},
                       .plot = std::nullopt};
    const std::pair<const char*, TableMemory> memories[] = {{"constant", TableMemory::constant},
                                                            {"texture", TableMemory::texture},
                                                            {"shared", TableMemory::shared}};
    for (const auto& [name, memory] : memories) {
      std::vector<SeedCell> row = {std::string(name)};
      for (const bool random : {false, true}) {
        row.emplace_back();
        if (run_.cuda() == nullptr) continue;
        const auto times = engine::seeds::table_reads_on_device(
            memory, random, published_read_count, run_.repetitions());
        if (!times) return tl::unexpected(times.error());
        row.back() = times->seconds * double(published_read_count) / double(times->read_count);
      }
      table.rows.push_back(std::move(row));
    }
    tables_.push_back(std::move(table));
    return {};
  }

  BenchTask counter_task() const {
    return seed_cipher_task(engine::Operation::encrypt, BlockCipher::aes_128, CipherMode::ctr);
  }

  // By the paper's kernel; nothing where there is no device.
  Result<std::optional<CryptTimes>> measure(const Lookup& lookup, ByteView in,
                                            ByteView expected) const {
    if (run_.cuda() == nullptr) return std::optional<CryptTimes>();
    const BenchTask task = counter_task();
    Bytes out(in.size());
    const auto times = engine::seeds::counter_on_device(
        lookup.memory, lookup.layout, task.key, task.message.iv, in, out, run_.repetitions());
    if (!times && times.error().code == ErrorCode::unsupported) return std::optional<CryptTimes>();
    if (!times) return tl::unexpected(times.error());
    if (!std::equal(out.begin(), out.end(), expected.begin(), expected.end()))
      return fail(ErrorCode::io, "a lookup of 002 computes wrong bytes");
    return std::optional(*times);
  }

  Result<Bytes> encrypt(ByteView plain) const {
    const BenchTask task = counter_task();
    NACRE_ASSIGN(const auto work, EngineWork::make(run_.cpu(), {{task.key_use, task.key}},
                                                   {{task.message, plain, plain.size()}}));
    NACRE_TRY(work->run());
    const ByteView coded = work->output(0);
    return Bytes(coded.begin(), coded.end());
  }

  Result<> table_2() {
    SeedTable table = {.paper = "002",
                       .name = "002_table_2",
                       .title = "Table 2: AES-CTR by where the lookup tables lie",
                       .columns = {{"lookup"},
                                   {"highest", SeedUnit::bits_per_second, true},
                                   {"highest with transfer", SeedUnit::bits_per_second, true},
                                   {"paper's way, kernel", SeedUnit::bits_per_second},
                                   {"paper's way with copies", SeedUnit::bits_per_second}},
                       .rows = {},
                       .notes = {"On 64 MiB under one key."},
                       .plot = std::nullopt};
    const bool is_taken = run_.takes(table_2_size) && run_.cuda() != nullptr;
    const ByteView plain = is_taken ? run_.bytes(table_2_size) : ByteView();
    NACRE_ASSIGN(const Bytes coded, encrypt(plain));
    for (const Lookup& lookup : lookups) {
      std::optional<CryptTimes> times;
      if (is_taken) {
        NACRE_ASSIGN(times, measure(lookup, plain, coded));
      }
      const bool is_best =
          lookup.memory == TableMemory::shared && lookup.layout == TableLayout::quad;
      table.rows.push_back(
          {std::string(lookup.name), is_best ? SeedCell(published_kernel) : SeedCell(),
           is_best ? SeedCell(published_with_transfer) : SeedCell(),
           rate(table_2_size, times ? std::optional(times->kernel) : std::nullopt),
           rate(table_2_size, times ? std::optional(times->with_copies) : std::nullopt)});
    }
    tables_.push_back(std::move(table));
    return {};
  }

  Result<> figure_1() {
    SeedTable table = {
        .paper = "002",
        .name = "002_figure_1",
        .title = "Figure 1: AES-CTR by the number of threads, a block each",
        .columns = {{"threads", SeedUnit::count},
                    {"data", SeedUnit::bytes},
                    {"paper's way, kernel", SeedUnit::bits_per_second},
                    {"paper's way with copies", SeedUnit::bits_per_second},
                    {"plain code (tables), one thread", SeedUnit::bits_per_second},
                    {"library, one thread", SeedUnit::bits_per_second},
                    {"library, all threads, messages of 64 KiB", SeedUnit::bits_per_second},
                    {"GPU kernels", SeedUnit::bits_per_second},
                    {"GPU with copies", SeedUnit::bits_per_second},
                    {"GPU with copies by plain", SeedUnit::times},
                    {"GPU with copies by library, one thread", SeedUnit::times}},
        .rows = {},
        .notes = {"The paper's highest are 15,423 Mbit/s, and 6,914 with transfers; beside them it "
                  "sets 1,583 (Matsui) and 1,151 of a processor (AMD64 at 2.2 and 2.4 GHz), 3,584 "
                  "of an AMD HD 2900 XT and 870 of a GeForce 7900 GT."},
        .plot = SeedPlot{0, {2, 3, 4, 5, 6, 7, 8}}};
    const Lookup& best = lookups.back();
    std::vector<double> sizes;
    std::vector<std::optional<double>> with_copies, plain, library;
    for (int power = 8; power <= 22; power += 2) {
      const std::size_t size = block_size << power;
      SeedTimes times;
      std::optional<double> all;
      std::optional<CryptTimes> paper;
      if (run_.takes(size)) {
        NACRE_ASSIGN(const SeedPairTimes one,
                     run_.time_pair(seed_aes({run_.bytes(size)}, BlockCipher::aes_128,
                                             CipherMode::ctr, false)));
        times = one.forward;
        NACRE_ASSIGN(const SeedPairTimes many,
                     run_.time_pair(seed_aes(run_.messages(size, 64u << 10), BlockCipher::aes_128,
                                             CipherMode::ctr, false)));
        all = many.forward.library_all;
        NACRE_ASSIGN(const Bytes coded, encrypt(run_.bytes(size)));
        NACRE_ASSIGN(paper, measure(best, run_.bytes(size), coded));
      }
      table.rows.push_back({double(std::size_t{1} << power), double(size),
                            rate(size, paper ? std::optional(paper->kernel) : std::nullopt),
                            rate(size, paper ? std::optional(paper->with_copies) : std::nullopt),
                            rate(size, times.plain), rate(size, times.library), rate(size, all),
                            rate(size, times.kernels), rate(size, times.with_copies),
                            ratio(times.plain, times.with_copies),
                            ratio(times.library, times.with_copies)});
      sizes.push_back(double(size));
      with_copies.push_back(times.with_copies);
      plain.push_back(times.plain);
      library.push_back(times.library);
    }
    for (const auto& [whom, others] :
         {std::pair("the plain code", &plain), std::pair("the library on one thread", &library)}) {
      const std::string where = crossover(sizes, with_copies, *others);
      if (!where.empty())
        table.notes.push_back(
            fmt::format("Nacre on the GPU, with copies, is faster than {} {}.", whom, where));
    }
    tables_.push_back(std::move(table));
    return {};
  }

  // Payloads of CTR messages: what it costs that there are many, and many keys.
  Result<> figure_4() {
    SeedTable table = {
        .paper = "002",
        .name = "002_figure_4",
        .title = "Figure 4: payloads of messages in a parallel mode (CTR)",
        .columns = {{"blocks a message", SeedUnit::count},
                    {"messages", SeedUnit::count},
                    {"in all", SeedUnit::bytes},
                    {"overhead of the payload", SeedUnit::percent, true},
                    {"one message of all, kernels", SeedUnit::bits_per_second},
                    {"one of all with copies", SeedUnit::bits_per_second},
                    {"one key, kernels", SeedUnit::bits_per_second},
                    {"one key with copies", SeedUnit::bits_per_second},
                    {"overhead, kernels", SeedUnit::percent},
                    {"overhead with copies", SeedUnit::percent},
                    {"a key each, kernels", SeedUnit::bits_per_second},
                    {"a key each with copies", SeedUnit::bits_per_second},
                    {"overhead with a key each, kernels", SeedUnit::percent},
                    {"overhead with a key each, with copies", SeedUnit::percent},
                    {"library, all threads", SeedUnit::bits_per_second}},
        .rows = {},
        .notes = {fmt::format("The paper's highest is {:.0f} Mbit/s, 16 % below the {:.0f} of one "
                              "message, both with transfers: beside its overheads stand ours with "
                              "copies. A device takes no message longer than 32 MiB.",
                              published_payload / mega, published_with_transfer / mega)},
        .plot = SeedPlot{1, {6, 7, 10, 11, 14}}};
    const std::pair<std::size_t, std::optional<double>> sizes[] = {
        {16, 45.0}, {512, 22.0}, {2048, std::nullopt}, {16384, 16.0}};
    for (const auto& [blocks, published] : sizes) {
      for (const std::size_t whole :
           {std::size_t{1} << 20, std::size_t{16} << 20, std::size_t{64} << 20}) {
        const std::size_t size = blocks * block_size;
        const std::size_t count = whole / size;
        if (count > message_count_max) continue;
        CounterTimes times;
        std::optional<double> library;
        if (run_.takes(whole)) {
          NACRE_ASSIGN(times, time_counters(run_, whole, size));
          NACRE_ASSIGN(const SeedPairTimes pair,
                       run_.time_pair(seed_aes(run_.messages(whole, size), BlockCipher::aes_128,
                                               CipherMode::ctr, false)));
          library = pair.forward.library_all;
        }
        const auto overhead = [](const std::optional<double>& hard,
                                 const std::optional<double>& payload) {
          return hard && payload ? SeedCell(100 * (1 - *hard / *payload)) : SeedCell();
        };
        const auto& [one, shared, each] = times;
        table.rows.push_back(
            {double(blocks), double(count), double(whole), cell(published),
             rate(whole, one.kernels), rate(whole, one.with_copies), rate(whole, shared.kernels),
             rate(whole, shared.with_copies), overhead(one.kernels, shared.kernels),
             overhead(one.with_copies, shared.with_copies), rate(whole, each.kernels),
             rate(whole, each.with_copies), overhead(one.kernels, each.kernels),
             overhead(one.with_copies, each.with_copies), rate(whole, library)});
      }
    }
    tables_.push_back(std::move(table));
    return {};
  }

  Result<> figure_5() {
    SeedTable table = {
        .paper = "002",
        .name = "002_figure_5",
        .title = "Figure 5: payloads of messages in a serial mode (CBC encryption)",
        .columns = {{"blocks a message", SeedUnit::count},
                    {"messages", SeedUnit::count},
                    {"in all", SeedUnit::bytes},
                    {"plain code (tables), one thread", SeedUnit::bits_per_second},
                    {"plain code, all threads", SeedUnit::bits_per_second},
                    {"library, one thread", SeedUnit::bits_per_second},
                    {"library, all threads", SeedUnit::bits_per_second},
                    {"GPU kernels", SeedUnit::bits_per_second},
                    {"GPU with copies", SeedUnit::bits_per_second},
                    {"GPU kernels, the parallel mode", SeedUnit::bits_per_second}},
        .rows = {},
        .notes = {"The paper's figures are not in its text, which shows a parallel mode beside "
                  "messages of 2,048 blocks."},
        .plot = SeedPlot{1, {3, 4, 5, 6, 7, 8}}};
    for (const std::size_t blocks : {16, 128, 512, 2048, 16384}) {
      for (const std::size_t count : {64, 1024, 16384}) {
        const std::size_t size = blocks * block_size;
        const std::size_t whole = count * size;
        if (whole > payload_size_max) continue;
        SeedTimes times;
        CounterTimes parallel;
        if (run_.takes(whole)) {
          NACRE_ASSIGN(const SeedPairTimes pair,
                       run_.time_pair(seed_aes(run_.messages(whole, size), BlockCipher::aes_128,
                                               CipherMode::cbc, false)));
          times = pair.forward;
          if (blocks == 2048) {
            NACRE_ASSIGN(parallel, time_counters(run_, whole, size));
          }
        }
        table.rows.push_back({double(blocks), double(count), double(whole),
                              rate(whole, times.plain), rate(whole, times.plain_all),
                              rate(whole, times.library), rate(whole, times.library_all),
                              rate(whole, times.kernels), rate(whole, times.with_copies),
                              rate(whole, parallel.one_key.kernels)});
      }
    }
    tables_.push_back(std::move(table));
    return {};
  }

  Result<> figure_6() {
    constexpr std::uint32_t thread_counts[] = {1u << 12, 1u << 16, 1u << 20};
    SeedTable table = {
        .paper = "002",
        .name = "002_figure_6",
        .title = "Figure 6: reads of global memory, each thread a stretch of its own",
        .columns = {{"blocks a thread", SeedUnit::count}},
        .rows = {},
        .notes = {"The paper's figures are not in its text: from 128 blocks a "
                  "thread on it finds the rate dropping dramatically."},
        .plot = SeedPlot{0, {1, 2, 3}}};
    for (const std::uint32_t threads : thread_counts)
      table.columns.push_back({fmt::format("{} threads", threads), SeedUnit::bytes_per_second});
    for (std::uint32_t blocks = 1; blocks <= 512; blocks *= 2) {
      std::vector<SeedCell> row = {double(blocks)};
      for (const std::uint32_t threads : thread_counts) {
        row.emplace_back();
        const std::uint64_t size = std::uint64_t{threads} * blocks * block_size;
        if (run_.cuda() == nullptr || size > stretch_size_max) continue;
        const auto seconds =
            engine::seeds::strided_reads_on_device(threads, blocks, run_.repetitions());
        if (!seconds) return tl::unexpected(seconds.error());
        row.back() = double(size) / *seconds;
      }
      table.rows.push_back(std::move(row));
    }
    tables_.push_back(std::move(table));
    return {};
  }

  Result<> figure_7() {
    SeedTable table = {.paper = "002",
                       .name = "002_figure_7",
                       .title = "Figure 7: the same messages in seven orders",
                       .columns = {{"payload"},
                                   {"CPU, all threads, as ordered", SeedUnit::bits_per_second},
                                   {"CPU, all threads, Nacre's order", SeedUnit::bits_per_second},
                                   {"GPU with copies, Nacre's order", SeedUnit::bits_per_second}},
                       .rows = {},
                       .notes = {"The paper's figures are not in its text, which says that their "
                                 "differences count alone."},
                       .plot = SeedPlot{0, {1, 2, 3}, false}};
    std::optional<double> slowest, fastest;
    NACRE_ASSIGN(const std::vector<OrderTimes> all, time_payload_orders(run_));
    for (int number = 1; number <= payload_order_count; ++number) {
      const OrderTimes& times = all[static_cast<std::size_t>(number) - 1];
      table.rows.push_back({std::string(payload_order_name(number)),
                            rate(times.size, times.cpu_as_given), rate(times.size, times.cpu),
                            rate(times.size, times.cuda)});
      if (!times.cuda) continue;
      slowest = std::max(slowest.value_or(*times.cuda), *times.cuda);
      fastest = std::min(fastest.value_or(*times.cuda), *times.cuda);
    }
    if (slowest)
      table.notes.push_back(
          fmt::format("On the GPU the slowest takes {:.1f} % longer than the fastest.",
                      100 * (*slowest / *fastest - 1)));
    tables_.push_back(std::move(table));
    return {};
  }

  Result<> authenticated() {
    SeedTable table = {
        .paper = "002",
        .name = "002_authenticated",
        .title = "Authenticated encryption, which the paper leaves to later work: AES-256-GCM",
        .columns = {{"blocks a message", SeedUnit::count},
                    {"messages", SeedUnit::count},
                    {"in all", SeedUnit::bytes},
                    {"library, one thread", SeedUnit::bits_per_second},
                    {"library, all threads", SeedUnit::bits_per_second},
                    {"GPU kernels", SeedUnit::bits_per_second},
                    {"GPU with copies", SeedUnit::bits_per_second}},
        .rows = {},
        .notes = {},
        .plot = std::nullopt};
    for (const std::size_t blocks : {16, 512, 16384}) {
      const std::size_t size = blocks * block_size;
      const std::size_t whole = std::min(payload_size_max, message_count_max * size);
      SeedTimes times;
      if (run_.takes(whole)) {
        NACRE_ASSIGN(const SeedPairTimes pair,
                     run_.time_pair(seed_gcm(run_.messages(whole, size))));
        times = pair.forward;
      }
      table.rows.push_back({double(blocks), double(whole / size), double(whole),
                            rate(whole, times.library), rate(whole, times.library_all),
                            rate(whole, times.kernels), rate(whole, times.with_copies)});
    }
    tables_.push_back(std::move(table));
    return {};
  }

  static constexpr std::size_t message_count_max = 1u << 16;
  static constexpr std::size_t payload_size_max = 64u << 20;
  static constexpr std::uint64_t stretch_size_max = 1u << 30;

  SeedRun& run_;
  std::vector<SeedTable>& tables_;
};

}  // namespace

Result<> run_paper_002(SeedRun& run, std::vector<SeedTable>& tables) {
  return Paper002(run, tables).run();
}

}  // namespace nacre::tools
