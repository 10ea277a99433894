// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/late_refusal.h"

#include <new>
#include <string>
#include <string_view>

#include "fs/fuse/asking_call.h"

namespace nacre::fs {

namespace {

// The last known place of the inode: its directory and its name there.
struct Place {
  InodeNumber directory;
  std::string name;
};

Result<Place> place_of(Volume& volume, InodeNumber inode) {
  const std::string path = volume.path_of(inode);
  if (!path.starts_with('/') || path.size() < 2) return fail(ErrorCode::not_found);
  Place place{.directory = metadata::root_inode, .name = {}};
  std::string_view rest = std::string_view(path).substr(1);
  for (;;) {
    const std::size_t end = rest.find('/');
    if (end == std::string_view::npos) break;
    NACRE_ASSIGN(const Attributes found, volume.lookup(place.directory, rest.substr(0, end)));
    volume.forget(found.inode, 1);
    place.directory = found.inode;
    rest.remove_prefix(end + 1);
  }
  place.name = rest;
  return place;
}

// Runs on the notifier's thread. If the volume refuses the pages again, the next round drops them.
void drop_refused_pages(Context& context, InodeNumber inode) {
  for (;;) {
    const std::vector<RefusedPages::Range> ranges = context.refused_pages.take(inode);
    if (ranges.empty()) break;
    for (const auto& [begin, end] : ranges)
      context.kernel->write_out_range(inode, begin, end - begin);
  }
  // The kernel believes its own size of a file that it caches. It takes the volume's size with the
  // inode.
  if (!context.write_gate.names_more(inode)) return;
  if (const Result<Place> place = place_of(*context.volume, inode)) {
    context.kernel->forget_name(place->directory, place->name);
  }
}

void begin_drop(Context& context, InodeNumber inode) {
  try {
    context.kernel->post([&context, inode] { drop_refused_pages(context, inode); });
  } catch (const std::bad_alloc&) {
    context.refused_pages.give_up(inode);  // the next fsync begins the drop
    throw;
  }
}

// Refuses a question that names an open file, unless a reader asks it. A reader gets attributes
// that the kernel does not keep, as in keep_asking(), so the next writer is still asked. For a file
// that had holes, readers ask as often as writers do: if the call is unknown, it counts as a
// reader's.
Result<> refuse_asking_writer(Context& context, fuse_req_t request, InodeNumber inode,
                              const Error& error) {
  const AskingCall call = call_of(requester_of(request).process);
  const bool may_read =
      call == AskingCall::unknown && context.written_files.may_have_expired(inode);
  if (call != AskingCall::reads && !may_read) {
    context.write_gate.take_error(inode);
    return tl::unexpected(error);
  }
  NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(inode));
  const struct stat reply = to_stat(context, attributes);
  context.kernel->forget_attributes(inode);
  fuse_reply_attr(request, &reply, attributes_timeout);
  return {};
}

// Answers once the pages behind the volume's end are written out.
Result<> answer_after_appends(Context& context, fuse_req_t request, fuse_ino_t number) {
  const InodeNumber inode{number};
  if (const auto error = context.write_gate.error_of(inode)) {
    return refuse_asking_writer(context, request, inode, Error{*error});
  }
  NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(inode));
  const struct stat reply = to_stat(context, attributes);
  if (context.write_gate.is_narrow(*context.volume)) {
    context.kernel->forget_attributes(inode);  // before the answer, as in keep_asking()
  } else {
    context.write_gate.open(inode);
  }
  fuse_reply_attr(request, &reply, attributes_timeout);
  return {};
}

}  // namespace

void note_late_refusal(Context& context, InodeNumber inode, std::uint64_t offset,
                       std::uint64_t size, ErrorCode error) {
  const Result<Attributes> attributes = context.volume->attributes(inode);
  context.untold_refusal = static_cast<std::uint32_t>(error);
  context.write_gate.refuse(inode, error, attributes && offset + size > attributes->size);
  context.kernel->forget_attributes(inode);
  if (context.refused_pages.note(inode, {offset, offset + size}, error)) begin_drop(context, inode);
}

Result<> check_refused_pages(Context& context, InodeNumber inode) {
  const auto refusal = context.refused_pages.ask(inode);
  if (!refusal) return {};
  if (refusal->is_to_be_dropped) begin_drop(context, inode);
  return fail(refusal->error);
}

void ask_from_now_on(Context& context, InodeNumber inode) {
  if (!context.write_gate.is_narrow(*context.volume)) return;
  if (context.write_gate.close(inode)) context.kernel->forget_attributes(inode);
}

std::uint32_t seconds_for_new_content(Context& context, InodeNumber inode, pid_t process) {
  if (!context.write_gate.is_narrow(*context.volume)) {
    context.write_gate.leave_ajar(inode);
    if (!context.no_xattr) return attributes_seconds;
    context.written_files.may_expire(inode);
    return 0;
  }
  context.write_gate.close_with_answer(inode, process);
  return 0;
}

bool asks_to_write(Context& context, InodeNumber inode) {
  return context.write_gate.is_closed(inode) || context.write_gate.is_narrow(*context.volume);
}

Result<> answer_asking_writer(Context& context, fuse_req_t request, fuse_ino_t number) {
  const InodeNumber inode{number};
  context.write_gate.close(inode);
  if (Result<> checked = context.volume->check_write(inode, context.write_gate.kept_bytes());
      !checked) {
    return refuse_asking_writer(context, request, inode, checked.error());
  }
  if (!context.transport->may_wait_for_requests()) {
    return answer_after_appends(context, request, number);
  }
  context.kernel->post([request, number] {
    serve(request, "getattr", number, [&](Context& answering) -> Result<> {
      NACRE_ASSIGN(const Attributes before, answering.volume->attributes(InodeNumber{number}));
      answering.kernel->write_out_range(InodeNumber{number}, before.size, 0);
      return answer_after_appends(answering, request, number);
    });
  });
  return {};
}

void let_size_go(Context& context, InodeNumber inode, InodeNumber directory,
                 std::string_view name) {
  if (!context.write_gate.names_more(inode)) return;
  context.kernel->post([kernel = context.kernel, directory, name = std::string(name)] {
    kernel->forget_name(directory, name);
  });
}

void keep_asking(Context& context, InodeNumber inode, pid_t process) {
  if (context.write_gate.keeps_closed(inode, process)) context.kernel->forget_attributes(inode);
}

}  // namespace nacre::fs
