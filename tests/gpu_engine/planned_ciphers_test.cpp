// SPDX-License-Identifier: Apache-2.0
// What the planner makes of ciphers in parallel and in serial modes, and of RSA: simulated, and
// with a stand-in for devices that runs it.
#include <algorithm>
#include <array>

#include "gpu_engine/plan/message_kind.h"
#include "gpu_engine/publickey/rsa.h"
#include "tests/gpu_engine/simulated_machine.h"
#include "tests/gpu_engine/test_payload.h"

namespace nacre::engine {
namespace {

struct Case {
  Shape shape;
  WorkKind kind;
};
constexpr Shape crypt(Operation operation, BlockCipher cipher, CipherMode mode) {
  return {operation, Codec::none, cipher, mode};
}
constexpr std::array cases = {
    Case{crypt(Operation::encrypt, BlockCipher::aes_256, CipherMode::ctr), WorkKind::crypt},
    Case{crypt(Operation::decrypt, BlockCipher::aes_128, CipherMode::cbc), WorkKind::crypt},
    Case{crypt(Operation::encrypt, BlockCipher::aes_192, CipherMode::cbc), WorkKind::crypt_serial},
    Case{crypt(Operation::encrypt, BlockCipher::aes_256, CipherMode::ofb), WorkKind::crypt_serial},
    Case{crypt(Operation::decrypt, BlockCipher::aes_256, CipherMode::ofb), WorkKind::crypt_serial},
    Case{crypt(Operation::encrypt, BlockCipher::des, CipherMode::ecb), WorkKind::crypt_des},
    Case{crypt(Operation::encrypt, BlockCipher::des_ede3, CipherMode::ctr), WorkKind::crypt_des},
    Case{crypt(Operation::decrypt, BlockCipher::des_ede3, CipherMode::cbc), WorkKind::crypt_des},
    Case{crypt(Operation::encrypt, BlockCipher::des, CipherMode::cbc), WorkKind::crypt_des_serial},
    Case{crypt(Operation::encrypt, BlockCipher::des_ede3, CipherMode::ofb),
         WorkKind::crypt_des_serial},
    Case{crypt(Operation::decrypt, BlockCipher::des, CipherMode::ofb), WorkKind::crypt_des_serial},
    Case{{Operation::rsa_private}, WorkKind::rsa_private},
    Case{{Operation::rsa_public}, WorkKind::rsa_public},
    Case{{Operation::rsa_generate}, WorkKind::rsa_generate}};

constexpr std::uint64_t size = 16u << 20;

double share_of(Machine& machine, const Payload& payload) {
  const Plan plan = machine.planner().plan(payload, false);
  const auto bytes = Machine::bytes_of(payload, plan);
  for (const Side side : sides)
    machine.planner().ended(plan, side);
  EXPECT_EQ(bytes[0] + bytes[1], Machine::bytes_of(payload)) << "each message on one of the two";
  return static_cast<double>(bytes[1]) / static_cast<double>(bytes[0] + bytes[1]);
}

std::string name_of(const Case& of) {
  return to_string(WorkClass{of.kind}) + ", case " + std::to_string(&of - cases.data());
}

TEST(PlannedCiphers, go_to_the_backend_at_which_their_class_costs_less) {
  for (const WorkKind own :
       {WorkKind::crypt, WorkKind::crypt_serial, WorkKind::crypt_des, WorkKind::crypt_des_serial,
        WorkKind::rsa_private, WorkKind::rsa_public, WorkKind::rsa_generate}) {
    CostModel::Costs slow_at_one = costs_of(0, 1);
    CostModel::Costs quick_at_one = costs_of(0, 1);
    slow_at_one[index_of({own})] = costs_of(0, 8)[index_of({own})];
    quick_at_one[index_of({own})] = costs_of(0, 0.1)[index_of({own})];
    Machine device_for_one(slow_at_one, costs_of(1e5, 2), {}, false);
    Machine cpu_for_one(quick_at_one, costs_of(1e5, 0.4), {}, false);
    for (const Case& of : cases) {
      SCOPED_TRACE(name_of(of) + " beside " + to_string(WorkClass{own}));
      const Payload payload = make_payload(of.shape, size);
      EXPECT_EQ(class_of(payload, payload.messages[0]), WorkClass{of.kind});
      EXPECT_EQ(share_of(device_for_one, payload), of.kind == own ? 1 : 0);
      EXPECT_EQ(share_of(cpu_for_one, payload), of.kind == own ? 0 : 1);
    }
  }
}

TEST(PlannedCiphers, are_split_where_their_class_gains_by_it) {
  for (const Case& own : cases) {
    WorkClasses splits;
    splits.set(index_of({own.kind}));
    Machine machine(costs_of(0, 1), costs_of(1e5, 0.5), splits, false);
    for (const Case& of : cases) {
      SCOPED_TRACE(name_of(of) + " beside " + name_of(own));
      // The devices are faster, and get everything, or two thirds of it.
      EXPECT_NEAR(share_of(machine, make_payload(of.shape, size)),
                  of.kind == own.kind ? 2.0 / 3 : 1, 1.0 / 16);
    }
  }
}

// A thread of the device works on each chunk for three milliseconds.
TEST(PlannedCiphers, in_serial_modes_are_the_cpus_where_a_message_is_long) {
  CostModel::Costs cuda = costs_of(1e5, 0.05);
  for (const WorkKind kind : {WorkKind::crypt_serial, WorkKind::crypt_des_serial})
    cuda[index_of({kind})] = costs_of(3.1e6, 0.05)[index_of({kind})];
  Machine machine(costs_of(0, 1), cuda, {}, false);
  for (const Case& of : cases) {
    if (is_rsa(of.shape.operation)) continue;
    SCOPED_TRACE(name_of(of));
    const bool is_serial =
        of.kind == WorkKind::crypt_serial || of.kind == WorkKind::crypt_des_serial;
    Payload payload = make_payload(of.shape, size);
    EXPECT_EQ(share_of(machine, payload), is_serial ? 0 : 1) << "messages of a MiB";
    for (Message& message : payload.messages)
      message.input_size = 32u << 10;
    const std::vector<Message> short_ones = payload.messages;
    while (payload.messages.size() < size / (32u << 10))
      payload.messages.insert(payload.messages.end(), short_ones.begin(), short_ones.end());
    EXPECT_EQ(share_of(machine, payload), 1) << "messages of 32 KiB";
    // All other messages of the payload would wait for this one.
    payload.messages.back().input_size = 1u << 20;
    EXPECT_EQ(share_of(machine, payload), is_serial ? 0 : 1) << "one of a MiB among them";
  }
}

// Except for DES, the cpu finishes payloads below 512 KiB before a device is awake.
TEST(PlannedCiphers, of_des_64_kib_are_worth_a_device_and_8_are_not) {
  for (const Case& of : cases) {
    SCOPED_TRACE(name_of(of));
    Machine machine(costs_of(0, 8), costs_of(1e5, 0.1), {}, false);
    const bool is_des = of.kind == WorkKind::crypt_des || of.kind == WorkKind::crypt_des_serial;
    Payload payload = make_payload(of.shape, 1u << 20);
    if (is_rsa(of.shape.operation)) continue;
    payload.messages.resize(1);
    payload.messages[0].input_size = 64u << 10;
    EXPECT_EQ(share_of(machine, payload), is_des ? 1 : 0);
    payload.messages[0].input_size = 8u << 10;
    EXPECT_EQ(share_of(machine, payload), 0);
  }
}

// At one class the device takes four times as long as was measured. It then loses that class.
TEST(PlannedCiphers, go_to_the_other_backend_once_their_class_is_seen_to_be_slow) {
  for (const WorkKind own :
       {WorkKind::crypt_serial, WorkKind::crypt_des, WorkKind::crypt_des_serial,
        WorkKind::rsa_private, WorkKind::rsa_generate}) {
    Machine machine(costs_of(0, 1), costs_of(1e5, 0.5), {}, true);
    machine.factors[index_of(Side::cuda)][index_of({own})].fill(4);
    for (const Case& of : cases) {
      SCOPED_TRACE(name_of(of) + " beside " + to_string(WorkClass{own}));
      const Payload payload = make_payload(of.shape, size);
      int late = 0;
      for (int i = 0; i < 100; ++i)
        late += machine.run(payload) > 1.1 * machine.better_ns(payload);
      EXPECT_LE(late, 8);
      EXPECT_EQ(machine.used_cuda, of.kind != own);
    }
  }
}

class PlannedCiphersEngine : public testing::Test {
 protected:
  static constexpr unsigned cpu_threads = 2;

  // An engine whose device gets half of every payload that is large enough.
  std::unique_ptr<Engine> sharing_engine() {
    const std::string name = "cuda, stand-in";
    const std::string cpu_name = CpuBackend::create(cpu_threads, 1).value()->name();
    const std::string file = directory_.path() + "/costs";
    CostModel(costs_of(0, 1), costs_of(0, 1), WorkClasses().set())
        .write(file, CostModel::machine(cpu_name, name));
    const DeviceMaker devices = [this, name](const CudaOptions&, Backend& cpu) {
      return Result<std::unique_ptr<DeviceBackend>>(
          std::make_unique<FakeDevice>(name, device_, cpu, 2));
    };
    return make_engine(
        Planner::create({.thread_count = cpu_threads, .cost_file = file}, devices, [] {
          return std::uint64_t{0};
        }).value());
  }

  const tests::TemporaryDirectory directory_;
  const std::shared_ptr<DeviceState> device_ = std::make_shared<DeviceState>();
  const std::unique_ptr<Engine> cpu_ = Engine::create({.choice = EngineChoice::cpu}).value();
  TestRandom random_;
};

TEST_F(PlannedCiphersEngine, gives_the_cpus_results_for_what_it_splits) {
  const auto engine = sharing_engine();
  for (const Case& of : cases) {
    if (is_rsa(of.shape.operation)) continue;
    SCOPED_TRACE(name_of(of));
    constexpr std::size_t count = 64, message_size = 64u << 10;
    const Bytes key = random_.bytes(key_size_bytes(of.shape.cipher));
    TestPayload shared(*engine, count * message_size);
    TestPayload on_cpu(*cpu_, count * message_size);
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes input = random_.bytes(message_size);
      CipherIv iv;
      random_.fill(iv);
      for (TestPayload* const payload : {&shared, &on_cpu}) {
        Message& message = payload->add(of.shape.operation, input, input.size());
        message.iv = iv;
        message.key_index = payload->get().add_key(of.shape.cipher, of.shape.mode, key);
      }
    }
    const std::uint64_t before = device_->message_count;
    engine->run(shared.get());
    cpu_->run(on_cpu.get());
    EXPECT_NEAR(static_cast<double>(device_->message_count - before), count / 2, count / 8);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(shared.result(i).ok) << shared.result(i).detail;
      ASSERT_TRUE(std::ranges::equal(shared.output(i), on_cpu.output(i))) << i;
    }
  }
}

TEST_F(PlannedCiphersEngine, raises_and_makes_keys_on_both_backends) {
  const auto engine = sharing_engine();
  const RsaPrivateKey key = RsaPrivateKey::from_pem(read_vector("rsa/test_key_pkcs8.pem")).value();
  const SecretBytes private_der = key.to_der().value();
  const std::size_t modulus_size = key.public_key().modulus_size_bytes();
  constexpr std::size_t count = 512;
  TestPayload raised(*engine);
  std::vector<Bytes> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    numbers.push_back(random_.bytes(modulus_size));
    numbers.back()[0] = 0;  // below the modulus, whose first bit is set
    raised.add(Operation::rsa_private, numbers.back(), modulus_size).key_index =
        raised.get().add_rsa_private_key(private_der.view());
  }
  engine->run(raised.get());
  EXPECT_NEAR(static_cast<double>(device_->message_count), count / 2, count / 8);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(raised.result(i).ok) << raised.result(i).detail;
    const auto back = key.public_key().apply(raised.output(i));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, numbers[i]);
  }

  constexpr int bits = rsa_message_bits_min;
  constexpr std::size_t key_count = 128;
  TestPayload made(*engine);
  for (std::size_t i = 0; i < key_count; ++i)
    made.add(Operation::rsa_generate, {}, rsa_private_key_size_bound(bits)).rsa_bits = bits;
  const std::uint64_t before = device_->message_count;
  engine->run(made.get());
  EXPECT_NEAR(static_cast<double>(device_->message_count - before), key_count / 2, key_count / 8);
  for (std::size_t i = 0; i < key_count; ++i) {
    ASSERT_TRUE(made.result(i).ok) << made.result(i).detail;
    EXPECT_TRUE(RsaPrivateKey::from_der(made.output(i), bits).has_value());
  }
}

}  // namespace
}  // namespace nacre::engine
