// SPDX-License-Identifier: Apache-2.0
#include "fs/store/record_reader.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "fs/store/record_batch.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

namespace {

// The slab in which all outputs are to lie; empty if there is none.
MutableByteView common_slab(const PlainMemory& memory, std::span<ReadRequest*> requests) {
  const MutableByteView slab = memory.slab_of(requests.front()->out);
  const auto lies_there = [&](const ReadRequest* request) {
    return request->out.data() >= slab.data() &&
           request->out.data() + request->out.size() <= slab.data() + slab.size();
  };
  return std::ranges::all_of(requests, lies_there) ? slab : MutableByteView();
}

}  // namespace

void RecordReader::read(std::span<ReadRequest> requests) {
  std::vector<ReadRequest*> order(requests.size());
  std::iota(order.begin(), order.end(), requests.data());
  if (order.size() > 1) {
    std::sort(order.begin(), order.end(),
              [](const ReadRequest* a, const ReadRequest* b) { return a->location < b->location; });
  }
  auto work = pool_.take();
  std::span<ReadRequest*> rest(order);
  while (!rest.empty()) {
    std::size_t count = 0;
    std::size_t stored = 0;
    std::size_t plain = 0;
    for (; count < rest.size(); ++count) {
      stored += rest[count]->location.stored_size + read_gap_bytes_max;
      plain += rest[count]->out.size();
      if (stored > pool_.size_bytes() || plain > pool_.size_bytes()) break;
    }
    if (!work) {
      for (ReadRequest* request : rest)
        request->result = tl::unexpected(work.error());
      return;
    }
    if (count == 0 || rest.front()->location.stored_size > record_size_bytes_max_) {
      rest.front()->result = fail(ErrorCode::corrupt, "a row names a record larger than a chunk");
      rest = rest.subspan(1);
      continue;
    }
    read_batch(**work, rest.first(count));
    rest = rest.subspan(count);
  }
  pool_.give_back(std::move(*work));
}

// Reads records of one segment that lie close together, in one call.
Result<> RecordReader::fetch(ReadRequest** first, ReadRequest** last, MutableByteView into) {
  const RecordLocation& begin = (*first)->location;
  NACRE_ASSIGN(auto segment, table_.find(begin.segment));
  NACRE_ASSIGN(auto file, table_.file(*segment));
  NACRE_ASSIGN(auto count, file->read(begin.offset, into));
  for (ReadRequest** request = first; request != last; ++request) {
    const RecordLocation& location = (*request)->location;
    if (location.offset + location.stored_size - begin.offset > count) {
      (*request)->result =
          fail(ErrorCode::missing,
               fmt::format("{} ends before offset {} + {}", segment_path(location.segment),
                           location.offset, location.stored_size));
    }
  }
  return {};
}

void RecordReader::read_batch(Work& work, std::span<ReadRequest*> requests) {
  const MutableByteView slab = common_slab(memory_, requests);
  work.payload.clear();
  work.payload.output = slab.empty() ? work.output.data() : slab.data();
  work.payload.output_size = slab.empty() ? work.output.size() : slab.size();
  std::vector<ReadRequest*> sent;
  std::size_t input_offset = 0;
  std::size_t output_offset = 0;
  for (std::size_t first = 0; first < requests.size();) {
    const RecordLocation& begin = requests[first]->location;
    std::size_t last = first + 1;
    std::uint64_t end = begin.offset + begin.stored_size;
    for (; last < requests.size(); ++last) {
      const RecordLocation& next = requests[last]->location;
      if (next.segment != begin.segment || next.offset < end ||
          next.offset - end > read_gap_bytes_max) {
        break;
      }
      end = next.offset + next.stored_size;
    }
    NACRE_CHECK(end - begin.offset <= work.input.size() - input_offset,
                "records of {} bytes are read into an arena of {} at {}", end - begin.offset,
                work.input.size(), input_offset);
    const MutableByteView into(work.input.data() + input_offset, end - begin.offset);
    const auto fetched = fetch(&requests[first], requests.data() + last, into);
    for (std::size_t i = first; i < last; ++i) {
      ReadRequest& request = *requests[i];
      const RecordLocation& location = request.location;
      const std::size_t at = location.offset - begin.offset;
      if (!fetched) {
        // If the disk cannot read a part, only the record that lies there is lost, not its
        // neighbours.
        const auto alone = last - first == 1 ? fetched
                                             : fetch(&requests[i], &requests[i] + 1,
                                                     into.subspan(at, location.stored_size));
        if (!alone) request.result = tl::unexpected(alone.error());
      }
      if (!request.result) continue;
      const ByteView record = into.subspan(at, location.stored_size);
      const auto header = engine::parse_record_header(record);
      auto key = header ? keys_.find(*header, record) : tl::unexpected(header.error());
      if (!key) {
        request.result = add_context(
            key.error(),
            fmt::format("{} offset {}", segment_path(location.segment), location.offset));
        continue;
      }
      add_unseal(work.payload, **key,
                 {.input_offset = input_offset + at,
                  .input_size = location.stored_size,
                  .output_offset = slab.empty()
                                       ? output_offset
                                       : static_cast<std::size_t>(request.out.data() - slab.data()),
                  .output_capacity = request.out.size()},
                 request.name);
      output_offset += request.out.size();
      request.epoch = header->epoch;
      sent.push_back(&request);
    }
    input_offset += into.size();
    first = last;
  }
  if (sent.empty()) return;
  work.payload.check_bounds();
  engine_.run(work.payload);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const engine::MessageResult& result = work.payload.results[i];
    ReadRequest& request = *sent[i];
    const auto where = [&] {
      return fmt::format("{} offset {}", segment_path(request.location.segment),
                         request.location.offset);
    };
    if (!result.ok) {
      request.result = fail(result.error, fmt::format("{}: {}", where(), result.detail));
    } else if (result.output_size != request.out.size()) {
      request.result =
          fail(ErrorCode::tampered, fmt::format("{}: holds {} bytes where the map says {}", where(),
                                                result.output_size, request.out.size()));
    } else {
      request.codec = result.codec;
      if (slab.empty()) {
        std::copy_n(work.output.data() + work.payload.messages[i].output_offset, result.output_size,
                    request.out.begin());
      }
    }
  }
}

}  // namespace nacre::fs
