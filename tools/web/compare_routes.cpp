// SPDX-License-Identifier: Apache-2.0
// The same file through each codec and cipher on each device, and what a job would take. API.md,
// "Files".
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "metadata/backing/posix_error.h"
#include "tools/cli/engine_option.h"
#include "tools/web/crypt_job.h"
#include "tools/web/engine_names.h"
#include "tools/web/measure_engine.h"
#include "tools/web/path_text.h"
#include "tools/web/program.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

constexpr std::uint64_t compared_bytes_default = 64u << 20;
constexpr std::uint64_t compared_bytes_max = 128u << 20;
constexpr std::uint64_t estimated_bytes = 4u << 20;
constexpr std::size_t rsa_operation_count = 64;
constexpr std::size_t rsa_key_count = 4;
constexpr std::uint64_t block_size_bytes = 16;

struct Comparison {
  std::string path;
  std::vector<engine::Codec> codecs;
  std::vector<engine::CipherSuite> suites;
  std::vector<int> rsa_bits;
  std::vector<std::string> engines;
  std::uint64_t bytes_max = compared_bytes_default;
};

struct ReadBytes {
  MeasuredBytes bytes;
  std::uint64_t read_size_bytes = 0;
  bool is_whole_file = false;
};

// The beginning of the file, filled up with zeros to whole blocks.
Result<ReadBytes> read_beginning(engine::Engine& engine, const std::string& path,
                                 std::uint64_t size_max) {
  NACRE_ASSIGN(const auto file, open_input(path, metadata::FileKinds::regular));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return metadata::fail_errno(errno, path);
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, path + " is no file");
  const auto file_size = static_cast<std::uint64_t>(status.st_size);
  if (file_size == 0) return fail(ErrorCode::invalid_argument, path + " is empty");
  const std::uint64_t wanted = std::min(file_size, size_max);
  ReadBytes read;
  read.bytes.size_bytes = round_up(wanted, block_size_bytes);
  NACRE_ASSIGN(read.bytes.arena, engine.allocate(read.bytes.size_bytes));
  NACRE_ASSIGN(read.read_size_bytes,
               read_full(file.get(), {read.bytes.arena.data(), wanted}, path));
  read.is_whole_file = read.read_size_bytes == file_size;
  return read;
}

json row_json(const MeasuredRow& row, const std::string& engine) {
  const bool is_rsa = row.operation.starts_with("rsa");
  const double rate = row.seconds > 0 ? static_cast<double>(row.amount) / row.seconds : 0;
  return {{"operation", row.operation},
          {"method", row.method},
          {"engine", engine},
          {"seconds", row.seconds},
          {"rate", rate},
          {"unit", is_rsa ? "operations" : "bytes"},
          {"input_bytes", row.amount},
          {"output_bytes", row.output_bytes},
          {"ratio", is_rsa || row.output_bytes == 0 ? json()
                                                    : json(static_cast<double>(row.amount) /
                                                           static_cast<double>(row.output_bytes))},
          {"error", nullptr}};
}

json failed_row(std::string operation, std::string method, const std::string& engine,
                const Error& error) {
  return {{"operation", std::move(operation)},
          {"method", std::move(method)},
          {"engine", engine},
          {"seconds", nullptr},
          {"rate", nullptr},
          {"unit", nullptr},
          {"input_bytes", nullptr},
          {"output_bytes", nullptr},
          {"ratio", nullptr},
          {"error", error.message.empty() ? std::string(to_string(error.code)) : error.message}};
}

// Collects rows, and shows them while the job runs.
class Comparer {
 public:
  Comparer(Job& job, const Comparison& wanted) : job_(job), wanted_(wanted) {}

  tl::expected<void, WebError> run() {
    job_.set_stage("comparing", "steps",
                   wanted_.engines.size() * (wanted_.codecs.size() + wanted_.suites.size() +
                                             2 * wanted_.rsa_bits.size()));
    for (const std::string& name : wanted_.engines) {
      NACRE_ASSIGN(const auto choice, parse_engine(name));
      const auto engine = engine::Engine::create(engine_options(choice, {}));
      if (!engine) {
        rows_.push_back(failed_row("all", "all", name, engine.error()));
        continue;
      }
      NACRE_TRY(run_on(**engine, name));
    }
    return {};
  }

 private:
  Result<> run_on(engine::Engine& engine, const std::string& name) {
    NACRE_ASSIGN(const ReadBytes read, read_beginning(engine, wanted_.path, wanted_.bytes_max));
    bytes_ = read.read_size_bytes;
    is_whole_file_ = read.is_whole_file;
    // What the first run alone pays for: threads, memory, kernels.
    static_cast<void>(measure_suite(engine, read.bytes, engine::CipherSuite::aes_256_gcm));
    for (const auto codec : wanted_.codecs) {
      NACRE_TRY(add_pair("compress", std::string(engine::to_string(codec)), name,
                         [&] { return measure_codec(engine, read.bytes, codec); }));
    }
    for (const auto suite : wanted_.suites) {
      NACRE_TRY(add_pair("encrypt", std::string(engine::to_string(suite)), name,
                         [&] { return measure_suite(engine, read.bytes, suite); }));
    }
    for (const int bits : wanted_.rsa_bits) {
      const std::string method = fmt::format("rsa-{}", bits);
      NACRE_TRY(add_pair("rsa_encrypt", method, name,
                         [&] { return measure_rsa(engine, bits, rsa_operation_count); }));
      NACRE_TRY(check_cancelled());
      const auto made = measure_rsa_generation(engine, bits, rsa_key_count);
      add(made ? row_json(*made, name) : failed_row("rsa_generate", method, name, made.error()));
      job_.add_done(1);
    }
    return {};
  }

  template <typename Measure>
  Result<> add_pair(const char* operation, std::string method, const std::string& engine,
                    const Measure& measure) {
    NACRE_TRY(check_cancelled());
    const Result<MeasuredPair> pair = measure();
    if (pair) {
      add(row_json(pair->there, engine));
      add(row_json(pair->back, engine));
    } else {
      add(failed_row(operation, std::move(method), engine, pair.error()));
    }
    job_.add_done(1);
    return {};
  }

  Result<> check_cancelled() const {
    if (job_.is_cancelled()) return fail(ErrorCode::cancelled, "the job was cancelled");
    return {};
  }

  void add(json row) {
    rows_.push_back(std::move(row));
    job_.set_result({{"bytes", bytes_}, {"is_whole_file", is_whole_file_}, {"rows", rows_}});
  }

  Job& job_;
  const Comparison& wanted_;
  json rows_ = json::array();
  std::uint64_t bytes_ = 0;
  bool is_whole_file_ = false;
};

std::vector<engine::Codec> measurable_codecs() {
  std::vector<engine::Codec> codecs;
  for (const auto codec : choosable_codecs()) {
    if (codec != engine::Codec::none && codec != engine::Codec::automatic) codecs.push_back(codec);
  }
  return codecs;
}

Result<Comparison> read_comparison(const PrivateFolder& folder, const json& body) {
  const Fields fields(body);
  Comparison wanted;
  NACRE_ASSIGN(wanted.path, read_input(folder, body.value("input", json())));
  NACRE_ASSIGN(const auto codecs, fields.texts("codecs"));
  NACRE_ASSIGN(const auto ciphers, fields.texts("ciphers"));
  NACRE_ASSIGN(wanted.engines, fields.texts("engines"));
  NACRE_ASSIGN(wanted.bytes_max,
               fields.number_or("bytes_max", compared_bytes_default, 1, compared_bytes_max));
  for (const std::string& name : codecs) {
    NACRE_ASSIGN(const auto codec, engine::codec_from_name(name));
    wanted.codecs.push_back(codec);
  }
  for (const std::string& name : ciphers) {
    NACRE_ASSIGN(const auto suite, engine::suite_from_name(name));
    wanted.suites.push_back(suite);
  }
  if (!fields.has("codecs")) wanted.codecs = measurable_codecs();
  if (!fields.has("ciphers")) wanted.suites = all_suites();
  if (wanted.engines.empty()) {
    wanted.engines = {"cpu"};
    if (why_no_device().empty()) wanted.engines.emplace_back("cuda");
  }
  const json bits = body.value("rsa_bits", json::array());
  for (const json& one : bits) {
    if (!one.is_number_unsigned() || one < engine::rsa_message_bits_min ||
        one > engine::rsa_bits_max) {
      return fail(ErrorCode::invalid_argument, "rsa_bits: from 1024 to 8192");
    }
    wanted.rsa_bits.push_back(one.get<int>());
  }
  return wanted;
}

Answer compare(ServerContext& context, const Call& call) {
  NACRE_ASSIGN(const Comparison wanted, read_comparison(*context.folder, call.body));
  return job_answer(context.jobs.start("compare", last_name(wanted.path),
                                       shell_line({"nacre", "bench", "codecs", wanted.path}),
                                       [wanted](Job& job) { return Comparer(job, wanted).run(); }));
}

// Seconds for each byte of a sample: compression and encryption one after the other.
std::optional<double> seconds_a_byte(engine::EngineChoice choice, const std::string& path,
                                     engine::Codec codec, engine::CipherSuite suite) {
  const auto engine = engine::Engine::create(engine_options(choice, {}));
  if (!engine) return std::nullopt;
  const auto read = read_beginning(**engine, path, estimated_bytes);
  if (!read) return std::nullopt;
  static_cast<void>(measure_suite(**engine, read->bytes, suite));
  const auto sealed = measure_suite(**engine, read->bytes, suite);
  if (!sealed) return std::nullopt;
  double seconds = sealed->there.seconds;
  if (const auto packed = measure_codec(**engine, read->bytes, codec)) {
    seconds += packed->there.seconds;
  }
  return seconds / static_cast<double>(read->bytes.size_bytes);
}

Answer estimate(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  json body = call.body;
  body["output"] = {{"kind", "folder"}, {"path", "/"}};  // nothing is written
  auto choice = read_crypt_choice(*context.folder, fields, body);
  if (!choice) return tl::unexpected(choice.error());
  NACRE_ASSIGN(const auto codec_name, fields.text_or("codec", "lz77"));
  NACRE_ASSIGN(const auto cipher_name, fields.text_or("cipher", "aes-256-gcm"));
  NACRE_ASSIGN(const auto codec, engine::codec_from_name(codec_name));
  NACRE_ASSIGN(const auto suite, engine::suite_from_name(cipher_name));
  NACRE_ASSIGN(const auto files, plan_crypt_files(choice->paths, CryptDirection::encrypt));
  std::uint64_t bytes = 0;
  std::string largest;
  std::uint64_t largest_bytes = 0;
  for (const CryptFile& file : files) {
    bytes += file.input_bytes;
    if (file.input_bytes > largest_bytes) largest = file.input;
    largest_bytes = std::max(largest_bytes, file.input_bytes);
  }
  json engines = json::array();
  for (const std::string name : {"cpu", "cuda"}) {
    if (name == "cuda" && !why_no_device().empty()) continue;
    NACRE_ASSIGN(const auto engine, parse_engine(name));
    const auto each =
        largest.empty() ? std::nullopt : seconds_a_byte(engine, largest, codec, suite);
    engines.push_back(
        {{"name", name}, {"seconds", each ? json(*each * static_cast<double>(bytes)) : json()}});
  }
  const auto chosen = engine_for_files(engine::EngineChoice::automatic, codec, bytes);
  const bool may_use_device = chosen == engine::EngineChoice::automatic && why_no_device().empty();
  return json_response({{"bytes", bytes},
                        {"file_count", files.size()},
                        {"engines", std::move(engines)},
                        {"auto", may_use_device ? "cuda" : "cpu"}});
}

}  // namespace

void add_compare_routes(RouteTable& routes, ServerContext& context) {
  routes.post("/api/files/compare", [&](Call& call) { return compare(context, call); });
  routes.post("/api/files/estimate", [&](Call& call) { return estimate(context, call); });
}

}  // namespace nacre::tools::web
