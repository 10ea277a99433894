// SPDX-License-Identifier: Apache-2.0
// Tosoni and Sorio: the table of section V, what figures 4 and 5 say about the kernels, and batches
// of such messages, which the paper does not have.
#include <algorithm>
#include <array>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cuda/kernels/crc_tables.h"
#include "gpu_engine/seeds/device_codes.h"
#include "gpu_engine/seeds/plain_codes.h"
#include "tools/papers/paper_000.h"
#include "tools/papers/tasks.h"

namespace nacre::tools {
namespace {

using engine::seeds::CrcOutcome;
using engine::seeds::CrcTimes;
using engine::seeds::CrcWay;

struct Way {
  const char* name;
  CrcWay way;
};
constexpr std::array<Way, 5> ways = {
    {{"Parallel 1: host XOR", CrcWay::host_xor},
     {"Parallel 2: reduction", CrcWay::reduction},
     {"Parallel 3: half-block reduction", CrcWay::half_block},
     {"Parallel 3, tables made on the device", CrcWay::table_on_device},
     {"Parallel 3, without tables", CrcWay::without_tables}}};

class Paper000 {
 public:
  Paper000(SeedRun& run, std::vector<SeedTable>& tables) : run_(run), tables_(tables) {}

  Result<> run() {
    NACRE_TRY(section_5());
    stages();
    NACRE_TRY(batches());
    return {};
  }

 private:
  // Nothing without a device; an error if the paper's way computes something else.
  Result<std::optional<CrcOutcome>> measure(CrcWay way, ByteView message, std::uint32_t crc) const {
    if (run_.cuda() == nullptr) return std::optional<CrcOutcome>();
    const auto outcome = engine::seeds::crc_on_device(way, message, run_.repetitions());
    // A table of 2 GiB may need more memory than a device has.
    if (!outcome && (outcome.error().code == ErrorCode::unsupported ||
                     outcome.error().code == ErrorCode::out_of_memory))
      return std::optional<CrcOutcome>();
    if (!outcome) return tl::unexpected(outcome.error());
    if (outcome->crc != crc) return fail(ErrorCode::io, "a way of 000 computes another CRC");
    return std::optional(*outcome);
  }

  static std::vector<SeedCell> published_cells(const Published000* row) {
    if (row == nullptr) return std::vector<SeedCell>(4);
    return {cell(row->overall), cell(row->speedup), cell(row->with_transfer),
            cell(row->speedup_with_transfer)};
  }

  struct Ours {
    std::optional<double> overall, with_copies, tables;
    std::optional<double> table_bytes;
  };

  static void add_row(SeedTable& table, const std::string& name, std::size_t size,
                      const Published000* published, const Ours& ours,
                      const std::optional<double>& sarwate) {
    std::vector<SeedCell> row = {name, double(size), cell(ours.table_bytes)};
    for (SeedCell& value : published_cells(published))
      row.push_back(std::move(value));
    for (SeedCell& value : std::vector<SeedCell>{
             cell(ours.overall), ratio(sarwate, ours.overall), cell(ours.with_copies),
             ratio(sarwate, ours.with_copies), cell(ours.tables)})
      row.push_back(std::move(value));
    table.rows.push_back(std::move(row));
  }

  Result<> section_5() {
    SeedTable table = {.paper = "000",
                       .name = "000_section_5",
                       .title = "Section V: one message, by its size",
                       .columns = {{"algorithm"},
                                   {"input", SeedUnit::bytes},
                                   {"tables", SeedUnit::bytes},
                                   {"overall", SeedUnit::seconds, true},
                                   {"speed-up", SeedUnit::times, true},
                                   {"with transfer", SeedUnit::seconds, true},
                                   {"speed-up with transfer", SeedUnit::times, true},
                                   {"overall", SeedUnit::seconds},
                                   {"speed-up", SeedUnit::times},
                                   {"with copies", SeedUnit::seconds},
                                   {"speed-up with copies", SeedUnit::times},
                                   {"making tables", SeedUnit::seconds}},
                       .rows = {},
                       .notes = {},
                       .plot = {.x = 1, .y = {3, 7, 9}, .series = 0}};
    SeedComparison comparison(
        {.plain_name = "Sarwate",
         .shown = {&SeedTimes::plain, &SeedTimes::library, &SeedTimes::library_all}});
    for (const Published000Size& published : published_000) {
      SeedTimes times;
      const bool is_taken = run_.takes(published.size);
      if (is_taken) {
        const ByteView message = run_.bytes(published.size);
        NACRE_ASSIGN(const SeedPairTimes pair, run_.time_pair(seed_checksum({message})));
        times = pair.forward;
        NACRE_ASSIGN(times.library_all, time_in_pieces(message));
      }
      const std::optional<double> sarwate = times.plain;
      add_row(table, comparison.title(&SeedTimes::plain), published.size, &published.ways[0],
              {times.plain, {}, {}, 1024}, sarwate);
      for (std::size_t i = 0; i < ways.size(); ++i) {
        Ours ours;
        if (is_taken) NACRE_TRY(measure_way(ways[i].way, published.size, ours));
        add_row(table, ways[i].name, published.size,
                i + 1 < published.ways.size() ? &published.ways[i + 1] : nullptr, ours, sarwate);
      }
      for (const SeedTime time : {&SeedTimes::library, &SeedTimes::library_all})
        add_row(table, comparison.title(time), published.size, nullptr, {times.*time, {}, {}, {}},
                sarwate);
      add_row(table, "Nacre on the GPU", published.size, nullptr,
              {times.kernels, times.with_copies, {}, device_table_bytes}, sarwate);
      comparison.add_place(double(published.size), times);
    }
    comparison.add_notes(table);
    table.notes.push_back(
        "The overall time of the paper's parallel ways is measured by the host, from the message "
        "on the "
        "device to the value on the host. For Nacre on the GPU it is the kernels' time. As in the "
        "paper, neither includes making the tables. For all threads the message is cut into one "
        "piece for each thread, and the values of the pieces are combined.");
    tables_.push_back(std::move(table));
    return {};
  }

  // One message by the best library on all threads: each has a piece, and the values are combined.
  Result<std::optional<double>> time_in_pieces(ByteView message) const {
    const unsigned threads = run_.thread_count();
    const std::size_t piece_size = (message.size() + threads - 1) / threads;
    std::vector<ByteView> pieces;
    for (std::size_t at = 0; at < message.size(); at += piece_size)
      pieces.push_back(message.subspan(at, std::min(piece_size, message.size() - at)));
    const BenchTask task = seed_checksum({message}).forward;
    std::optional<double> best;
    for (const auto& library : libraries_for(task)) {
      NACRE_ASSIGN(const auto contender,
                   make_library_contender(
                       library, threads,
                       {pieces, std::vector<std::size_t>(pieces.size(), sizeof(std::uint32_t))}));
      std::uint32_t crc = 0;
      NACRE_ASSIGN(const double seconds, run_.time_of([&]() -> Result<> {
        NACRE_TRY(contender->run());
        crc = 0;
        for (std::size_t i = 0; i < pieces.size(); ++i)
          crc = engine::crc32_combine(crc, load_le<std::uint32_t>(contender->output(i).data()),
                                      pieces[i].size());
        return {};
      }));
      if (crc != crc_of(message))
        return fail(ErrorCode::io, library.name + " computes another CRC of a message in pieces");
      best = std::min(best.value_or(seconds), seconds);
    }
    return best;
  }

  Result<> measure_way(CrcWay way, std::size_t size, Ours& ours) {
    const ByteView message = run_.bytes(size);
    const auto outcome = measure(way, message, crc_of(message));
    if (!outcome) return tl::unexpected(outcome.error());
    if (!*outcome) return {};
    const CrcTimes& times = (*outcome)->times;
    ours = {times.whole, times.whole_with_copies, times.tables, double(times.table_bytes)};
    if (size == published_000_stage_size) {
      if (way == CrcWay::reduction) stages_[0] = times;
      if (way == CrcWay::half_block) stages_[1] = times;
    }
    return {};
  }

  static std::uint32_t crc_of(ByteView message) {
    Bytes out(sizeof(std::uint32_t));
    std::vector<engine::BaselinePiece> pieces = {{message, out, 0}};
    engine::seeds::plain_crc().make()->run(pieces);
    return load_le<std::uint32_t>(out.data());
  }

  // Figures 4 and 5.
  void stages() {
    SeedTable table = {.paper = "000",
                       .name = "000_figures_4_5",
                       .title = "Figures 4 and 5: what a message of 2 MiB takes, step by step",
                       .columns = {{"step"},
                                   {"first reduction", SeedUnit::seconds, true},
                                   {"first reduction", SeedUnit::seconds},
                                   {"second reduction", SeedUnit::seconds, true},
                                   {"second reduction", SeedUnit::seconds}},
                       .rows = {},
                       .notes = {},
                       .plot = {.x = 0, .y = {1, 2, 3, 4}}};
    const auto add = [&](std::size_t step, double CrcTimes::*member) {
      const Published000Stage& published = published_000_stages[step];
      const auto ours = [&](std::size_t i) {
        return stages_[i] ? SeedCell((*stages_[i]).*member) : SeedCell();
      };
      table.rows.push_back({std::string(published.name), cell(published.first), ours(0),
                            cell(published.second), ours(1)});
    };
    add(0, &CrcTimes::crc_kernel);
    add(1, &CrcTimes::xor_kernel);
    add(2, &CrcTimes::copy_out);
    add(3, &CrcTimes::copy_in);
    table.notes.push_back(
        "The paper's copy to the device (221 and 222 ms) includes the tables. The paper does not "
        "say how much of it is the message.");
    tables_.push_back(std::move(table));
  }

  Result<> batches() {
    SeedTable table = {.paper = "000",
                       .name = "000_batches",
                       .title = "Batches of such messages (not in the paper)",
                       .columns = {{"message", SeedUnit::bytes},
                                   {"messages", SeedUnit::count},
                                   {"in all", SeedUnit::bytes}},
                       .rows = {},
                       .notes = {},
                       .plot = {.x = 1, .y = {}, .series = 0}};
    SeedComparison comparison({.plain_name = "Sarwate",
                               .shown = seed_times_all,
                               .beaten = {&SeedTimes::plain, &SeedTimes::library_all},
                               .size_unit = SeedUnit::count,
                               .size_noun = " messages"});
    comparison.add_columns(table);
    for (const Published000Size& published : published_000) {
      for (const std::size_t count : {16, 64, 256, 1024}) {
        const std::size_t whole = published.size * count;
        if (whole > batch_size_max) continue;
        SeedTimes times;
        if (run_.takes(whole)) {
          NACRE_ASSIGN(const SeedPairTimes pair,
                       run_.time_pair(seed_checksum(run_.messages(whole, published.size))));
          times = pair.forward;
        }
        comparison.add_row(table, {double(published.size), double(count), double(whole)}, times,
                           double(whole));
        comparison.add_place(double(count), times,
                             "messages of " + to_text(double(published.size), SeedUnit::bytes));
      }
    }
    comparison.add_notes(table);
    tables_.push_back(std::move(table));
    return {};
  }

  static constexpr std::size_t batch_size_max = 64u << 20;
  static constexpr double device_table_bytes = sizeof(engine::cuda::CrcTables);

  SeedRun& run_;
  std::vector<SeedTable>& tables_;
  std::optional<CrcTimes> stages_[2];
};

}  // namespace

Result<> run_paper_000(SeedRun& run, std::vector<SeedTable>& tables) {
  return Paper000(run, tables).run();
}

}  // namespace nacre::tools
