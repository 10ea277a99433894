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

// A question of the kernel that names an open file, and the call that makes it ask.
struct Question {
  fuse_req_t request;
  InodeNumber inode;
  AskingCall call;
};

// A reader gets attributes that the kernel does not keep, as in keep_asking(), so the next writer
// is still asked.
Result<> answer_reader(Context& context, const Question& question) {
  NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(question.inode));
  const struct stat reply = to_stat(context, attributes);
  context.kernel->forget_attributes(question.inode);
  fuse_reply_attr(question.request, &reply, attributes_timeout);
  return {};
}

// Refuses the question unless a reader asks it. For a file that had holes, readers ask as often as
// writers do: if the call is unknown, it counts as a reader's.
Result<> refuse_asking_writer(Context& context, const Question& question, const Error& error) {
  const bool may_read = question.call.kind == AskingCall::Kind::unknown &&
                        context.written_files.may_have_expired(question.inode);
  if (may_read) return answer_reader(context, question);
  context.write_gate.take_error(question.inode);
  return tl::unexpected(error);
}

// Answers once the volume has the pages that the kernel took before.
Result<> answer_after_appends(Context& context, const Question& question) {
  if (const auto error = context.write_gate.error_of(question.inode)) {
    return refuse_asking_writer(context, question, Error{*error});
  }
  NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(question.inode));
  const struct stat reply = to_stat(context, attributes);
  if (has_little_room(context)) {
    context.kernel->forget_attributes(question.inode);  // before the answer, as in keep_asking()
  } else {
    context.write_gate.open(question.inode);
  }
  fuse_reply_attr(question.request, &reply, attributes_timeout);
  return {};
}

// Whether the volume has room for all bytes of the call, for those of other calls that were
// promised it, and for pages about which the kernel does not ask. Returns the room that the call
// may take.
Result<std::uint64_t> check_room(Context& context, const Question& question) {
  WriteGate& gate = context.write_gate;
  return context.volume->check_write(question.inode, question.call.size_bytes,
                                     gate.kept_bytes() + gate.promised_bytes());
}

// Whether the pages of promised calls, once the volume has them, may leave room for this one.
bool may_wait_for_promised(const Context& context, const Error& error) {
  return error.code == ErrorCode::no_space && context.write_gate.promised_bytes() > 0;
}

void write_out_promised(Context& context, InodeNumber inode) {
  const WriteGate::Range range = context.write_gate.promised_range(inode);
  if (range.is_empty()) return;
  const bool reaches_end = range.end == UINT64_MAX;
  context.kernel->write_out_range(inode, range.begin, reaches_end ? 0 : range.end - range.begin);
  context.write_gate.settle(inode);
}

// Runs on the notifier's thread, so one answer at a time is made, and no room is promised twice.
Result<> answer_with_promise(Context& context, const Question& question) {
  NACRE_ASSIGN(const Attributes before, context.volume->attributes(question.inode));
  write_out_promised(context, question.inode);
  context.kernel->write_out_range(question.inode, before.size, 0);
  if (context.write_gate.error_of(question.inode)) return answer_after_appends(context, question);
  Result<std::uint64_t> room = check_room(context, question);
  if (!room && may_wait_for_promised(context, room.error())) {
    // A promise counts until its pages are here, and as if they lay in as many chunks as possible.
    for (const InodeNumber other : context.write_gate.promised_files())
      write_out_promised(context, other);
    room = check_room(context, question);
  }
  if (!room) return refuse_asking_writer(context, question, room.error());
  const std::uint64_t begin = question.call.offset.value_or(0);
  const bool is_placed = question.call.offset && question.call.size_bytes > 0;
  context.write_gate.promise(
      question.inode,
      {.begin = begin, .end = is_placed ? begin + question.call.size_bytes : UINT64_MAX}, *room);
  return answer_after_appends(context, question);
}

}  // namespace

void note_late_refusal(Context& context, InodeNumber inode, std::uint64_t offset,
                       std::uint64_t size, ErrorCode error) {
  const Result<Attributes> attributes = context.volume->attributes(inode);
  context.untold_refusal = static_cast<std::uint32_t>(error);
  context.write_gate.refuse(inode, error, attributes && offset + size > attributes->size);
  context.kernel->forget_attributes(inode);
  has_little_room(context);  // there is, and other files' writers are to be asked, too
  if (context.refused_pages.note(inode, {offset, offset + size}, error)) begin_drop(context, inode);
}

Result<> check_refused_pages(Context& context, InodeNumber inode) {
  const auto refusal = context.refused_pages.ask(inode);
  if (!refusal) return {};
  if (refusal->is_to_be_dropped) begin_drop(context, inode);
  return fail(refusal->error);
}

// When little room is left, the kernel must ask about files whose attributes it got before, too.
bool has_little_room(Context& context) {
  if (!context.write_gate.is_narrow(*context.volume)) return false;
  if (context.known != nullptr && context.write_gate.take_narrowing()) {
    context.kernel->post([&context] {
      context.known->for_each(
          [&context](InodeNumber inode) { context.kernel->forget_attributes(inode); });
    });
  }
  return true;
}

void ask_from_now_on(Context& context, InodeNumber inode) {
  if (!has_little_room(context)) return;
  if (context.write_gate.close(inode)) context.kernel->forget_attributes(inode);
}

std::uint32_t seconds_for_new_content(Context& context, InodeNumber inode, pid_t process) {
  if (!has_little_room(context)) {
    context.write_gate.leave_ajar(inode);
    if (!context.no_xattr) return attributes_seconds;
    context.written_files.may_expire(inode);
    return 0;
  }
  context.write_gate.close_with_answer(inode, process);
  return 0;
}

bool asks_to_write(Context& context, InodeNumber inode) {
  return context.write_gate.is_closed(inode) || has_little_room(context);
}

Result<> answer_asking_writer(Context& context, fuse_req_t request, fuse_ino_t number) {
  const Question question = {request, InodeNumber{number}, call_of(requester_of(request).process)};
  context.write_gate.close(question.inode);
  if (question.call.kind == AskingCall::Kind::reads) return answer_reader(context, question);
  const bool may_wait = context.transport->may_wait_for_requests();
  const Result<std::uint64_t> room = check_room(context, question);
  if (!room && !(may_wait && may_wait_for_promised(context, room.error()))) {
    return refuse_asking_writer(context, question, room.error());
  }
  if (!may_wait) return answer_after_appends(context, question);
  context.kernel->post([question] {
    serve(question.request, "getattr", question.inode.value,
          [&](Context& answering) -> Result<> { return answer_with_promise(answering, question); });
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

void keep_asking(Context& context, InodeNumber inode, bool is_regular, pid_t process) {
  const bool asks = context.write_gate.is_closed(inode)
                        ? context.write_gate.keeps_closed(inode, process)
                        : is_regular && has_little_room(context);
  if (asks) context.kernel->forget_attributes(inode);
}

}  // namespace nacre::fs
