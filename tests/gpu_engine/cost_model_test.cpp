// SPDX-License-Identifier: Apache-2.0
// How work is dealt out between two backends of known cost, and the file that keeps the costs.
#include "gpu_engine/plan/cost_model.h"

#include <gtest/gtest.h>

#include <fstream>

#include "gpu_engine/cpu/cpu_backend.h"
#include "tests/support/temporary_directory.h"

namespace nacre::engine {
namespace {

constexpr double modelled_megabyte = 1 << 20;
constexpr double modelled_chunk = 64 << 10;
constexpr WorkClass modelled_seal = {WorkKind::seal, Codec::lz77};
constexpr WorkClass modelled_unseal = {WorkKind::unseal, Codec::lz77};
constexpr WorkClass modelled_crypt = {WorkKind::crypt};

// A backend that needs latency_ns for a payload, and ns_per_byte for each of its bytes.
CostModel::Costs linear_costs(double latency_ns, double ns_per_byte) {
  CostModel::Costs costs;
  for (auto& of_class : costs) {
    for (std::size_t i = 0; i < CostModel::size_count; ++i)
      of_class[i] = latency_ns + ns_per_byte * static_cast<double>(CostModel::sizes[i]);
  }
  return costs;
}

// The same of one class alone.
void set_line(CostModel::Costs& costs, WorkClass work, double latency_ns, double ns_per_byte) {
  costs[index_of(work)] = linear_costs(latency_ns, ns_per_byte)[index_of(work)];
}

// The bytes that the device gets of a payload of chunks.
std::uint64_t share_of(const CostModel& model, WorkClass work, std::uint64_t bytes,
                       double cuda_load = 1, double cpu_backlog_ns = 0,
                       double cuda_backlog_ns = 0) {
  return model.cuda_share({.work_class = work, .bytes = bytes, .longest = 64 << 10}, cuda_load,
                          cpu_backlog_ns, cuda_backlog_ns);
}

const WorkClasses all_split = WorkClasses().set();

TEST(CostModel, interpolates_and_goes_on_as_it_ended) {
  const CostModel model(linear_costs(0, 1), linear_costs(3e6, 0.1), all_split);
  for (const double size :
       {2 * modelled_megabyte, 10 * modelled_megabyte, 1000 * modelled_megabyte}) {
    EXPECT_NEAR(model.cpu_ns(modelled_unseal, size, modelled_chunk), size, size / 100);
    EXPECT_NEAR(model.cuda_ns(modelled_unseal, size, modelled_chunk), 3e6 + size / 10, size / 100);
  }
  EXPECT_EQ(model.cpu_ns(modelled_unseal, 0, modelled_chunk), 0);
}

TEST(CostModel, knows_that_a_message_is_one_threads) {
  constexpr double first = 1u << 20;
  const CostModel model(linear_costs(0, 1), linear_costs(3e6, 0.1), all_split, 16);
  EXPECT_EQ(model.cpu_ns(modelled_unseal, modelled_chunk, modelled_chunk), first)
      << "as many as threads take as long";
  EXPECT_EQ(model.cpu_ns(modelled_unseal, first, modelled_chunk), first);
  EXPECT_EQ(model.cpu_ns(modelled_unseal, modelled_chunk, modelled_chunk / 32), modelled_chunk)
      << "two for each thread";
  const CostModel few_threads(linear_costs(0, 1), linear_costs(3e6, 0.1), all_split, 2);
  EXPECT_EQ(few_threads.cpu_ns(modelled_unseal, modelled_chunk, modelled_chunk),
            2 * modelled_chunk);
}

TEST(CostModel, gives_small_work_to_the_cpu_and_large_work_to_both) {
  const CostModel model(linear_costs(0, 1), linear_costs(3e6, 0.1), all_split);
  EXPECT_EQ(share_of(model, modelled_seal, 1 << 20), 0u);
  EXPECT_EQ(share_of(model, modelled_seal, 64 << 10), 0u);
  // Both end together when the devices have ten parts of eleven.
  const std::uint64_t share = share_of(model, modelled_seal, 1u << 30);
  EXPECT_NEAR(static_cast<double>(share), (1u << 30) * 10.0 / 11.0, (1u << 30) / 16.0);
}

TEST(CostModel, never_ends_much_later_than_the_better_backend_alone) {
  for (const double cuda_ns : {0.01, 0.3, 1.0, 3.0, 50.0}) {
    const CostModel model(linear_costs(0, 1), linear_costs(2e6, cuda_ns), all_split);
    for (std::size_t i = 0; i < work_class_count; ++i) {
      const WorkClass work = work_class_at(i);
      for (std::uint64_t size = 1 << 20; size < 4ull << 30; size = size * 3 / 2) {
        const auto bytes = static_cast<double>(size);
        const auto share = static_cast<double>(share_of(model, work, size));
        const double planned = std::max(model.cpu_ns(work, bytes - share, modelled_chunk),
                                        share > 0 ? model.cuda_ns(work, share, modelled_chunk) : 0);
        const double alone = std::min(model.cpu_ns(work, bytes, modelled_chunk),
                                      model.cuda_ns(work, bytes, modelled_chunk));
        EXPECT_LE(planned, alone * 1.04)
            << to_string(work) << ", " << size << " bytes at " << cuda_ns;
      }
    }
  }
}

TEST(CostModel, takes_one_backend_where_two_gain_nothing) {
  const CostModel model(linear_costs(0, 1), linear_costs(3e6, 0.9), {});
  for (std::uint64_t size = 1 << 20; size < 4ull << 30; size *= 2) {
    const std::uint64_t share = share_of(model, modelled_unseal, size);
    EXPECT_TRUE(share == 0 || share == size);
  }
  EXPECT_EQ(share_of(model, modelled_unseal, 1u << 30), 1u << 30);
}

TEST(CostModel, sends_work_away_from_a_backend_that_is_busy) {
  const CostModel model(linear_costs(0, 1), linear_costs(3e6, 0.9), all_split);
  const std::uint64_t size = 16u << 20;
  const std::uint64_t idle = share_of(model, modelled_seal, size);
  EXPECT_GT(share_of(model, modelled_seal, size, 1, 1e9, 0), idle);
  EXPECT_EQ(share_of(model, modelled_seal, size, 1, 1e9, 0), size);
  EXPECT_EQ(share_of(model, modelled_seal, size, 1, 0, 1e9), 0u);
}

// When only lz77 was measured, a device got a fifth of the work at which it is faster.
TEST(CostModel, deals_each_codec_out_by_its_own_cost) {
  constexpr std::uint64_t size = 16u << 20;
  for (std::size_t slow = 0; slow < costed_codecs.size(); ++slow) {
    for (std::size_t kind = 0; kind < coded_kind_count; ++kind) {
      CostModel::Costs cpu = linear_costs(0, 1);
      set_line(cpu, {static_cast<WorkKind>(kind), costed_codecs[slow]}, 0, 8);
      const CostModel model(cpu, linear_costs(3e6, 0.9), {});
      for (std::size_t i = 0; i < work_class_count; ++i) {
        const WorkClass work = work_class_at(i);
        const bool is_slow = work == WorkClass{static_cast<WorkKind>(kind), costed_codecs[slow]};
        EXPECT_EQ(share_of(model, work, size), is_slow ? size : 0) << to_string(work);
      }
    }
  }
}

// Ciphers, checksums and RSA.
constexpr std::size_t first_without_codec = coded_kind_count * costed_codecs.size();

TEST(CostModel, deals_each_operation_without_a_codec_out_by_its_own_cost) {
  constexpr std::uint64_t size = 16u << 20;
  for (std::size_t own = first_without_codec; own < work_class_count; ++own) {
    // The cpu is slow at this class alone, so the device gets it.
    CostModel::Costs cpu = linear_costs(0, 1);
    set_line(cpu, work_class_at(own), 0, 8);
    const CostModel slow_cpu(cpu, linear_costs(3e6, 0.9), {});
    // The cpu is fast at this class alone, so the cpu keeps it.
    CostModel::Costs quick = linear_costs(0, 1);
    set_line(quick, work_class_at(own), 0, 0.1);
    const CostModel quick_cpu(quick, linear_costs(3e6, 0.3), {});
    for (std::size_t i = 0; i < work_class_count; ++i) {
      const WorkClass work = work_class_at(i);
      EXPECT_EQ(share_of(slow_cpu, work, size), i == own ? size : 0)
          << to_string(work) << " beside " << to_string(work_class_at(own));
      EXPECT_EQ(share_of(quick_cpu, work, size), i == own ? 0 : size)
          << to_string(work) << " beside " << to_string(work_class_at(own));
    }
  }
}

// A device is not faster at a serial mode than at a mode that its lanes share.
TEST(CostModel, lets_slow_parallel_ciphers_hold_up_the_serial_ones) {
  constexpr std::uint64_t size = 16u << 20;
  for (const auto& [parallel, serial] :
       {std::pair{WorkKind::crypt, WorkKind::crypt_serial},
        std::pair{WorkKind::crypt, WorkKind::crypt_hmac},
        std::pair{WorkKind::crypt_des, WorkKind::crypt_des_serial}}) {
    CostModel::Costs cuda = linear_costs(1e6, 0.1);
    set_line(cuda, {parallel}, 0, 8);
    const CostModel model(linear_costs(0, 1), cuda, all_split);
    EXPECT_LE(share_of(model, {parallel}, size), size / 8);
    EXPECT_EQ(share_of(model, {serial}, size), share_of(model, {parallel}, size));
    const WorkKind other = parallel == WorkKind::crypt ? WorkKind::crypt_des : WorkKind::crypt;
    EXPECT_GT(share_of(model, {other}, size), size / 2);
    EXPECT_GT(share_of(model, {WorkKind::rsa_private}, size), size / 2);
  }
}

TEST(CostModel, splits_an_operation_without_a_codec_where_it_is_said_to_gain) {
  constexpr std::uint64_t size = 64u << 20;
  for (std::size_t own = first_without_codec; own < work_class_count; ++own) {
    WorkClasses splits;
    splits.set(own);
    // Both have the same speed, except that the device takes time to begin.
    const CostModel model(linear_costs(0, 1), linear_costs(1e6, 1), splits);
    for (std::size_t i = first_without_codec; i < work_class_count; ++i) {
      const auto share = static_cast<double>(share_of(model, work_class_at(i), size));
      EXPECT_NEAR(share, i == own ? size / 2.0 : 0, size / 16.0) << to_string(work_class_at(i));
    }
  }
}

// The figures are chosen so that each class has payloads for both backends. DES is expensive on the
// cpu, in serial modes as well. AES is so cheap that only large payloads are worth the way to a
// device. In a serial mode they are worth it only if no message is long, since a thread of the
// device works on each chunk for three or four milliseconds. In RSA the device is slow with few
// messages.
TEST(CostModel, gives_ciphers_and_rsa_to_whom_they_cost_less) {
  CostModel::Costs cpu = linear_costs(0, 0.1);
  CostModel::Costs cuda = linear_costs(4e5, 0.05);
  set_line(cpu, {WorkKind::crypt_serial}, 0, 0.2);
  set_line(cuda, {WorkKind::crypt_serial}, 3.4e6, 0.05);
  set_line(cpu, {WorkKind::crypt_des}, 0, 1.2);
  set_line(cpu, {WorkKind::crypt_des_serial}, 0, 1.2);
  set_line(cuda, {WorkKind::crypt_des_serial}, 4.4e6, 0.05);
  set_line(cpu, {WorkKind::rsa_private}, 0, 5);
  set_line(cuda, {WorkKind::rsa_private}, 8e6, 0.5);
  set_line(cpu, {WorkKind::rsa_public}, 0, 2);
  set_line(cuda, {WorkKind::rsa_public}, 5e5, 0.2);
  set_line(cpu, {WorkKind::rsa_generate}, 0, 15);
  set_line(cuda, {WorkKind::rsa_generate}, 3e7, 1);
  const CostModel model(cpu, cuda, {});
  struct Case {
    WorkKind kind;
    std::uint64_t bytes;
    std::uint64_t longest;
    bool on_cuda;
  };
  constexpr std::uint64_t kib = 1024, mib = 1024 * kib;
  for (const Case& of : {Case{WorkKind::crypt, 4 * mib, 64 * kib, false},
                         Case{WorkKind::crypt, 64 * mib, 64 * kib, true},
                         Case{WorkKind::crypt_serial, 4 * mib, 64 * kib, false},
                         Case{WorkKind::crypt_serial, 64 * mib, 64 * kib, true},
                         Case{WorkKind::crypt_serial, 64 * mib, 1 * mib, false},
                         Case{WorkKind::crypt_des, 1 * mib, 64 * kib, true},
                         Case{WorkKind::crypt_des, 64 * mib, 64 * mib, true},
                         Case{WorkKind::crypt_des_serial, 1 * mib, 64 * kib, false},
                         Case{WorkKind::crypt_des_serial, 16 * mib, 64 * kib, true},
                         Case{WorkKind::crypt_des_serial, 64 * mib, 1 * mib, true},
                         Case{WorkKind::crypt_des_serial, 64 * mib, 64 * mib, false},
                         Case{WorkKind::rsa_private, 128 * rsa_private_bytes, 8 * kib, false},
                         Case{WorkKind::rsa_private, 1024 * rsa_private_bytes, 8 * kib, true},
                         Case{WorkKind::rsa_public, 1024 * rsa_public_bytes, 512, true},
                         Case{WorkKind::rsa_generate, 2 * rsa_generate_bytes, 512 * kib, false},
                         Case{WorkKind::rsa_generate, 64 * rsa_generate_bytes, 512 * kib, true}}) {
    EXPECT_EQ(model.cuda_share({.work_class = {of.kind}, .bytes = of.bytes, .longest = of.longest},
                               1, 0, 0),
              of.on_cuda ? of.bytes : 0)
        << to_string(WorkClass{of.kind}) << ", " << of.bytes << " bytes, the longest of "
        << of.longest;
  }
}

// Measured on a machine on which both wait for the host's memory. Work that went to the slower
// device, because the cpu had a queue, made everything take up to four times as long.
TEST(CostModel, leaves_a_queue_alone_where_two_gain_nothing_and_the_device_is_slower) {
  const std::uint64_t size = 16u << 20;
  const CostModel slower(linear_costs(0, 1), linear_costs(1e6, 1.5), {});
  EXPECT_EQ(share_of(slower, modelled_crypt, size, 1, 1e9, 0), 0u);
  const CostModel faster(linear_costs(0, 1), linear_costs(1e6, 0.5), {});
  EXPECT_EQ(share_of(faster, modelled_crypt, size, 1, 1e9, 0), size);
  EXPECT_EQ(share_of(faster, modelled_crypt, size, 1, 0, 1e9), 0u) << "the cpu helps out";
  EXPECT_EQ(share_of(faster, modelled_crypt, size, 4, 1e9, 0), 0u) << "most devices are lost";
}

// The flushers of a mount took the cores from its other threads, so the device did not reach its
// speed. The cpu alone gave 2.4 GB/s, the device 3.7 GB/s.
TEST(CostModel, gives_a_queue_to_a_device_that_is_hardly_slower) {
  const std::uint64_t size = 16u << 20;
  const CostModel hardly(linear_costs(0, 1), linear_costs(1e6, 1.1), {});
  EXPECT_EQ(share_of(hardly, modelled_crypt, size, 1, 1e8, 0), size);
  EXPECT_EQ(share_of(hardly, modelled_crypt, size, 1, 0, 0), 0u) << "without one the better";
  EXPECT_EQ(share_of(hardly, modelled_crypt, size, 1, 1e6, 1e7), 0u) << "its own queue is longer";
}

TEST(CostModel, gives_less_to_devices_of_which_some_are_lost) {
  const CostModel model(linear_costs(0, 1), linear_costs(3e6, 0.4), all_split);
  const std::uint64_t size = 1u << 30;
  std::uint64_t before = size;
  for (const double load : {1.0, 2.0, 4.0}) {
    const std::uint64_t share = share_of(model, modelled_seal, size, load, 0, 0);
    // Both end together.
    EXPECT_NEAR(static_cast<double>(share), size / (1 + 0.4 * load), size / 16.0) << load;
    EXPECT_LT(share, before) << load;
    before = share;
  }
}

// On a device one thread processes the whole message.
TEST(CostModel, knows_that_a_device_does_serial_messages_one_thread_each) {
  struct Pair {
    WorkClass serial, parallel;
  };
  for (const Pair pair :
       {Pair{WorkClass{WorkKind::crypt_serial}, modelled_crypt},
        Pair{WorkClass{WorkKind::crypt_des_serial}, WorkClass{WorkKind::crypt_des}},
        Pair{WorkClass{WorkKind::crypt_hmac}, modelled_crypt},
        Pair{WorkClass{WorkKind::seal_hmac, Codec::lz77}, modelled_seal},
        Pair{WorkClass{WorkKind::seal_hmac, Codec::none}, WorkClass{WorkKind::seal, Codec::none}},
        Pair{WorkClass{WorkKind::unseal_hmac, Codec::lz77}, modelled_unseal},
        Pair{WorkClass{WorkKind::reseal_hmac}, WorkClass{WorkKind::reseal}}}) {
    // With one thread for each chunk a payload takes 3 ms longer than if all lanes share the
    // chunks: 48 ns for a byte.
    CostModel::Costs cuda = linear_costs(1e6, 0.02);
    for (double& ns : cuda[index_of(pair.serial)])
      ns += 3e6;
    const CostModel model(linear_costs(0, 0.1), cuda, all_split);
    const double bytes = 64 * modelled_megabyte;
    EXPECT_DOUBLE_EQ(model.cuda_ns(pair.serial, bytes, modelled_chunk),
                     model.cuda_ns(pair.parallel, bytes, modelled_chunk) + 3e6);
    // One message of 32 MiB takes a second and a half.
    EXPECT_NEAR(model.cuda_ns(pair.serial, bytes, 32 * modelled_megabyte), 512 * 3e6, 3e7);
    EXPECT_EQ(model.cuda_ns(pair.parallel, bytes, 32 * modelled_megabyte),
              model.cuda_ns(pair.parallel, bytes, modelled_chunk));
    // Short ones cost no less than lanes that share them.
    EXPECT_NEAR(model.cuda_ns(pair.serial, bytes, 16), model.cuda_ns(pair.parallel, bytes, 16),
                2e3);
    const auto share = [&](WorkClass work, std::uint64_t longest) {
      return model.cuda_share({.work_class = work, .bytes = 256u << 20, .longest = longest}, 1, 0,
                              0);
    };
    EXPECT_EQ(share(pair.serial, 32u << 20), 0u) << "that is the cpu's";
    EXPECT_GT(share(pair.serial, 64u << 10), 128u << 20);
    EXPECT_GT(share(pair.parallel, 32u << 20), 128u << 20);
  }
}

// Measured on a busy host: 16 MiB took less than 4 MiB did, and for every payload of 4 to 16 MiB
// the devices were then thought the faster ones.
TEST(CostModel, believes_the_larger_size_where_a_smaller_one_took_longer) {
  EXPECT_EQ(CostModel::without_hiccups({108e3, 634e3, 319e3, 1671e3}),
            (CostModel::ClassCosts{108e3, 319e3, 319e3, 1671e3}));
  EXPECT_EQ(CostModel::without_hiccups({5e6, 4e6, 3e6, 2e6}),
            (CostModel::ClassCosts{2e6, 2e6, 2e6, 2e6}));
  EXPECT_EQ(CostModel::without_hiccups({1, 2, 3, 4}), (CostModel::ClassCosts{1, 2, 3, 4}));
}

// A device made two keys in 34 ms, and then eight in 28 ms. The prediction for sixty-four must not
// be negative.
TEST(CostModel, predicts_no_less_than_what_was_measured) {
  EXPECT_EQ(CostModel::predict({34e6, 28e6}, 2), 28e6);
  EXPECT_EQ(CostModel::predict({1e6, 4e6}, 2), 16e6);
  EXPECT_EQ(CostModel::predict({70e6}, 1), 280e6);
}

TEST(CostModel, measures_every_class_on_any_two_backends) {
  const auto first = CpuBackend::create(1, 4).value();
  const auto second = CpuBackend::create(2, 4).value();
  const auto model = CostModel::measure(*first, *second, allocate_host_arena, 1);
  ASSERT_TRUE(model) << "a message failed";
  for (std::size_t i = 0; i < work_class_count; ++i) {
    const WorkClass work = work_class_at(i);
    EXPECT_GT(model->cpu_ns(work, modelled_megabyte, modelled_chunk), 0) << to_string(work);
    EXPECT_GT(model->cuda_ns(work, modelled_megabyte, modelled_chunk), 0) << to_string(work);
  }
  // For HMAC, costs that are not measured are derived from those that are.
  for (const Codec codec : costed_codecs) {
    if (codec == Codec::none || codec == Codec::lz77) continue;
    EXPECT_GE(model->cpu_ns({WorkKind::seal_hmac, codec}, modelled_megabyte, modelled_chunk),
              model->cpu_ns({WorkKind::seal, codec}, modelled_megabyte, modelled_chunk));
    EXPECT_GE(model->cpu_ns({WorkKind::unseal_hmac, codec}, modelled_megabyte, modelled_chunk),
              model->cpu_ns({WorkKind::unseal, codec}, modelled_megabyte, modelled_chunk));
  }
}

TEST(CostModel, names_the_processor_and_both_backends) {
  const std::string machine = CostModel::machine("cpu, 3 threads", "cuda, a device");
  for (const std::string_view part : {"model ", "cpu, 3 threads", "cuda, a device"})
    EXPECT_NE(machine.find(part), std::string::npos) << machine;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    EXPECT_NE(machine.find(line.substr(line.find(": ") + 2)), std::string::npos) << machine;
    break;
  }
}

TEST(CostModel, is_kept_in_a_file_of_one_machine) {
  const tests::TemporaryDirectory directory;
  const std::string file = directory.path() + "/cache/nacre/engine-costs";
  EXPECT_FALSE(CostModel::read(file, "a", 1));
  const CostModel model(linear_costs(100, 1), linear_costs(3e6, 0.1), all_split);
  model.write(file, "a");
  const auto read = CostModel::read(file, "a", 1);
  ASSERT_TRUE(read);
  EXPECT_NEAR(read->cuda_ns(WorkClass{WorkKind::reseal}, 7 * modelled_megabyte, modelled_chunk),
              model.cuda_ns(WorkClass{WorkKind::reseal}, 7 * modelled_megabyte, modelled_chunk), 2);
  EXPECT_FALSE(CostModel::read(file, "b", 1));
  std::ofstream(file) << "nacre-engine-costs 2 a\n1 2 x\n";
  EXPECT_FALSE(CostModel::read(file, "a", 1));
}

}  // namespace
}  // namespace nacre::engine
