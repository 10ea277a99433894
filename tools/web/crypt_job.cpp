// SPDX-License-Identifier: Apache-2.0
#include "tools/web/crypt_job.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include "tools/cli/engine_option.h"
#include "tools/web/path_text.h"

namespace nacre::tools::web {

namespace {

constexpr std::size_t input_count_max = 10000;

// A file's task that also reports to the job, and ends early when the job is cancelled.
class WatchedTask final : public fs::ContainerTask {
 public:
  WatchedTask(std::unique_ptr<fs::ContainerTask> task, Job& job, const CryptFile& file,
              std::size_t index)
      : task_(std::move(task)), job_(job), file_(file), index_(index) {}

  Result<> open() override {
    NACRE_TRY(check_cancelled());
    job_.change_file(index_, [](JobFile& file) { file.state = JobState::running; });
    return task_->open();
  }
  Result<std::size_t> read(MutableByteView out) override {
    NACRE_TRY(check_cancelled());
    return task_->read(out);
  }
  fs::ContainerAttributes attributes() override { return task_->attributes(); }
  Result<> write(std::span<const ByteView> pieces) override {
    NACRE_TRY(check_cancelled());
    return task_->write(pieces);
  }
  void finish(Result<fs::ContainerEnd> outcome) override {
    if (outcome && job_.is_cancelled())
      outcome = fail(ErrorCode::cancelled, "the job was cancelled");
    task_->finish(std::move(outcome));
    if (!file_.error) return;
    job_.change_file(index_, [&](JobFile& file) {
      file.state = job_.is_cancelled() ? JobState::cancelled : JobState::failed;
      file.error = *file_.error;
      file.error->where = file.input;
    });
  }

 private:
  Result<> check_cancelled() const {
    if (job_.is_cancelled()) return fail(ErrorCode::cancelled, "the job was cancelled");
    return {};
  }

  const std::unique_ptr<fs::ContainerTask> task_;
  Job& job_;
  const CryptFile& file_;
  const std::size_t index_;
};

std::vector<JobFile> job_files(const std::vector<CryptFile>& files) {
  std::vector<JobFile> shown;
  for (const CryptFile& file : files) {
    JobFile one;
    one.input = file.input;
    one.output = file.output;
    shown.push_back(std::move(one));
  }
  return shown;
}

// What became of each file, once all outputs are published.
tl::expected<void, WebError> close_files(Job& job, std::vector<CryptFile>& files,
                                         const Result<>& outcome, bool can_download) {
  std::size_t failed_count = 0;
  std::optional<WebError> first;
  for (std::size_t i = 0; i < files.size(); ++i) {
    CryptFile& file = files[i];
    if (!file.is_done && !file.error) {
      file.error = outcome ? Error{ErrorCode::io, "the job ended before this file was finished"}
                           : outcome.error();
    }
    if (file.error && ++failed_count == 1) {
      first = *file.error;
      first->where = file.input;
    }
    job.change_file(i, [&](JobFile& shown) {
      shown.plain_bytes = file.plain_bytes;
      shown.stored_bytes = file.stored_bytes;
      shown.warning = file.warning;
      shown.can_download = can_download && !file.error;
      shown.state = !file.error          ? JobState::done
                    : job.is_cancelled() ? JobState::cancelled
                                         : JobState::failed;
      if (!file.error) return;
      shown.error = *file.error;
      shown.error->where = file.input;
    });
  }
  if (!first) return {};
  if (files.size() > 1) {
    first->what = fmt::format("{} of {} files failed. The first one: {}", failed_count,
                              files.size(), first->what);
  }
  return tl::unexpected(std::move(*first));
}

}  // namespace

Result<std::string> read_input(const PrivateFolder& folder, const nlohmann::json& input,
                               bool* is_upload) {
  if (!input.is_object()) return fail(ErrorCode::invalid_argument, "an input must be an object");
  const Fields fields(input);
  if (!fields.has("upload")) return fields.path("path");
  NACRE_ASSIGN(const auto id, fields.text("upload"));
  const auto upload = folder.find_upload(id);
  if (!upload)
    return fail(ErrorCode::not_found, "the uploaded file is no longer there: upload it again");
  if (is_upload != nullptr) *is_upload = true;
  return upload->path;
}

tl::expected<CryptChoice, WebError> read_crypt_choice(PrivateFolder& folder, const Fields& fields,
                                                      const nlohmann::json& body) {
  CryptChoice choice;
  NACRE_ASSIGN(choice.paths.recursive, fields.flag("recursive"));
  NACRE_ASSIGN(choice.replace, fields.flag("replace"));
  NACRE_ASSIGN(choice.remove_input, fields.flag("remove_input"));
  NACRE_ASSIGN(choice.engine_name, fields.text_or("engine", "auto"));
  NACRE_ASSIGN(choice.engine, parse_engine(choice.engine_name));
  const auto inputs = body.find("inputs");
  if (inputs == body.end() || !inputs->is_array() || inputs->empty() ||
      inputs->size() > input_count_max) {
    return tl::unexpected(WebError(Error{ErrorCode::invalid_argument, "choose at least one file"}));
  }
  bool has_upload = false;
  for (const auto& input : *inputs) {
    bool is_upload = false;
    NACRE_ASSIGN(auto path, read_input(folder, input, &is_upload));
    choice.shown_inputs.push_back(is_upload ? last_name(path) : path);
    choice.paths.inputs.push_back(std::move(path));
    has_upload |= is_upload;
  }
  const nlohmann::json output = body.value("output", nlohmann::json::object());
  if (!output.is_object()) {
    return tl::unexpected(WebError(Error{ErrorCode::invalid_argument, "output must be an object"}));
  }
  const Fields output_fields(output);
  NACRE_ASSIGN(const auto kind, output_fields.text_or("kind", "next_to_input"));
  if (kind == "folder") {
    NACRE_ASSIGN(choice.paths.folder, output_fields.path("path"));
  } else if (kind == "download") {
    choice.is_download = true;
  } else if (kind != "next_to_input" || has_upload) {
    return tl::unexpected(WebError(
        Error{ErrorCode::invalid_argument,
              "an uploaded file has no folder of its own: choose a folder or a download"}));
  }
  return choice;
}

void add_choice_to_command(const CryptChoice& choice, std::vector<std::string>& words) {
  if (choice.paths.recursive) words.emplace_back("-r");
  if (choice.replace) words.emplace_back("-f");
  if (choice.remove_input) words.emplace_back("--remove");
  if (choice.engine_name != "auto") {
    words.insert(words.end(), {"--engine", choice.engine_name});
  }
  if (!choice.paths.folder.empty() && !choice.is_download) {
    words.insert(words.end(), {"-C", choice.paths.folder});
  }
  words.insert(words.end(), choice.shown_inputs.begin(), choice.shown_inputs.end());
}

JobTable::Work crypt_work(CryptChoice choice, CryptDirection direction, engine::Codec encoder,
                          std::vector<CryptFile> planned, PrepareContainers prepare) {
  auto shared_files = std::make_shared<std::vector<CryptFile>>(std::move(planned));
  return [=](Job& job) -> tl::expected<void, WebError> {
    std::vector<CryptFile>& files = *shared_files;
    std::uint64_t input_bytes = 0;
    for (const CryptFile& file : files)
      input_bytes += file.input_bytes;
    job.set_files(job_files(files));
    job.set_stage("preparing keys", "bytes", input_bytes);
    NACRE_ASSIGN(const RunContainers run, prepare());
    NACRE_ASSIGN(const auto engine,
                 engine::Engine::create(
                     engine_options(engine_for_files(choice.engine, encoder, input_bytes), {})));
    const CryptTaskOptions options{
        .direction = direction,
        .replace = choice.replace,
        .remove_input = choice.remove_input,
        .make_folders = true,
        .durability = choice.is_download ? Durability::left_to_system : Durability::synced,
        .input_kinds = metadata::FileKinds::regular};
    OutputQueue queue(choice.replace, options.durability);
    job.set_stage(direction == CryptDirection::encrypt ? "encrypting" : "decrypting", "bytes",
                  input_bytes);
    std::size_t next_index = 0;
    const auto outcome = run(
        *engine,
        [&]() -> std::unique_ptr<fs::ContainerTask> {
          if (next_index == files.size()) return nullptr;
          const std::size_t index = next_index++;
          return std::make_unique<WatchedTask>(make_crypt_task(files[index], options, queue), job,
                                               files[index], index);
        },
        [&](std::uint64_t bytes) { job.add_done(bytes); });
    queue.flush();  // also when it was cancelled: what waits there is complete
    return close_files(job, files, outcome, choice.is_download);
  };
}

}  // namespace nacre::tools::web
