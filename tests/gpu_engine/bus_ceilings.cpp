// SPDX-License-Identifier: Apache-2.0
// What the buses of one, two, four and eight devices carry at once, with nothing else running: the
// limit that the host sets to payloads on several devices. A program of its own, for gpu_check.sh.
//
// Page-locked memory, pieces of 16 MiB, 4 GiB a device in the busier direction, medians of five.
// Where both ways differ, the lesser one is paced by the other: piece i leaves when its share of
// the others has arrived.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t piece_size_bytes = 16u << 20;
constexpr int ring_count = 16;  // pieces of memory in each direction
constexpr int piece_count = 256;
constexpr int round_count = 5;

void check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "bus_ceilings: %s: %s\n", doing, cudaGetErrorString(error));
  std::exit(1);
}

struct Lane {
  cudaStream_t stream;
  char* host;
  char* device;
  std::vector<cudaEvent_t> arrived;
};

struct Device {
  int number;
  Lane up, down;
};

Lane make_lane() {
  Lane lane;
  check(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking), "making a stream");
  check(cudaHostAlloc(&lane.host, ring_count * piece_size_bytes, cudaHostAllocPortable),
        "allocating page-locked memory");
  check(cudaMalloc(&lane.device, ring_count * piece_size_bytes), "allocating device memory");
  lane.arrived.resize(piece_count);
  for (cudaEvent_t& event : lane.arrived)
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return lane;
}

// The number of pieces in each direction. The direction with fewer pieces is paced by the other
// one.
struct Mix {
  const char* name;
  int up, down;
};

void copy(Device& device, const Mix& mix) {
  int up = 0, down = 0;
  while (up < mix.up || down < mix.down) {
    const bool is_up = up < mix.up && (mix.down == 0 || up * mix.down <= down * mix.up);
    Lane& lane = is_up ? device.up : device.down;
    const Lane& other = is_up ? device.down : device.up;
    int& sent = is_up ? up : down;
    const int of_other = is_up ? down : up;
    const bool is_lesser = is_up ? mix.up < mix.down : mix.down < mix.up;
    if (is_lesser && of_other > 0)
      check(cudaStreamWaitEvent(lane.stream, other.arrived[of_other - 1], 0), "waiting");
    const std::size_t place = sent % ring_count * piece_size_bytes;
    check(is_up ? cudaMemcpyAsync(lane.device + place, lane.host + place, piece_size_bytes,
                                  cudaMemcpyHostToDevice, lane.stream)
                : cudaMemcpyAsync(lane.host + place, lane.device + place, piece_size_bytes,
                                  cudaMemcpyDeviceToHost, lane.stream),
          "copying");
    check(cudaEventRecord(lane.arrived[sent], lane.stream), "marking");
    ++sent;
  }
  check(cudaStreamSynchronize(device.up.stream), "waiting for copies up");
  check(cudaStreamSynchronize(device.down.stream), "waiting for copies down");
}

// Seconds from all devices' begin to the last one's end.
double run(std::vector<Device>& devices, std::size_t count, const Mix& mix) {
  std::mutex mutex;
  std::condition_variable begun;
  bool go = false;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      check(cudaSetDevice(devices[i].number), "choosing a device");
      {
        std::unique_lock<std::mutex> lock(mutex);
        begun.wait(lock, [&] { return go; });
      }
      copy(devices[i], mix);
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto begin = std::chrono::steady_clock::now();
  {
    std::lock_guard<std::mutex> lock(mutex);
    go = true;
  }
  begun.notify_all();
  for (std::thread& thread : threads)
    thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main() {
  int device_count = 0;
  check(cudaGetDeviceCount(&device_count), "counting devices");
  std::vector<Device> devices;
  for (int number = 0; number < device_count; ++number) {
    check(cudaSetDevice(number), "choosing a device");
    devices.push_back({number, make_lane(), make_lane()});
  }
  // The ratio of the corpus under lz77 is 2.4.
  const Mix mixes[] = {{"up", piece_count, 0},
                       {"down", 0, piece_count},
                       {"both ways alike", piece_count, piece_count},
                       {"as seal: 2.4 up for one down", piece_count, piece_count * 5 / 12},
                       {"as unseal: 2.4 down for one up", piece_count * 5 / 12, piece_count}};
  std::printf("%-32s", "GB/s of the busier direction");
  for (int count = 1; count <= device_count; count *= 2)
    std::printf(" %6d dev.", count);
  std::printf("\n");
  for (const Mix& mix : mixes) {
    std::printf("%-32s", mix.name);
    double of_one = 0;
    for (int count = 1; count <= device_count; count *= 2) {
      std::vector<double> seconds;
      for (int round = 0; round < round_count; ++round)
        seconds.push_back(run(devices, count, mix));
      std::sort(seconds.begin(), seconds.end());
      const double rate =
          double(count) * piece_count * piece_size_bytes / seconds[round_count / 2] / 1e9;
      if (count == 1) of_one = rate;
      std::printf(" %6.1f", rate);
      if (count > 1) std::printf(" %.2fx", rate / of_one);
    }
    std::printf("\n");
  }
  return 0;
}
