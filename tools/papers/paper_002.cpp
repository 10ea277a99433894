// SPDX-License-Identifier: Apache-2.0
// Harrison and Waldron: tables 1 and 2, figures 1 and 4 to 7, all AES with keys of 128 bits, and
// the authenticated mode that they leave to later work. For most of their figures the text names
// only the highest value.
#include <array>

#include <fmt/format.h>

#include "gpu_engine/seeds/device_codes.h"
#include "tools/papers/paper_002.h"
#include "tools/papers/payload_orders.h"
#include "tools/papers/payload_times.h"
#include "tools/papers/tasks.h"

namespace nacre::tools {
namespace {

using engine::BlockCipher;
using engine::CipherMode;
using engine::seeds::CryptTimes;
using engine::seeds::TableLayout;
using engine::seeds::TableMemory;

constexpr std::size_t aes_block_size = 16;
constexpr std::size_t table_2_size = 64u << 20;
constexpr std::size_t mode_message_size = 64u << 10;  // the paper has one long message here
constexpr std::array<std::size_t, 3> payload_sizes = {1u << 20, 16u << 20, 64u << 20};

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

SeedCell rate(std::size_t size, const std::optional<double>& seconds) {
  return rate_cell(double(size), seconds, SeedUnit::bits_per_second);
}

// Figures of the paper's kernel.
std::optional<double> kernel_of(const std::optional<CryptTimes>& times) {
  return times ? std::optional(times->kernel) : std::nullopt;
}
std::optional<double> with_copies_of(const std::optional<CryptTimes>& times) {
  return times ? std::optional(times->with_copies) : std::nullopt;
}

SeedContenders contenders_of(std::vector<SeedTime> shown, std::vector<SeedTime> beaten) {
  return {.plain_name = "plain code (tables)",
          .unit = SeedUnit::bits_per_second,
          .shown = std::move(shown),
          .beaten = std::move(beaten)};
}

// Figures of payloads, whose sizes are counts of messages.
SeedContenders payload_contenders_of(std::vector<SeedTime> shown, std::vector<SeedTime> beaten) {
  SeedContenders contenders = contenders_of(std::move(shown), std::move(beaten));
  contenders.size_unit = SeedUnit::count;
  contenders.size_noun = " messages";
  return contenders;
}

std::string group_of(std::size_t blocks) {
  return fmt::format("messages of {} blocks", to_text(double(blocks), SeedUnit::count));
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
                       .notes = {"The text of the paper does not have its figures. It finds "
                                 "constant memory best for coherent reads, and shared memory best "
                                 "for random reads. A processor has no such memories."},
                       .plot = {.x = 0, .y = {1, 2}}};
    const std::pair<const char*, TableMemory> memories[] = {{"constant", TableMemory::constant},
                                                            {"texture", TableMemory::texture},
                                                            {"shared", TableMemory::shared}};
    for (const auto& [name, memory] : memories) {
      std::vector<SeedCell> row = {std::string(name)};
      for (const bool random : {false, true}) {
        row.emplace_back();
        if (run_.cuda() == nullptr) continue;
        const auto times = engine::seeds::table_reads_on_device(
            memory, random, published_002_read_count, run_.repetitions());
        if (!times) return tl::unexpected(times.error());
        row.back() = times->seconds * double(published_002_read_count) / double(times->read_count);
      }
      table.rows.push_back(std::move(row));
    }
    tables_.push_back(std::move(table));
    return {};
  }

  BenchTask counter_task() const {
    return seed_cipher_task(engine::Operation::encrypt, BlockCipher::aes_128, CipherMode::ctr);
  }

  // The time of the paper's kernel; nothing without a device.
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
                                   {"without copies", SeedUnit::bits_per_second},
                                   {"with copies", SeedUnit::bits_per_second}},
                       .rows = {},
                       .notes = {},
                       .plot = {.x = 0, .y = {1, 2, 3, 4}}};
    SeedComparison comparison(contenders_of({}, {}));
    for (const char* const way : {"without copies", "with copies"}) {
      for (const SeedTime other : {&SeedTimes::plain, &SeedTimes::library_all})
        table.columns.push_back(
            {fmt::format("{} by {}", way, comparison.title(other)), SeedUnit::times});
    }
    const bool is_taken = run_.takes(table_2_size);
    const ByteView plain = is_taken ? run_.bytes(table_2_size) : ByteView();
    NACRE_ASSIGN(const Bytes coded, encrypt(plain));
    SeedTimes ours;
    if (is_taken) {
      NACRE_ASSIGN(const SeedPairTimes pair,
                   run_.time_pair(seed_aes(run_.messages(table_2_size, mode_message_size),
                                           BlockCipher::aes_128, CipherMode::ctr, false)));
      ours = pair.forward;
    }
    const auto add_row = [&](const std::string& name, bool is_best,
                             const std::optional<double>& seconds,
                             const std::optional<double>& with_copies) {
      table.rows.push_back({name, is_best ? SeedCell(published_002_kernel) : SeedCell(),
                            is_best ? SeedCell(published_002_with_transfer) : SeedCell(),
                            rate(table_2_size, seconds), rate(table_2_size, with_copies),
                            ratio(ours.plain, seconds), ratio(ours.library_all, seconds),
                            ratio(ours.plain, with_copies), ratio(ours.library_all, with_copies)});
    };
    for (const Lookup& lookup : lookups) {
      std::optional<CryptTimes> times;
      if (is_taken) {
        NACRE_ASSIGN(times, measure(lookup, plain, coded));
      }
      add_row(lookup.name,
              lookup.memory == TableMemory::shared && lookup.layout == TableLayout::quad,
              kernel_of(times), with_copies_of(times));
    }
    add_row("Nacre on the GPU", false, ours.kernels, ours.with_copies);
    for (const SeedTime time :
         {&SeedTimes::plain, &SeedTimes::plain_all, &SeedTimes::library, &SeedTimes::library_all})
      add_row(comparison.title(time), false, ours.*time, std::nullopt);
    table.notes.push_back(
        "64 MiB under one key. On a GPU, figures without copies are the kernels' time. The paper's "
        "ways have one message. Nacre and the processor have messages of 64 KiB.");
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
                    {"paper's way with copies", SeedUnit::bits_per_second}},
        .rows = {},
        .notes = {"The paper's highest figures are 15,423 Mbit/s, and 6,914 with transfers. It "
                  "compares them with 1,583 (Matsui) and 1,151 for a processor (AMD64 at 2.2 and "
                  "2.4 GHz), 3,584 for an AMD HD 2900 XT and 870 for a GeForce 7900 GT.",
                  "There is one message. For all threads it is cut into messages of 64 KiB. "
                  "Nacre's engine gives a device no message longer than 32 MiB."},
        .plot = {.x = 0, .y = {2, 3}}};
    SeedComparison comparison(contenders_of(
        seed_times_all, {&SeedTimes::plain, &SeedTimes::library, &SeedTimes::library_all}));
    comparison.add_columns(table);
    const Lookup& best = lookups.back();
    for (int power = 8; power <= 22; power += 2) {
      const std::size_t size = aes_block_size << power;
      SeedTimes times;
      std::optional<CryptTimes> paper;
      if (run_.takes(size)) {
        NACRE_ASSIGN(const SeedPairTimes one,
                     run_.time_pair(seed_aes({run_.bytes(size)}, BlockCipher::aes_128,
                                             CipherMode::ctr, false)));
        NACRE_ASSIGN(const SeedPairTimes many,
                     run_.time_pair(seed_aes(run_.messages(size, mode_message_size),
                                             BlockCipher::aes_128, CipherMode::ctr, false)));
        times = one.forward;
        times.plain_all = many.forward.plain_all;
        times.library_all = many.forward.library_all;
        NACRE_ASSIGN(const Bytes coded, encrypt(run_.bytes(size)));
        NACRE_ASSIGN(paper, measure(best, run_.bytes(size), coded));
      }
      comparison.add_row(table,
                         {double(std::size_t{1} << power), double(size),
                          rate(size, kernel_of(paper)), rate(size, with_copies_of(paper))},
                         times, double(size));
      comparison.add_place(double(size), times);
    }
    comparison.add_notes(table);
    tables_.push_back(std::move(table));
    return {};
  }

  // Payloads of CTR messages: the cost of many messages, and of many keys.
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
                    {"overhead with a key each, with copies", SeedUnit::percent}},
        .rows = {},
        .notes = {fmt::format(
            "The paper's highest figure is {:.0f} Mbit/s, 16 % below the {:.0f} of one message. "
            "Both include transfers, so compare the paper's overheads with ours with copies. "
            "Nacre's engine gives a device no message longer than 32 MiB. The GPU's speed-ups and "
            "crossovers are for messages under one key.",
            published_002_payload / mega, published_002_with_transfer / mega)},
        .plot = {.x = 1, .y = {6, 7, 10, 11}, .series = 0}};
    SeedComparison comparison(payload_contenders_of(
        {&SeedTimes::plain, &SeedTimes::plain_all, &SeedTimes::library, &SeedTimes::library_all},
        {&SeedTimes::plain, &SeedTimes::library_all}));
    comparison.add_columns(table);
    for (const auto& [blocks, published] : published_002_overheads) {
      for (const std::size_t whole : payload_sizes) {
        const std::size_t size = blocks * aes_block_size;
        const std::size_t count = whole / size;
        if (count > message_count_max) continue;
        CounterTimes times;
        SeedTimes of_one_key;
        if (run_.takes(whole)) {
          NACRE_ASSIGN(times, time_counters(run_, whole, size));
          NACRE_ASSIGN(const SeedPairTimes pair,
                       run_.time_pair(seed_aes(run_.messages(whole, size), BlockCipher::aes_128,
                                               CipherMode::ctr, false)));
          of_one_key = pair.forward;
        }
        of_one_key.kernels = times.one_key.kernels;
        of_one_key.with_copies = times.one_key.with_copies;
        const auto overhead = [](const std::optional<double>& hard,
                                 const std::optional<double>& payload) {
          return hard && payload ? SeedCell(100 * (1 - *hard / *payload)) : SeedCell();
        };
        const auto& [one, shared, each] = times;
        comparison.add_row(
            table,
            {double(blocks), double(count), double(whole), cell(published),
             rate(whole, one.kernels), rate(whole, one.with_copies), rate(whole, shared.kernels),
             rate(whole, shared.with_copies), overhead(one.kernels, shared.kernels),
             overhead(one.with_copies, shared.with_copies), rate(whole, each.kernels),
             rate(whole, each.with_copies), overhead(one.kernels, each.kernels),
             overhead(one.with_copies, each.with_copies)},
            of_one_key, double(whole));
        comparison.add_place(double(count), of_one_key, group_of(blocks));
      }
    }
    comparison.add_notes(table);
    tables_.push_back(std::move(table));
    return {};
  }

  Result<> figure_5() {
    SeedTable table = {.paper = "002",
                       .name = "002_figure_5",
                       .title = "Figure 5: payloads of messages in a serial mode (CBC encryption)",
                       .columns = {{"blocks a message", SeedUnit::count},
                                   {"messages", SeedUnit::count},
                                   {"in all", SeedUnit::bytes},
                                   {"GPU kernels, the parallel mode", SeedUnit::bits_per_second}},
                       .rows = {},
                       .notes = {"The text of the paper does not have its figures, which compare "
                                 "messages of 2,048 blocks with a parallel mode."},
                       .plot = {.x = 1, .y = {}, .series = 0}};
    SeedComparison comparison(payload_contenders_of(
        seed_times_all, {&SeedTimes::plain, &SeedTimes::plain_all, &SeedTimes::library_all}));
    comparison.add_columns(table);
    for (const std::size_t blocks : {16, 128, 512, 2048, 16384}) {
      for (const std::size_t count : {64, 1024, 16384}) {
        const std::size_t size = blocks * aes_block_size;
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
        comparison.add_row(
            table,
            {double(blocks), double(count), double(whole), rate(whole, parallel.one_key.kernels)},
            times, double(whole));
        comparison.add_place(double(count), times, group_of(blocks));
      }
    }
    comparison.add_notes(table);
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
        .notes = {"The text of the paper does not have its figures. It finds that the rate drops "
                  "dramatically from 128 blocks a thread on. This is about a GPU's memory, so the "
                  "processor has no columns."},
        .plot = {.x = 0, .y = {1, 2, 3}}};
    for (const std::uint32_t threads : thread_counts)
      table.columns.push_back({fmt::format("{} threads", threads), SeedUnit::bytes_per_second});
    for (std::uint32_t blocks = 1; blocks <= 512; blocks *= 2) {
      std::vector<SeedCell> row = {double(blocks)};
      for (const std::uint32_t threads : thread_counts) {
        row.emplace_back();
        const std::uint64_t size = std::uint64_t{threads} * blocks * aes_block_size;
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
    SeedTable table = {
        .paper = "002",
        .name = "002_figure_7",
        .title = "Figure 7: the same messages in seven orders",
        .columns = {{"payload"},
                    {"CPU, all threads, as ordered", SeedUnit::bits_per_second},
                    {"CPU, all threads, Nacre's order", SeedUnit::bits_per_second}},
        .rows = {},
        .notes = {"The text of the paper does not have its figures, and says that "
                  "only their differences count.",
                  "In the column \"GPU with copies\" Nacre chooses the order of the "
                  "messages. In the columns of plain code, of the library and of the GPU's "
                  "kernels, all messages of one mode come before those of the other."},
        .plot = {.x = 0, .y = {1, 2}}};
    SeedComparison comparison(
        contenders_of(seed_times_all, {&SeedTimes::plain, &SeedTimes::library_all}));
    comparison.add_columns(table);
    std::optional<double> slowest, fastest;
    NACRE_ASSIGN(const std::vector<OrderTimes> all, time_payload_orders(run_));
    for (int number = 1; number <= payload_order_count; ++number) {
      const OrderTimes& times = all[static_cast<std::size_t>(number) - 1];
      comparison.add_row(table,
                         {std::string(payload_order_name(number)),
                          rate(times.size, times.cpu_as_given), rate(times.size, times.cpu)},
                         times.contenders, double(times.size));
      if (const auto& cuda = times.contenders.with_copies) {
        slowest = std::max(slowest.value_or(*cuda), *cuda);
        fastest = std::min(fastest.value_or(*cuda), *cuda);
      }
    }
    comparison.add_notes(table);
    if (slowest)
      table.notes.push_back(
          fmt::format("On the GPU the slowest order takes {:.1f} % longer than the fastest.",
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
                    {"in all", SeedUnit::bytes}},
        .rows = {},
        .notes = {"The paper has no plain code for authenticated encryption."},
        .plot = {.x = 1, .y = {}, .series = 0}};
    SeedComparison comparison(
        payload_contenders_of({&SeedTimes::library, &SeedTimes::library_all, &SeedTimes::kernels,
                               &SeedTimes::with_copies},
                              {&SeedTimes::library, &SeedTimes::library_all}));
    comparison.add_columns(table);
    for (const std::size_t blocks : {16, 512, 16384}) {
      for (const std::size_t whole : payload_sizes) {
        const std::size_t size = blocks * aes_block_size;
        const std::size_t count = whole / size;
        if (count > message_count_max) continue;
        SeedTimes times;
        if (run_.takes(whole)) {
          NACRE_ASSIGN(const SeedPairTimes pair,
                       run_.time_pair(seed_gcm(run_.messages(whole, size))));
          times = pair.forward;
        }
        comparison.add_row(table, {double(blocks), double(count), double(whole)}, times,
                           double(whole));
        comparison.add_place(double(count), times, group_of(blocks));
      }
    }
    comparison.add_notes(table);
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
