// SPDX-License-Identifier: Apache-2.0
// Inputs, keys and outputs of batches; see the header.
#include "gpu_engine/cuda/batch_parts.h"

#include <algorithm>
#include <numeric>

#include "gpu_engine/cuda/kernels/aead.h"
#include "gpu_engine/cuda/kernels/crypt.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::uint64_t alignment = 16;
// Runs this close are copied as one.
constexpr std::uint64_t gap_size_max = 128;

struct InputRun {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t device_offset;
};

// The places of ranges by their offsets; as they are, in most payloads. Empty ones may lie
// anywhere.
class OffsetOrder {
 public:
  explicit OffsetOrder(const std::vector<InputRange>& ranges) : count_(ranges.size()) {
    bool is_in_order = true;
    std::uint64_t last = 0;
    for (const InputRange& range : ranges) {
      if (range.size == 0) continue;
      is_in_order &= range.offset >= last;
      last = range.offset;
    }
    if (is_in_order) return;
    order_.resize(ranges.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::sort(order_, {}, [&](std::uint32_t i) { return ranges[i].offset; });
  }
  std::size_t count() const { return count_; }
  std::size_t operator[](std::size_t nth) const { return order_.empty() ? nth : order_[nth]; }

 private:
  std::size_t count_;
  std::vector<std::uint32_t> order_;  // empty: as they are
};

std::vector<InputRun> find_runs(const std::vector<InputRange>& ranges, const OffsetOrder& order) {
  std::vector<InputRun> runs;
  for (std::size_t nth = 0; nth < order.count(); ++nth) {
    const InputRange& range = ranges[order[nth]];
    if (range.size == 0) continue;
    if (!runs.empty() && range.offset <= runs.back().end + gap_size_max) {
      runs.back().end = std::max(runs.back().end, range.offset + range.size);
    } else {
      runs.push_back({range.offset, range.offset + range.size, 0});
    }
  }
  std::uint64_t at = 0;
  for (InputRun& run : runs) {
    run.device_offset = round_up(at, alignment) + run.begin % alignment;
    at = run.device_offset + run.end - run.begin;
  }
  return runs;
}

std::vector<BusTask> join_neighbours(const std::vector<BusTask>& outputs) {
  std::vector<BusTask> runs;
  for (const BusTask& output : outputs) {
    if (!runs.empty() && runs.back().from + runs.back().size == output.from &&
        runs.back().to + runs.back().size == output.to) {
      runs.back().size += output.size;
    } else {
      runs.push_back(output);
    }
  }
  return runs;
}

// By the copy engine.
Result<> copy_runs(const BatchRun& run, const std::vector<BusTask>& runs) {
  for (const BusTask& r : runs)
    NACRE_TRY(
        check(cudaMemcpyAsync(r.to, r.from, r.size, cudaMemcpyDeviceToHost, run.slot.stream()),
              "copying a batch from the device"));
  return run.slot.wait();
}

class ScatterPass {
 public:
  explicit ScatterPass(ScatterGate& gate) : gate_(gate) { gate_.acquire(); }
  ~ScatterPass() { gate_.release(); }
  ScatterPass(const ScatterPass&) = delete;
  ScatterPass& operator=(const ScatterPass&) = delete;

 private:
  ScatterGate& gate_;
};

// Tasks for a kernel, which takes scattered ranges in parts of a size; uploaded.
Result<Mirrored<BusTask>> upload_in_parts(const BatchRun& run, const std::vector<BusTask>& ranges) {
  std::size_t count = 0;
  for (const BusTask& range : ranges)
    count += (range.size + bus_task_size_bytes - 1) / bus_task_size_bytes;
  NACRE_ASSIGN(const Mirrored<BusTask> tasks, run.slot.add_upload<BusTask>(count));
  std::size_t at = 0;
  for (const BusTask& range : ranges) {
    for (std::uint64_t offset = 0; offset < range.size; offset += bus_task_size_bytes)
      tasks.host[at++] = {
          .from = range.from + offset,
          .to = range.to + offset,
          .size = std::min<std::uint64_t>(range.size - offset, bus_task_size_bytes)};
  }
  NACRE_TRY(run.slot.upload());
  return tasks;
}

Result<> scatter(const BatchRun& run, const std::vector<BusTask>& outputs) {
  // What the batch's kernels read must not be overwritten under them.
  NACRE_TRY(run.slot.wait());
  run.slot.begin_upload();
  const ScatterPass pass(run.scatter_gate);
  NACRE_ASSIGN(const Mirrored<BusTask> tasks, upload_in_parts(run, outputs));
  NACRE_TRY(check(scatter_to_host(tasks.device, static_cast<std::uint32_t>(tasks.host.size()),
                                  run.slot.stream()),
                  "copying a batch from the device"));
  return run.slot.wait();
}

Result<> gather(const BatchRun& run, Byte* device, const std::vector<InputRun>& runs) {
  std::vector<BusTask> ranges;
  ranges.reserve(runs.size());
  for (const InputRun& r : runs)
    ranges.push_back({.from = run.payload.input + r.begin,
                      .to = device + r.device_offset,
                      .size = r.end - r.begin});
  NACRE_ASSIGN(const Mirrored<BusTask> tasks, upload_in_parts(run, ranges));
  std::uint64_t total_bytes = 0;
  for (const BusTask& task : tasks.host)
    total_bytes += task.size;
  return check(gather_from_host(tasks.device, static_cast<std::uint32_t>(tasks.host.size()),
                                total_bytes, run.slot.stream()),
               "copying a batch to the device");
}

KeyDirections directions_of(const BatchKind& kind) {
  const bool encrypts_alone = kind.form == KeyForm::block_cipher
                                  ? kind.direction == CryptDirection::encrypt ||
                                        kind.mode == CryptMode::ctr || kind.mode == CryptMode::ofb
                                  : kind.form != KeyForm::cbc_hmac;
  return encrypts_alone ? KeyDirections::encrypt : KeyDirections::both;
}

Result<> copy_to_device(const BatchRun& run, Byte* to, const Byte* from, std::uint64_t size) {
  return check(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, run.slot.stream()),
               "copying a batch to the device");
}

}  // namespace

Result<std::vector<const Byte*>> copy_in(const BatchRun& run,
                                         const std::vector<InputRange>& ranges) {
  const OffsetOrder order(ranges);
  const std::vector<InputRun> runs = find_runs(ranges, order);
  const std::uint64_t size =
      runs.empty() ? 0 : runs.back().device_offset + runs.back().end - runs.back().begin;
  NACRE_ASSIGN(Byte * device, run.slot.take_bytes(size + alignment));
  if (run.input_pinned && runs.size() <= copy_run_count_max) {
    for (const InputRun& r : runs)
      NACRE_TRY(copy_to_device(run, device + r.device_offset, run.payload.input + r.begin,
                               r.end - r.begin));
  } else if (run.input_pinned) {
    NACRE_TRY(gather(run, device, runs));
  } else if (size > 0) {
    NACRE_ASSIGN(Byte * staging, run.slot.staging_in(size));
    for (const InputRun& r : runs)
      std::copy_n(run.payload.input + r.begin, r.end - r.begin, staging + r.device_offset);
    NACRE_TRY(copy_to_device(run, device, staging, size));
  }

  std::vector<const Byte*> places(ranges.size(), device);
  std::size_t at = 0;
  for (std::size_t nth = 0; nth < order.count(); ++nth) {
    const std::size_t i = order[nth];
    if (ranges[i].size == 0) continue;
    while (ranges[i].offset >= runs[at].end)
      ++at;
    places[i] = device + runs[at].device_offset + (ranges[i].offset - runs[at].begin);
  }
  return places;
}

Result<std::vector<const Byte*>> copy_in_messages(const BatchRun& run) {
  std::vector<InputRange> ranges(run.count());
  for (std::size_t i = 0; i < ranges.size(); ++i)
    ranges[i] = {run.message(i).input_offset, run.message(i).input_size};
  return copy_in(run, ranges);
}

Result<BatchKeys> BatchKeys::add(const BatchRun& run) {
  const std::vector<Payload::Key>& key_table = run.payload.key_table;
  BatchKeys keys;
  keys.places_.assign(key_table.size(), UINT32_MAX);
  std::vector<std::uint32_t> named;
  const auto name = [&](std::uint32_t index) {
    if (keys.places_[index] != UINT32_MAX) return;
    keys.places_[index] = static_cast<std::uint32_t>(named.size());
    named.push_back(index);
  };
  for (std::size_t i = 0; i < run.count(); ++i) {
    name(run.message(i).key_index);
    if (run.batch.kind.operation == Operation::reseal) name(run.message(i).new_key_index);
  }
  NACRE_ASSIGN(keys.raw_, run.slot.add_upload<RawKey>(named.size()));
  bool any_suite = false;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Payload::Key& key = key_table[named[i]];
    const ByteView bytes = run.payload.keys.view().subspan(key.offset, key.size);
    const bool is_suite = key.use.kind == KeyKind::suite;
    any_suite |= is_suite;
    RawKey& raw = keys.raw_.host[i];
    std::copy(bytes.begin(), bytes.end(), raw.bytes);
    raw.cipher_key_size = static_cast<std::uint32_t>(
        key_size_bytes(is_suite ? block_cipher(key.use.suite) : key.use.cipher));
    raw.form = is_suite ? form_of(key.use.suite) : KeyForm::block_cipher;
  }
  keys.table_.family = run.batch.kind.family;
  if (keys.table_.family == CipherFamily::aes) {
    NACRE_ASSIGN(keys.table_.ciphers,
                 run.slot.take<CipherKeyGroup>(cipher_key_group_count(named.size())));
  } else {
    NACRE_ASSIGN(keys.table_.des, run.slot.take<DesKey>(named.size()));
  }
  keys.directions_ = directions_of(run.batch.kind);
  if (any_suite) {
    NACRE_ASSIGN(keys.table_.suites, run.slot.take<ExpandedSuiteKey>(named.size()));
  }
  return keys;
}

Result<> BatchKeys::expand(const BatchRun& run) const {
  return check(expand_keys(raw_.device, static_cast<std::uint32_t>(raw_.host.size()), directions_,
                           table_, run.slot.stream()),
               "expanding keys");
}

Result<> copy_out(const BatchRun& run, const std::vector<const Byte*>& from,
                  const std::vector<std::uint32_t>& sizes) {
  std::vector<BusTask> outputs;
  outputs.reserve(run.count());
  std::uint64_t staged = 0;
  for (std::size_t i = 0; i < run.count(); ++i) {
    if (sizes[i] == 0) continue;
    outputs.push_back({.from = from[i],
                       .to = run.payload.output + run.message(i).output_offset,
                       .size = sizes[i]});
    staged += round_up(sizes[i], alignment);
  }
  if (outputs.empty()) return run.slot.wait();
  if (!run.output_pinned) {
    NACRE_ASSIGN(Byte * staging, run.slot.staging_out(staged));
    for (BusTask& output : outputs) {
      output.to = staging;
      staging += round_up(output.size, alignment);
    }
  }
  const std::vector<BusTask> runs = join_neighbours(outputs);
  NACRE_TRY(runs.size() <= copy_run_count_max ? copy_runs(run, runs) : scatter(run, outputs));
  if (run.output_pinned) return {};
  auto staged_output = outputs.begin();
  for (std::size_t i = 0; i < run.count(); ++i) {
    if (sizes[i] == 0) continue;
    std::copy_n(staged_output->to, sizes[i], run.payload.output + run.message(i).output_offset);
    ++staged_output;
  }
  return {};
}

Result<Workspace> take_workspace(const BatchRun& run, std::uint64_t total_bytes) {
  const std::uint32_t count = run.count();
  const std::size_t size =
      std::max({aead_workspace_size(count, total_bytes), crypt_workspace_size(count, total_bytes),
                checksum_workspace_size(count, total_bytes)});
  Workspace workspace = {.total_bytes = total_bytes};
  NACRE_ASSIGN(workspace.data, run.slot.take_bytes(size));
  return workspace;
}

}  // namespace nacre::engine::cuda
