// SPDX-License-Identifier: Apache-2.0
// Guan and Li: DES, AES and RSA on files of figure 7, key pairs, and the packers on files of figure
// 12; also longer inputs and batches of the small ones, which the report does not have.
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "gpu_engine/publickey/rsa.h"
#include "gpu_engine/seeds/plain_codes.h"
#include "tools/papers/paper_003.h"
#include "tools/papers/tasks.h"

namespace nacre::tools {
namespace {

using engine::BlockCipher;
using engine::CipherMode;
using engine::Codec;
using engine::seeds::RsaNumbers;

constexpr std::size_t message_size = 64u << 10;
constexpr std::size_t small_file_size = kib(0.23);
constexpr std::array<std::pair<std::size_t, std::string_view>, 3> small_file_counts = {
    {{16, "16"}, {256, "256"}, {4096, "4,096"}}};
constexpr std::size_t keys_a_thread = 16;

// An input of a table: a file of the report, or one of ours.
struct Input {
  std::string name;
  std::size_t size = 0;          // of the whole input
  std::size_t message_size = 0;  // the input is cut into these
  Published003Direction forward = {}, back = {};
  bool is_batch = false;  // a batch of small files, which has an order of its own
};

std::vector<Input> inputs_of(std::span<const Published003Row> rows) {
  std::vector<Input> inputs;
  for (const Published003Row& row : rows) {
    // Several copies of a file are one longer file.
    inputs.push_back({row.file, row.copies * row.size, message_size, row.forward, row.back});
  }
  return inputs;
}

// Many small files, each one message: a device gains from these, while one alone is too short for
// it.
void add_small_files(std::vector<Input>& inputs, std::size_t file_size) {
  for (const auto& [count, words] : small_file_counts) {
    inputs.push_back(
        {fmt::format("{} files of {:.2f} KiB (not in the report)", words, double(file_size) / 1024),
         count * file_size,
         file_size,
         {},
         {},
         true});
  }
}

// Makes the pair of operations for an input, which is cut into messages of whole blocks.
using MakePair = std::function<SeedPair(const SeedRun& run, const Input& input)>;

struct Figure {
  std::string name, title;  // "003_figure_8", "Figure 8: DES"
  std::string forward, back;
  std::vector<Input> inputs;
  std::vector<std::string> notes;
};

// The table of a figure in one direction.
struct Direction {
  SeedTable table;
  SeedComparison comparison;

  Direction(const std::string& name, const std::string& title)
      : table{.paper = "003",
              .name = name,
              .title = title,
              .columns = {{"file"},
                          {"size", SeedUnit::bytes},
                          {"CPU", SeedUnit::seconds, true},
                          {"GPU", SeedUnit::seconds, true},
                          {"GPU by CPU", SeedUnit::times, true}},
              .rows = {},
              .notes = {},
              .plot = {.x = 1, .y = {2, 3}}},
        comparison({.shown = {&SeedTimes::plain, &SeedTimes::library, &SeedTimes::library_all,
                              &SeedTimes::kernels, &SeedTimes::with_copies},
                    .beaten = {&SeedTimes::plain, &SeedTimes::library_all}}) {
    comparison.add_columns(table);
  }

  void add(const Input& input, const Published003Direction& published, const SeedTimes& times) {
    comparison.add_row(table,
                       {input.name, double(input.size), cell(published.cpu), cell(published.gpu),
                        cell(published.improvement)},
                       times, double(input.size));
    table.rows_apart += input.is_batch;
    comparison.add_place(double(input.size), times, input.is_batch ? "small files" : "");
  }
};

class Paper003 {
 public:
  Paper003(SeedRun& run, std::vector<SeedTable>& tables) : run_(run), tables_(tables) {}

  Result<> run() {
    NACRE_TRY(ciphers());
    NACRE_TRY(public_keys());
    NACRE_TRY(key_pairs());
    NACRE_TRY(packers());
    return {};
  }

 private:
  Result<> measure(const Figure& figure, const MakePair& make_pair) {
    Direction forward(figure.name + "_" + figure.forward, figure.title + ", " + figure.forward);
    Direction back(figure.name + "_" + figure.back, figure.title + ", " + figure.back);
    for (const Input& input : figure.inputs) {
      SeedPairTimes times;
      if (run_.takes(input.size)) {
        auto measured = run_.time_pair(make_pair(run_, input));
        if (!measured)
          return add_context(measured.error(), fmt::format("{}, {}", figure.title, input.name));
        times = *measured;
      }
      forward.add(input, input.forward, times.forward);
      back.add(input, input.back, times.back);
    }
    forward.table.notes = figure.notes;
    for (Direction* const direction : {&forward, &back}) {
      direction->comparison.add_notes(direction->table);
      tables_.push_back(std::move(direction->table));
    }
    return {};
  }

  // ECB needs whole blocks, so the last bytes that fill none are left out.
  static std::vector<ByteView> block_messages(const SeedRun& run, const Input& input) {
    return run.messages(input.size / 16 * 16, input.message_size);
  }

  Result<> ciphers() {
    constexpr std::size_t blocks_size = small_file_size / 16 * 16;
    std::vector<Input> des_inputs = inputs_of(published_003_des);
    add_small_files(des_inputs, blocks_size);
    NACRE_TRY(measure({"003_figure_8",
                       "Figure 8: DES",
                       "encryption",
                       "decryption",
                       des_inputs,
                       {"The mode is ECB, in messages of 64 KiB, as in all of these figures. The "
                        "plain code works bit by bit, as the standard does."}},
                      [](const SeedRun& run, const Input& input) {
                        return seed_des(block_messages(run, input));
                      }));
    for (const BlockCipher cipher :
         {BlockCipher::aes_128, BlockCipher::aes_192, BlockCipher::aes_256}) {
      std::vector<Input> inputs = inputs_of(published_003_aes);
      // The report does not say which length the figure is for.
      const bool is_first = cipher == BlockCipher::aes_128;
      if (!is_first) {
        for (Input& input : inputs)
          input.forward = input.back = {};
      }
      add_small_files(inputs, blocks_size);
      const std::string name(engine::to_string(cipher));
      NACRE_TRY(measure({is_first ? "003_figure_9" : "003_" + name,
                         fmt::format("Figure 9: AES ({})", name),
                         "encryption",
                         "decryption",
                         inputs,
                         {"The mode is ECB. The plain code works byte by byte. The report does not "
                          "say for which key length its figures are."}},
                        [cipher](const SeedRun& run, const Input& input) {
                          return seed_aes(block_messages(run, input), cipher, CipherMode::ecb,
                                          true);
                        }));
    }
    return {};
  }

  // The numbers hold a file's bytes, with a zero in front of each so that it is below the modulus.
  Result<> rsa_figure(int bits, const std::vector<Input>& inputs) {
    NACRE_ASSIGN(const RsaNumbers key, engine::seeds::make_rsa_numbers(bits));
    const std::size_t size = static_cast<std::size_t>(bits) / 8;
    std::size_t largest = 0;
    for (const Input& input : inputs)
      if (run_.takes(input.size)) largest = std::max(largest, input.size);
    Bytes numbers(round_up(largest, size - 1) / (size - 1) * size);
    const ByteView plain = run_.bytes(largest);
    for (std::size_t at = 0, to = 0; at < largest; at += size - 1, to += size)
      std::copy_n(plain.begin() + std::ptrdiff_t(at), std::min(size - 1, largest - at),
                  numbers.begin() + std::ptrdiff_t(to + 1));
    return measure(
        {bits == 1024 ? "003_figure_10" : fmt::format("003_rsa_{}", bits),
         fmt::format("Figure 10: RSA-{}", bits),
         "encryption",
         "decryption",
         inputs,
         {fmt::format("Each number holds {} bytes of the file. The plain code squares and "
                      "multiplies with Montgomery products, for the private exponent too; the "
                      "library and Nacre use Chinese remainders. Every row is a batch of such "
                      "short messages.",
                      size - 1),
          bits == 1024 ? "The engine accepts keys as short as these. Volumes do not."
                       : "The report has no keys of this length."}},
        [&](const SeedRun&, const Input& input) {
          std::vector<ByteView> messages;
          for (std::size_t at = 0; at < input.size; at += size - 1)
            messages.push_back(ByteView(numbers).subspan(at / (size - 1) * size, size));
          return seed_rsa(std::move(messages), key);
        });
  }

  Result<> public_keys() {
    std::vector<Input> inputs = inputs_of(published_003_rsa);
    NACRE_TRY(rsa_figure(1024, inputs));
    for (Input& input : inputs)
      input.forward = input.back = {};
    return rsa_figure(2048, inputs);
  }

  // Seconds for each key, the mean of several, because the length of the search is a matter of
  // luck.
  Result<std::optional<double>> time_keys(const engine::BaselineLibrary& maker, int bits,
                                          unsigned threads) const {
    if (!maker.make) return std::optional<double>();
    const std::size_t count = std::size_t{threads} * keys_a_thread;
    NACRE_ASSIGN(const auto contender,
                 make_library_contender(
                     maker, threads,
                     {std::vector<ByteView>(count),
                      std::vector<std::size_t>(count, engine::rsa_private_key_size_bound(bits))}));
    NACRE_ASSIGN(const double seconds, run_.time_of([&] { return contender->run(); }));
    return std::optional(seconds / double(count));
  }

  Result<> key_pairs() {
    SeedTable table = {
        .paper = "003",
        .name = "003_figure_11",
        .title = "Figure 11: RSA key pairs, seconds for each",
        .columns = {{"modulus, bits", SeedUnit::count},
                    {"keys at a time", SeedUnit::count},
                    {"CPU", SeedUnit::seconds, true},
                    {"GPU", SeedUnit::seconds, true},
                    {"GPU by CPU", SeedUnit::times, true}},
        .rows = {},
        .notes = {"The plain code is the report's search (division by the primes below 1,000, "
                  "then 32 rounds of Miller and Rabin) with OpenSSL's big numbers.",
                  "The GPU's kernels search primes. The host makes keys of them and checks the "
                  "keys, which only the column \"GPU with copies\" includes. Figures of one thread "
                  "are for 16 keys, one after another. If fewer keys are made at a time than there "
                  "are threads, the other threads are idle."},
        .plot = {.x = 1, .y = {2, 3}, .series = 0}};
    SeedComparison comparison(
        {.shown = {&SeedTimes::plain, &SeedTimes::library, &SeedTimes::library_all,
                   &SeedTimes::kernels, &SeedTimes::with_copies},
         .beaten = {&SeedTimes::plain, &SeedTimes::library, &SeedTimes::library_all},
         .size_unit = SeedUnit::count,
         .size_noun = " keys at a time"});
    comparison.add_columns(table);
    for (const int bits : {1024, 2048}) {
      BenchTask task;
      task.message.operation = engine::Operation::rsa_generate;
      task.message.rsa_bits = static_cast<std::uint32_t>(bits);
      const std::vector<engine::BaselineLibrary> libraries = libraries_for(task);
      SeedTimes times;
      NACRE_ASSIGN(times.plain, time_keys(engine::seeds::plain_rsa_keys(bits), bits, 1));
      if (!libraries.empty()) {
        times.library_name = libraries.front().name;
        NACRE_ASSIGN(times.library, time_keys(libraries.front(), bits, 1));
        times.library_all = times.library;
      }
      unsigned thread_count = 1;  // of library_all
      for (const std::size_t count : {1, 16, 256, 4096}) {
        const auto threads = std::min<std::size_t>(count, run_.thread_count());
        if (threads > thread_count && !libraries.empty()) {
          thread_count = static_cast<unsigned>(threads);
          NACRE_ASSIGN(times.library_all, time_keys(libraries.front(), bits, thread_count));
        }
        NACRE_TRY(time_device_keys(task, bits, count, times));
        const Published003Direction published =
            bits == 1024 && count == 1 ? published_003_keys : Published003Direction{};
        comparison.add_row(table,
                           {double(bits), double(count), cell(published.cpu), cell(published.gpu),
                            cell(published.improvement)},
                           times, 0);
        comparison.add_place(double(count), times,
                             fmt::format("{} bits", to_text(double(bits), SeedUnit::count)));
      }
    }
    comparison.add_notes(table);
    tables_.push_back(std::move(table));
    return {};
  }

  // Seconds for each key, if this many are made at a time; nothing if no device makes them.
  Result<> time_device_keys(const BenchTask& task, int bits, std::size_t count,
                            SeedTimes& times) const {
    times.kernels = times.with_copies = std::nullopt;
    if (run_.cuda() == nullptr || bits < engine::rsa_message_bits_min) return {};
    const SeedMessage one = {task.message, {}, engine::rsa_private_key_size_bound(bits)};
    NACRE_ASSIGN(const auto first, EngineWork::make(*run_.cuda(), {}, {one}));
    if (!first->run() || !first->ran_on_device()) return {};
    NACRE_ASSIGN(const auto work,
                 EngineWork::make(*run_.cuda(), {}, std::vector<SeedMessage>(count, one)));
    NACRE_ASSIGN(times.with_copies, run_.time_on_device(*work));
    if (!times.with_copies) return {};
    for (std::size_t i = 0; i < count; ++i)
      NACRE_TRY(engine::RsaPrivateKey::from_der(work->output(i), engine::rsa_message_bits_min));
    *times.with_copies /= double(count);
    times.kernels = run_.time_kernels(*work);
    if (times.kernels) *times.kernels /= double(count);
    return {};
  }

  Result<> packers() {
    struct Packer {
      const char* figure;
      const char* title;
      Codec codec;
      std::span<const Published003Row> rows;
      const char* note;
    };
    const Packer all[] = {
        {"003_figure_13", "Figure 13: RLE", Codec::rle, published_003_rle,
         "Nacre's rle is PackBits. The plain code writes the report's stream."},
        {"003_figure_14", "Figure 14: LZ77", Codec::lz77, published_003_lz77,
         "Nacre's lz77 is LZ4. The plain code writes the report's triples, in gamma codes."},
        {"003_figure_15", "Figure 15: Huffman", Codec::huffman, published_003_huffman,
         "Nacre's huffman is GDeflate with literals only. The library's deflate has literals only, "
         "too."},
        {"003_figure_16", "Figure 16: LZW", Codec::lzw, published_003_lzw,
         "Nacre's lzw is TIFF's, with codes of 9 to 12 bits. The plain code's codes have 16 "
         "bits."}};
    for (const Packer& packer : all) {
      std::vector<Input> inputs = inputs_of(packer.rows);
      inputs.push_back({"1 MiB (not in the report)", 1u << 20, message_size});
      inputs.push_back({"16 MiB (not in the report)", 16u << 20, message_size});
      add_small_files(inputs, small_file_size);
      NACRE_TRY(measure({packer.figure,
                         packer.title,
                         "compression",
                         "decompression",
                         inputs,
                         {packer.note, "Files are cut into messages of 64 KiB, as in a volume."}},
                        [&](const SeedRun& run, const Input& input) {
                          return seed_codec(run.messages(input.size, input.message_size),
                                            packer.codec);
                        }));
    }
    return {};
  }

  SeedRun& run_;
  std::vector<SeedTable>& tables_;
};

}  // namespace

Result<> run_paper_003(SeedRun& run, std::vector<SeedTable>& tables) {
  return Paper003(run, tables).run();
}

}  // namespace nacre::tools
