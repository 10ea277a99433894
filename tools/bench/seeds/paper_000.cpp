// SPDX-License-Identifier: Apache-2.0
// Tosoni and Sorio: the table of section V, what figures 4 and 5 say of the kernels, and batches of
// such messages, which they leave out.
#include <array>

#include <fmt/format.h>

#include "gpu_engine/cuda/kernels/crc_tables.h"
#include "gpu_engine/seeds/device_codes.h"
#include "gpu_engine/seeds/plain_codes.h"
#include "tools/bench/seeds/paper_000.h"
#include "tools/bench/seeds/tasks.h"

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
  // Nothing where there is no device; an error where the way computes something else.
  Result<std::optional<CrcOutcome>> measure(CrcWay way, ByteView message, std::uint32_t crc) const {
    if (run_.cuda() == nullptr) return std::optional<CrcOutcome>();
    const auto outcome = engine::seeds::crc_on_device(way, message, run_.repetitions());
    // A table of 2 GiB may be more than a device has.
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
                       .plot = std::nullopt};
    std::vector<double> sizes;
    std::vector<std::optional<double>> plain, library, with_copies;
    for (const Published000Size& published : published_000) {
      SeedTimes times;
      const bool is_taken = run_.takes(published.size);
      if (is_taken) {
        NACRE_ASSIGN(const SeedPairTimes pair,
                     run_.time_pair(seed_checksum({run_.bytes(published.size)})));
        times = pair.forward;
      }
      const std::optional<double> sarwate = times.plain;
      add_row(table, "Sarwate, one thread", published.size, &published.ways[0],
              {times.plain, {}, {}, 1024}, sarwate);
      for (std::size_t i = 0; i < ways.size(); ++i) {
        Ours ours;
        if (is_taken) NACRE_TRY(measure_way(ways[i].way, published.size, ours));
        add_row(table, ways[i].name, published.size,
                i + 1 < published.ways.size() ? &published.ways[i + 1] : nullptr, ours, sarwate);
      }
      add_row(table, times.library_name.empty() ? "library" : times.library_name + ", one thread",
              published.size, nullptr, {times.library, {}, {}, {}}, sarwate);
      add_row(table, "Nacre on the GPU", published.size, nullptr,
              {times.kernels, times.with_copies, {}, device_table_bytes}, sarwate);
      sizes.push_back(double(published.size));
      plain.push_back(times.plain);
      library.push_back(times.library);
      with_copies.push_back(times.with_copies);
    }
    add_crossover(table, "Sarwate", crossover(sizes, with_copies, plain));
    add_crossover(table, "the library on one thread", crossover(sizes, with_copies, library));
    table.notes.push_back(
        "The overall time of a parallel way is the host's, from the message on the device to the "
        "value on the host; of Nacre on the GPU it is the kernels'. Making the tables is in "
        "neither, as in the paper.");
    tables_.push_back(std::move(table));
    return {};
  }

  static void add_crossover(SeedTable& table, const std::string& whom, const std::string& where) {
    if (!where.empty())
      table.notes.push_back(
          fmt::format("Nacre on the GPU, with copies, is faster than {} {}.", whom, where));
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
                       .plot = std::nullopt};
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
        "The paper's copy to the device, 221 and 222 ms, is of the tables: the message's is not "
        "told apart from it.");
    tables_.push_back(std::move(table));
  }

  Result<> batches() {
    SeedTable table = {.paper = "000",
                       .name = "000_batches",
                       .title = "Batches of such messages (not in the paper)",
                       .columns = {{"message", SeedUnit::bytes},
                                   {"messages", SeedUnit::count},
                                   {"in all", SeedUnit::bytes},
                                   {"Sarwate", SeedUnit::seconds},
                                   {"library, one thread", SeedUnit::seconds},
                                   {"library, all threads", SeedUnit::seconds},
                                   {"GPU kernels", SeedUnit::seconds},
                                   {"GPU with copies", SeedUnit::seconds},
                                   {"GPU kernels by Sarwate", SeedUnit::times},
                                   {"GPU with copies by Sarwate", SeedUnit::times},
                                   {"GPU with copies by all threads", SeedUnit::times}},
                       .rows = {},
                       .notes = {},
                       .plot = std::nullopt};
    for (const Published000Size& published : published_000) {
      for (const std::size_t count : {std::size_t{16}, std::size_t{1024}}) {
        const std::size_t whole = published.size * count;
        if (whole > batch_size_max) continue;
        SeedTimes times;
        if (run_.takes(whole)) {
          NACRE_ASSIGN(const SeedPairTimes pair,
                       run_.time_pair(seed_checksum(run_.messages(whole, published.size))));
          times = pair.forward;
        }
        table.rows.push_back(
            {double(published.size), double(count), double(whole), cell(times.plain),
             cell(times.library), cell(times.library_all), cell(times.kernels),
             cell(times.with_copies), ratio(times.plain, times.kernels),
             ratio(times.plain, times.with_copies), ratio(times.library_all, times.with_copies)});
      }
    }
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
