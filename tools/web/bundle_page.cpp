// SPDX-License-Identifier: Apache-2.0
// Runs when Nacre is built: makes one script and one page of the files in tools/web/assets, so that
// a browser needs few requests and paints after the first.
//
//   bundle_page ASSETS_FOLDER LIST OUTPUT_FOLDER
//
// page.js has each module as a function that is called once, after the modules that it imports.
// index.html has the style sheets within itself. Every other file is copied. The modules keep to a
// few forms, and whatever differs ends the build:
//   import { a, b as c } from './m.js';   import * as m from './m.js';   import d from './m.js';
//   export [async] function f   export class C   export const c   export default
// Each stands on a line of its own. There is no `export let`, since importers get the value and not
// the variable, and no circle of imports.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace stdfs = std::filesystem;

struct Module {
  std::string text;  // with imports and exports replaced
  std::vector<std::string> imports;
  std::set<std::string> exports;
  std::vector<std::pair<std::string, std::string>> wanted;  // module, name
};

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw std::runtime_error(where + ": " + what);
}

std::string read(const stdfs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path.string(), "it cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const stdfs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) refuse(path.string(), "it cannot be written");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

std::vector<std::string> read_list(const stdfs::path& path) {
  std::vector<std::string> names = lines_of(read(path));
  std::erase_if(names, [](const auto& name) { return name.empty() || name.front() == '#'; });
  return names;
}

std::string variable_of(const std::string& module) {
  return "module_" + module.substr(0, module.rfind('.'));
}

// "a, b as c" as the pattern "a, b: c"; notes the names.
std::string pattern_of(const std::string& list, const std::string& from, Module& module) {
  static const std::regex entry(R"(\s*([A-Za-z_$][\w$]*)(?:\s+as\s+([A-Za-z_$][\w$]*))?\s*)");
  std::string pattern;
  std::istringstream entries(list);
  for (std::string one; std::getline(entries, one, ',');) {
    std::smatch found;
    if (!std::regex_match(one, found, entry)) refuse(from, "its import is not understood: " + one);
    module.wanted.emplace_back(from, found[1]);
    pattern += (pattern.empty() ? "" : ", ") + found[1].str();
    if (found[2].matched) pattern += ": " + found[2].str();
  }
  return pattern;
}

std::string import_line(const std::string& name, const std::string& line, Module& module) {
  static const std::regex several(R"(import \{(.*)\} from '\./([\w.]+)';)");
  static const std::regex all(R"(import \* as (\w+) from '\./([\w.]+)';)");
  static const std::regex usual(R"(import (\w+) from '\./([\w.]+)';)");
  std::smatch found;
  std::string pattern;
  if (std::regex_match(line, found, several)) {
    pattern = "{ " + pattern_of(found[1], found[2], module) + " }";
  } else if (std::regex_match(line, found, all)) {
    pattern = found[1];
  } else if (std::regex_match(line, found, usual)) {
    module.wanted.emplace_back(found[2], "default");
    pattern = "{ default: " + found[1].str() + " }";
  } else {
    refuse(name, "this import is not understood: " + line);
  }
  module.imports.push_back(found[2]);
  return "const " + pattern + " = " + variable_of(found[2]) + ";";
}

std::string export_line(const std::string& name, const std::string& line, Module& module) {
  static const std::regex named(
      R"(export ((?:async )?function|class|const) ([A-Za-z_$][\w$]*)\b(.*))");
  static const std::regex usual(R"(export default (.*))");
  std::smatch found;
  if (std::regex_match(line, found, named)) {
    module.exports.insert(found[2]);
    return found[1].str() + " " + found[2].str() + found[3].str();
  }
  if (std::regex_match(line, found, usual)) {
    module.exports.insert("default");
    return "const module_default = " + found[1].str();
  }
  refuse(name, "this export is not understood: " + line);
}

Module parse(const std::string& name, const std::string& source) {
  static const std::regex comment(R"(\s*//.*)");
  Module module;
  for (const std::string& line : lines_of(source)) {
    if (line.empty() || std::regex_match(line, comment)) continue;
    std::string made = line;
    if (line.starts_with("import ")) made = import_line(name, line, module);
    if (line.starts_with("export ")) made = export_line(name, line, module);
    module.text += made + "\n";
  }
  return module;
}

class Bundle {
 public:
  explicit Bundle(const stdfs::path& folder, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (name.ends_with(".js")) modules_[name] = parse(name, read(folder / name));
    }
  }

  std::string script(const std::string& first) {
    add(first);
    for (const auto& [name, module] : modules_) {
      if (!done_.contains(name)) refuse(name, "no module imports it");
    }
    return text_;
  }

 private:
  void add(const std::string& name) {
    if (done_.contains(name)) return;
    const auto found = modules_.find(name);
    if (found == modules_.end()) refuse(name, "it is imported and not in the list");
    if (!open_.insert(name).second) refuse(name, "it imports itself, by way of others");
    const Module& module = found->second;
    for (const std::string& other : module.imports)
      add(other);
    for (const auto& [from, wanted] : module.wanted) {
      if (!modules_[from].exports.contains(wanted)) {
        refuse(name, "it imports " + wanted + ", which " + from + " does not export");
      }
    }
    std::string result;
    for (const std::string& one : module.exports)
      result += (result.empty() ? "" : ", ") + (one == "default" ? "default: module_default" : one);
    text_ += "const " + variable_of(name) + " = (() => {\n" + module.text + "return { " + result +
             " };\n})();\n";
    done_.insert(name);
  }

  std::map<std::string, Module> modules_;
  std::set<std::string> open_, done_;
  std::string text_ = "// Made from the modules of tools/web/assets, when Nacre was built.\n";
};

// Without comments. A sheet must not end the element that it stands in.
std::string plain_sheet(const std::string& name, const std::string& text) {
  static const std::regex comment(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/\s*)");
  const std::string plain = std::regex_replace(text, comment, "");
  if (plain.find("</") != std::string::npos) refuse(name, "a style sheet cannot have \"</\"");
  return plain;
}

std::string page(const stdfs::path& folder, std::string html) {
  static const std::regex link(R"re(<link rel="stylesheet" href="([\w.]+)">\n)re");
  std::string sheets;
  std::smatch found;
  while (std::regex_search(html, found, link)) {
    sheets += plain_sheet(found[1], read(folder / found[1].str()));
    html = found.prefix().str() + found.suffix().str();
  }
  const std::string script = "<script type=\"module\" src=\"main.js\"></script>";
  const auto place = html.find(script);
  if (place == std::string::npos) refuse("index.html", "it does not load main.js");
  html.replace(place, script.size(),
               "<style>" + sheets + "</style>\n<script type=\"module\" src=\"page.js\"></script>");
  return html;
}

void make(const stdfs::path& folder, const stdfs::path& list, const stdfs::path& output) {
  const auto names = read_list(list);
  stdfs::create_directories(output);
  std::string made = "index.html\npage.js\n";
  write(output / "page.js", Bundle(folder, names).script("main.js"));
  write(output / "index.html", page(folder, read(folder / "index.html")));
  for (const std::string& name : names) {
    if (name.ends_with(".js") || name.ends_with(".css") || name == "index.html") continue;
    write(output / name, read(folder / name));
    made += name + "\n";
  }
  write(output / "page.txt", made);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: bundle_page ASSETS_FOLDER LIST OUTPUT_FOLDER\n";
    return 2;
  }
  try {
    make(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::cerr << "bundle_page: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
