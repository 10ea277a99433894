// SPDX-License-Identifier: Apache-2.0
// The list of jobs, and downloads of their results. API.md, "Jobs".
#include <charconv>

#include "tools/web/fields.h"
#include "tools/web/path_text.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

namespace {

tl::expected<std::shared_ptr<Job>, WebError> find_job(ServerContext& context, const Call& call) {
  auto job = context.jobs.find(call.words.front());
  if (job) return job;
  return tl::unexpected(
      WebError(Error{ErrorCode::not_found, "this job is not in the list: it was cleared"}));
}

Answer list_jobs(ServerContext& context) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& job : context.jobs.list())
    list.push_back(job->to_json());
  return json_response({{"jobs", std::move(list)}});
}

Answer make_download(ServerContext& context, const Call& call) {
  const auto job = find_job(context, call);
  if (!job) return tl::unexpected(job.error());
  NACRE_ASSIGN(const auto index, Fields(call.body).number_or("file", 0, 0, UINT32_MAX));
  const std::string path = (*job)->download_path(index);
  if (path.empty()) {
    return tl::unexpected(WebError(Error{
        ErrorCode::not_found,
        "this result cannot be downloaded: the job did not finish it, or wrote it to a folder"}));
  }
  const std::string name = last_name(path);
  const std::string token = context.access.add_download({.path = path, .name = name});
  return json_response({{"url", "/download/" + token}, {"name", to_path_text(name)}});
}

}  // namespace

void add_job_routes(RouteTable& routes, ServerContext& context) {
  routes.get("/api/jobs", [&](Call&) { return list_jobs(context); });
  routes.get("/api/jobs/*", [&](Call& call) -> Answer {
    const auto job = find_job(context, call);
    if (!job) return tl::unexpected(job.error());
    return json_response({{"job", (*job)->to_json()}});
  });
  routes.post("/api/jobs/*/cancel", [&](Call& call) -> Answer {
    const auto job = find_job(context, call);
    if (!job) return tl::unexpected(job.error());
    if ((*job)->is_handed_over()) {
      return tl::unexpected(WebError(Error{ErrorCode::busy,
                                           "the daemon of the volume does this work, so the job "
                                           "cannot be cancelled: pause the work instead"}));
    }
    (*job)->cancel();
    return json_response({{"job", (*job)->to_json()}});
  });
  routes.remove("/api/jobs/*", [&](Call& call) -> Answer {
    if (const auto gone = context.jobs.forget(call.words.front()); !gone) {
      return tl::unexpected(gone.error());
    }
    return json_response(nlohmann::json::object());
  });
  routes.post("/api/jobs/*/download", [&](Call& call) { return make_download(context, call); });
}

}  // namespace nacre::tools::web
