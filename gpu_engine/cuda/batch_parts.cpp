// SPDX-License-Identifier: Apache-2.0
// Copies inputs and outputs of batches, and uploads their keys.
#include "gpu_engine/cuda/batch_parts.h"

#include <algorithm>
#include <numeric>

#include "gpu_engine/cuda/kernels/aead.h"
#include "gpu_engine/cuda/kernels/crypt.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::uint64_t alignment = 16;
// Ranges whose gap is at most this many bytes are copied as one run.
constexpr std::uint64_t gap_size_max = 128;

struct InputRun {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t device_offset;
};

// The indexes of the ranges, sorted by offset.
std::vector<std::uint32_t> order_by_offset(const std::vector<InputRange>& ranges) {
  std::vector<std::uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return ranges[i].offset; });
  return order;
}

// The runs (contiguous parts) of the payload's input that are copied to the device.
class InputRuns {
 public:
  explicit InputRuns(const std::vector<InputRange>& ranges) : ranges_(ranges) {
    // In most payloads the ranges are in order already.
    std::uint64_t last = 0;
    bool is_in_order = true;
    for (const InputRange& range : ranges) {
      if (range.size == 0) continue;
      is_in_order = range.offset >= last;
      if (!is_in_order) break;
      last = range.offset;
      add(range);
    }
    if (!is_in_order) {
      order_ = order_by_offset(ranges);
      runs_.clear();
      for (const std::uint32_t i : order_) {
        if (ranges[i].size > 0) add(ranges[i]);
      }
    }
    std::uint64_t at = 0;
    for (InputRun& run : runs_) {
      run.device_offset = round_up(at, alignment) + run.begin % alignment;
      at = run.device_offset + run.end - run.begin;
    }
  }
  const std::vector<InputRun>& get() const { return runs_; }
  // The address of each range, if the copies begin at `device`.
  std::vector<const Byte*> places(const Byte* device) const {
    std::vector<const Byte*> places(ranges_.size(), device);
    std::size_t at = 0;
    for (std::size_t nth = 0; nth < ranges_.size(); ++nth) {
      const std::size_t i = order_.empty() ? nth : order_[nth];
      const InputRange& range = ranges_[i];
      if (range.size == 0) continue;
      while (range.offset >= runs_[at].end)
        ++at;
      places[i] = device + runs_[at].device_offset + (range.offset - runs_[at].begin);
    }
    return places;
  }

 private:
  void add(const InputRange& range) {
    if (!runs_.empty() && range.offset <= runs_.back().end + gap_size_max) {
      runs_.back().end = std::max(runs_.back().end, range.offset + range.size);
    } else {
      runs_.push_back({range.offset, range.offset + range.size, 0});
    }
  }

  const std::vector<InputRange>& ranges_;
  std::vector<std::uint32_t> order_;  // empty: the ranges are in order already
  std::vector<InputRun> runs_;
};

// The runs of outputs that are copied from the device. Their destination is the payload's output,
// or staging memory if it is not nullptr; there outputs follow each other, each aligned to 16.
class OutputRuns {
 public:
  OutputRuns(const BatchRun& run, const std::vector<const Byte*>& from,
             const std::vector<std::uint32_t>& sizes, Byte* staging) {
    for (std::size_t i = 0; i < run.count(); ++i) {
      const std::uint32_t size = sizes[i];
      if (size == 0) continue;
      Byte* to = staging;
      if (staging == nullptr)
        to = run.payload.output + run.message(i).output_offset;
      else
        staging += round_up(std::uint64_t{size}, alignment);
      if (!runs_.empty() && runs_.back().from + runs_.back().size == from[i] &&
          runs_.back().to + runs_.back().size == to) {
        runs_.back().size += size;
      } else {
        runs_.push_back({.from = from[i], .to = to, .size = size});
      }
    }
  }
  const std::vector<BusTask>& get() const { return runs_; }

 private:
  std::vector<BusTask> runs_;
};

// Copies runs by the device's copy engine, one call for each.
Result<> copy_runs(const BatchRun& run, const std::vector<BusTask>& runs) {
  for (const BusTask& r : runs)
    NACRE_TRY(
        check(cudaMemcpyAsync(r.to, r.from, r.size, cudaMemcpyDeviceToHost, run.slot.stream()),
              "copying a batch from the device"));
  return {};
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

// Uploads the tasks of a kernel that copies ranges; each is cut into parts of bus_task_size_bytes.
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
  // The upload memory holds inputs of the batch's kernels: it can be reused only after they end.
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
  const InputRuns input(ranges);
  const std::vector<InputRun>& runs = input.get();
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

  return input.places(device);
}

Result<std::vector<const Byte*>> copy_in_messages(const BatchRun& run) {
  std::vector<InputRange> ranges(run.count());
  for (std::size_t i = 0; i < ranges.size(); ++i)
    ranges[i] = {run.message(i).input_offset, run.message(i).input_size};
  return copy_in(run, ranges);
}

Result<std::vector<Byte*>> take_places(const BatchRun& run,
                                       const std::vector<std::uint32_t>& sizes) {
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  NACRE_ASSIGN(Byte * place, run.slot.take_row(sizes.size(), total));
  std::vector<Byte*> places(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    places[i] = place;
    place = Slot::next_place(place + sizes[i]);
  }
  return places;
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
  // If the payload has one key, one message is enough to name it.
  const std::size_t asked_count = key_table.size() == 1 ? 1 : run.count();
  for (std::size_t i = 0; i < asked_count; ++i) {
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

Result<StagedOutputs> StagedOutputs::add(const BatchRun& run, const std::vector<const Byte*>& from,
                                         const std::vector<std::uint32_t>& sizes) {
  StagedOutputs staged;
  std::uint64_t total = 0;
  std::size_t run_count = 0;
  const Byte* end = nullptr;
  std::uint64_t output_end = 0;
  bool is_in_order = true;
  for (std::size_t i = 0; i < run.count(); ++i) {
    if (sizes[i] == 0) continue;
    if (staged.first_ == nullptr) staged.first_ = from[i];
    const std::uint64_t offset = run.message(i).output_offset;
    is_in_order = is_in_order && (end == nullptr || from[i] >= end);
    run_count += end != from[i] || output_end != offset;
    total += sizes[i];
    end = from[i] + sizes[i];
    output_end = offset + sizes[i];
  }
  // The copy includes what lies between the outputs, so that must not be too much.
  if (!is_in_order || run_count <= copy_run_count_max ||
      total > run_count * staged_size_bytes_max ||
      static_cast<std::uint64_t>(end - staged.first_) > 4 * total)
    return StagedOutputs();
  const auto size = static_cast<std::size_t>(end - staged.first_);
  NACRE_ASSIGN(Byte * staging, run.slot.staging_out(size));
  staged.staging_ = staging;
  NACRE_TRY(check(
      cudaMemcpyAsync(staging, staged.first_, size, cudaMemcpyDeviceToHost, run.slot.stream()),
      "copying a batch from the device"));
  return staged;
}

void StagedOutputs::copy_out(const BatchRun& run, const std::vector<const Byte*>& from,
                             const std::vector<std::uint32_t>& sizes) const {
  for (std::size_t i = 0; i < run.count(); ++i) {
    if (sizes[i] == 0) continue;
    std::copy_n(staging_ + (from[i] - first_), sizes[i],
                run.payload.output + run.message(i).output_offset);
  }
}

Result<> copy_out(const BatchRun& run, const std::vector<const Byte*>& from,
                  const std::vector<std::uint32_t>& sizes, const std::function<void()>& meanwhile) {
  const auto wait = [&]() -> Result<> {
    if (meanwhile != nullptr) meanwhile();
    return run.slot.wait();
  };
  NACRE_ASSIGN(const StagedOutputs short_ones, StagedOutputs::add(run, from, sizes));
  if (short_ones) {
    NACRE_TRY(wait());
    short_ones.copy_out(run, from, sizes);
    return {};
  }
  Byte* staging = nullptr;
  if (!run.output_pinned) {
    std::uint64_t staged_size = 0;
    for (const std::uint32_t size : sizes)
      staged_size += round_up(std::uint64_t{size}, alignment);
    if (staged_size > 0) {
      NACRE_ASSIGN(staging, run.slot.staging_out(staged_size));
    }
  }
  const OutputRuns runs(run, from, sizes, staging);
  if (runs.get().size() <= copy_run_count_max) {
    NACRE_TRY(copy_runs(run, runs.get()));
    NACRE_TRY(wait());
  } else {
    if (meanwhile != nullptr) meanwhile();
    NACRE_TRY(scatter(run, runs.get()));
  }
  if (run.output_pinned) return {};
  for (std::size_t i = 0; i < run.count(); ++i) {
    if (sizes[i] == 0) continue;
    std::copy_n(staging, sizes[i], run.payload.output + run.message(i).output_offset);
    staging += round_up(std::uint64_t{sizes[i]}, alignment);
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
