// SPDX-License-Identifier: Apache-2.0
// Reads directories. The volume gives each entry a cookie from which reading goes on. An entry that
// does not fit into the reply any more is left for the next request, and never split.
#include <array>
#include <cstring>

#include "fs/fuse/late_refusal.h"
#include "fs/fuse/operations.h"
#include "fs/fuse/page_buffer.h"

namespace nacre::fs {

namespace {

using metadata::InodeNumber;

// An inode that a listing hands out with its attributes.
struct LookedUp {
  InodeNumber inode;
  bool is_regular = false;
};

// A reply that is being made.
class EntryList {
 public:
  EntryList(fuse_req_t request, std::size_t size_max) : request_(request), buffer_(reply_buffer()) {
    if (buffer_.size() > size_max) buffer_ = buffer_.first(size_max);
  }
  bool has_memory() const { return buffer_.data() != nullptr; }
  ByteView bytes() const { return buffer_.first(used_); }
  // Inodes that are handed out with their attributes. Each counts as looked up.
  const std::vector<LookedUp>& looked_up() const { return looked_up_; }

  // Returns false if the entry does not fit.
  bool add(const DirectoryEntry& entry) {
    struct stat attributes = {};
    attributes.st_ino = entry.inode.value;
    attributes.st_mode = static_cast<mode_t>(entry.type) << 12;
    const std::size_t size = fuse_add_direntry(request_, position(), room(), terminated(entry.name),
                                               &attributes, static_cast<off_t>(entry.cookie));
    return advance(size);
  }

  bool add_with_attributes(const DirectoryEntry& entry) {
    fuse_entry_param parameters = {};
    if (entry.attributes != nullptr) {
      parameters = to_entry(context_of(request_), *entry.attributes);
    } else {
      // Inode 0 means a name without attributes, which does not count as looked up.
      parameters.attr.st_ino = entry.inode.value;
      parameters.attr.st_mode = static_cast<mode_t>(entry.type) << 12;
    }
    const std::size_t size =
        fuse_add_direntry_plus(request_, position(), room(), terminated(entry.name), &parameters,
                               static_cast<off_t>(entry.cookie));
    if (size > room()) return false;
    if (entry.attributes != nullptr) {
      looked_up_.push_back({entry.inode, S_ISREG(entry.attributes->mode)});
    }
    return advance(size);
  }

 private:
  char* position() { return reinterpret_cast<char*>(buffer_.data()) + used_; }
  std::size_t room() const { return buffer_.size() - used_; }
  bool advance(std::size_t size) {
    if (size > room()) return false;
    used_ += size;
    return true;
  }
  const char* terminated(std::string_view name) {
    const std::size_t size = std::min(name.size(), name_.size() - 1);
    std::memcpy(name_.data(), name.data(), size);
    name_[size] = '\0';
    return name_.data();
  }

  fuse_req_t request_;
  MutableByteView buffer_;
  std::size_t used_ = 0;
  std::array<char, metadata::name_size_bytes_max + 1> name_ = {};
  std::vector<LookedUp> looked_up_;
};

// Drops the pages of a listing on a thread that serves no request. A process that copies out of
// them into a mapping of a file in this mount waits for a request, with the page locked.
void answer_end_of_overtaken(Context& context, fuse_req_t request, std::string_view name,
                             fuse_ino_t inode) {
  context.kernel->post([request, name, inode] {
    serve(request, name, inode, [&](Context& answering) -> Result<> {
      answering.kernel->write_out(InodeNumber{inode});
      fuse_reply_buf(request, nullptr, 0);
      return {};
    });
  });
}

void read_entries(fuse_req_t request, std::string_view name, fuse_ino_t inode, std::size_t size,
                  off_t offset, bool with_attributes) {
  serve(request, name, inode, [&](Context& context) -> Result<> {
    EntryList list(request, size);
    if (!list.has_memory()) return fail(ErrorCode::out_of_memory);
    const pid_t process = requester_of(request).process;
    context.listings.give(InodeNumber{inode}, process, offset == 0);
    const auto take = [&](const DirectoryEntry& entry) {
      return with_attributes ? list.add_with_attributes(entry) : list.add(entry);
    };
    Result<> result = context.volume->read_directory(
        InodeNumber{inode}, static_cast<std::uint64_t>(offset), with_attributes, take);
    // Entries that were read before the error are an answer. The error comes again with the next
    // request.
    if (!result && list.bytes().empty()) return result;
    const ByteView bytes = list.bytes();
    if (bytes.empty() && context.listings.end(InodeNumber{inode}, process)) {
      answer_end_of_overtaken(context, request, name, inode);
      return {};
    }
    for (const auto& [looked_up, is_regular] : list.looked_up()) {
      keep_asking(context, looked_up, is_regular, process);
      note_known(context, looked_up);
    }
    if (fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), bytes.size()) != 0) {
      for (const auto& [looked_up, is_regular] : list.looked_up())
        context.volume->forget(looked_up, 1);
    }
    if (with_attributes) context.volume->go_on_listing();
    return {};
  });
}

void on_readdir(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset,
                fuse_file_info*) {
  read_entries(request, "readdir", inode, size, offset, false);
}

void on_readdirplus(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset,
                    fuse_file_info*) {
  read_entries(request, "readdirplus", inode, size, offset, true);
}

void on_opendir(fuse_req_t request, fuse_ino_t, fuse_file_info*) {
  fuse_reply_err(request, ENOSYS);  // from now on the kernel opens directories by itself
}

}  // namespace

void add_directory_operations(fuse_lowlevel_ops& operations) {
  operations.opendir = on_opendir;
  operations.readdir = on_readdir;
  operations.readdirplus = on_readdirplus;
}

}  // namespace nacre::fs
