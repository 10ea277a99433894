// SPDX-License-Identifier: Apache-2.0
// The chooser of files, and uploads. API.md, "Files".
#include <sys/stat.h>

#include <cerrno>

#include "fs/crypt/container_format.h"
#include "metadata/backing/posix_error.h"
#include "tools/web/fields.h"
#include "tools/web/folder_list.h"
#include "tools/web/path_text.h"
#include "tools/web/program.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

namespace {

Answer show_folder(const Call& call) {
  const std::string asked = call.head.query_value("path");
  NACRE_ASSIGN(const auto path,
               asked.empty() ? Result<std::string>(home_folder()) : request_path(asked));
  auto listed = list_folder(path, call.head.query_value("hidden") == "1");
  if (!listed) {
    WebError error(listed.error());
    error.where = path;
    error.command = shell_line({"ls", "-l", path});
    return tl::unexpected(error);
  }
  return json_response(*listed);
}

Answer make_folder(const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto parent, fields.path("path"));
  NACRE_ASSIGN(const auto name_text, fields.text("name"));
  NACRE_ASSIGN(const auto name, from_path_text(name_text));
  if (!fs::is_file_name(name)) {
    return tl::unexpected(
        WebError(Error{ErrorCode::invalid_argument, "a folder's name has no slash"}));
  }
  const std::string path = (parent == "/" ? "" : parent) + "/" + name;
  constexpr mode_t within_umask_mode = 0777;
  if (::mkdir(path.c_str(), within_umask_mode) != 0) {
    return tl::unexpected(WebError(metadata::fail_errno(errno, path).value()));
  }
  return json_response({{"path", to_path_text(path)}, {"command", shell_line({"mkdir", path})}});
}

Answer end_upload(ServerContext& context, Call& call) {
  const Upload upload = context.folder->keep(std::move(*call.upload));
  return json_response(
      {{"upload",
        {{"id", upload.id}, {"name", to_path_text(upload.name)}, {"size", upload.size_bytes}}}});
}

}  // namespace

void add_file_routes(RouteTable& routes, ServerContext& context) {
  routes.get("/api/files", [](Call& call) { return show_folder(call); });
  routes.get("/api/files/places", [](Call&) -> Answer {
    return json_response({{"places", list_places()}});
  });
  routes.post("/api/files/folder", [](Call& call) { return make_folder(call); });
  routes.add({.method = "POST",
              .pattern = "/api/uploads",
              .body = BodyKind::upload,
              .answer = [&](Call& call) { return end_upload(context, call); }});
  routes.remove("/api/uploads/*", [&](Call& call) -> Answer {
    if (context.folder->remove_upload(call.words.front())) {
      return json_response(nlohmann::json::object());
    }
    return tl::unexpected(WebError(
        Error{ErrorCode::not_found, "the uploaded file is no longer there: upload it again"}));
  });
}

}  // namespace nacre::tools::web
