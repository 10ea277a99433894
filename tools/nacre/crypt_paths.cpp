// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/crypt_paths.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "metadata/backing/posix_error.h"

namespace nacre::tools {

namespace {

namespace fs_std = std::filesystem;

tl::unexpected<Error> usage(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

class Planner {
 public:
  Planner(const CryptPaths& paths, CryptDirection direction)
      : paths_(paths), encrypts_(direction == CryptDirection::encrypt) {}

  Result<std::vector<CryptFile>> plan() {
    NACRE_TRY(check_options());
    if (paths_.inputs.empty()) NACRE_TRY(add_file(standard_stream, {}));
    for (const std::string& input : paths_.inputs)
      NACRE_TRY(add_input(input));
    return std::move(files_);
  }

 private:
  Result<> check_options() const {
    if (!paths_.output.empty() && !paths_.folder.empty()) {
      return usage("-o names one output, -C a folder for all outputs: give only one of them");
    }
    if (!paths_.output.empty() && (paths_.inputs.size() > 1 || paths_.recursive)) {
      return usage("-o is for one file; for several give -C FOLDER");
    }
    const auto streams = std::count(paths_.inputs.begin(), paths_.inputs.end(), standard_stream);
    if (streams > 0 && paths_.inputs.size() > 1) {
      return usage("standard input (-) cannot be given together with files");
    }
    return {};
  }

  Result<> add_input(const std::string& input) {
    std::error_code error;
    if (input == standard_stream || !paths_.recursive || !fs_std::is_directory(input, error)) {
      return add_file(input, {});
    }
    return add_folder(input);
  }

  Result<> add_folder(const std::string& folder) {
    std::error_code error;
    std::vector<fs_std::path> found;
    for (fs_std::recursive_directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
      const bool is_file = at->symlink_status(error).type() == fs_std::file_type::regular;
      if (!error && is_file && is_container(at->path().string()) != encrypts_) {
        found.push_back(at->path());
      }
    }
    if (error) return metadata::fail_errno(error.value(), folder);
    std::sort(found.begin(), found.end());  // the same order every time
    // "notes/" and "." have a name as well.
    fs_std::path name = fs_std::absolute(folder, error).lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    for (const fs_std::path& path : found) {
      const auto place = name.filename() / path.lexically_relative(folder).parent_path();
      NACRE_TRY(add_file(path.string(), place.string()));
    }
    return {};
  }

  // place is the folder below -C.
  Result<> add_file(const std::string& input, const std::string& place) {
    CryptFile file{.input = input};
    NACRE_ASSIGN(file.output, output_of(input, place));
    if (file.output != standard_stream && !outputs_.insert(file.output).second) {
      return usage(fmt::format("two of the files would become {}", file.output));
    }
    std::error_code error;
    if (input != standard_stream && fs_std::is_regular_file(input, error)) {
      file.input_bytes = fs_std::file_size(input, error);
      if (error) file.input_bytes = 0;
    }
    files_.push_back(std::move(file));
    return {};
  }

  Result<std::string> output_of(const std::string& input, const std::string& place) const {
    if (!paths_.output.empty()) return paths_.output;
    if (input == standard_stream) return std::string(standard_stream);
    std::string output = input;
    if (encrypts_) {
      output += container_suffix;
    } else if (is_container(input)) {
      output.resize(output.size() - container_suffix.size());
    } else {
      return usage(fmt::format(
          "{}: its name does not end with {}, so what is in it has no name: give one with -o",
          input, container_suffix));
    }
    if (paths_.folder.empty()) return output;
    return (fs_std::path(paths_.folder) / place / fs_std::path(output).filename()).string();
  }

  static bool is_container(const std::string& name) {
    return name.ends_with(container_suffix) &&
           fs_std::path(name).filename().string().size() > container_suffix.size();
  }

  const CryptPaths& paths_;
  const bool encrypts_;
  std::vector<CryptFile> files_;
  std::set<std::string> outputs_;
};

}  // namespace

Result<std::vector<CryptFile>> plan_crypt_files(const CryptPaths& paths, CryptDirection direction) {
  return Planner(paths, direction).plan();
}

}  // namespace nacre::tools
