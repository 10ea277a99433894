// SPDX-License-Identifier: Apache-2.0
// nacre bench takes no wrong output for a right one: streams and records are undone and compared.
#include <gtest/gtest.h>

#include "tools/bench/judge.h"

namespace nacre::tools {
namespace {

using engine::Codec;
using engine::Operation;

// Another's outputs; one of them can be changed.
class Outputs final : public Contender {
 public:
  Outputs(const Contender& from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const ByteView output = from.output(i);
      outputs.emplace_back(output.begin(), output.end());
      codecs.push_back(from.codec(i));
    }
  }
  Result<> select(std::size_t /*stride*/) override { return {}; }
  Result<> run() override { return {}; }
  ByteView output(std::size_t index) const override { return outputs[index]; }
  Codec codec(std::size_t index) const override { return codecs[index]; }

  std::vector<Bytes> outputs;
  std::vector<Codec> codecs;
};

class BenchJudge : public testing::Test {
 protected:
  BenchJudge() {
    for (std::size_t size : {3000, 4096, 5000}) {
      Bytes& plain = plain_.emplace_back(size);
      for (std::size_t i = 0; i < size; ++i)
        plain[i] = static_cast<Byte>(i / 7 % 11);
      undo_.output_sizes.push_back(size);
    }
    // Noise, which auto stores, and text, which it codes.
    std::uint32_t state = 1;
    for (Byte& byte : plain_[1])
      byte = static_cast<Byte>((state = state * 1664525 + 1013904223) >> 24);
    undo_.expected.assign(plain_.begin(), plain_.end());
  }

  Outputs do_task(const BenchTask& task, const std::vector<ByteView>& inputs) {
    BenchMessages messages{.inputs = inputs, .output_sizes = std::vector<std::size_t>(3, 16384)};
    const auto done = make_engine_contender(*engine_, task, messages, true).value();
    EXPECT_TRUE(done->run());
    return Outputs(*done, inputs.size());
  }
  std::string judge(const Contender& contender) {
    const auto right = judge_by_undoing(undo_, contender, *engine_);
    return right ? "" : right.error().message;
  }

  std::unique_ptr<engine::Engine> engine_ =
      engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 1}).value();
  std::vector<Bytes> plain_;
  BenchUndo undo_;
};

TEST_F(BenchJudge, decodes_what_auto_made_of_each_message) {
  BenchTask task;
  task.message.operation = Operation::compress;
  task.message.codec = Codec::automatic;
  Outputs streams = do_task(task, undo_.expected);
  EXPECT_EQ(streams.codecs[1], Codec::none);
  EXPECT_NE(streams.codecs[0], Codec::none);
  undo_.task = task;
  undo_.task.message.operation = Operation::decompress;
  EXPECT_EQ(judge(streams), "");
  streams.outputs[1][100] ^= 1;
  EXPECT_NE(judge(streams).find("message 1 came out wrong"), std::string::npos) << judge(streams);
  streams.outputs[1][100] ^= 1;
  streams.outputs[2].pop_back();
  EXPECT_NE(judge(streams).find("message 2"), std::string::npos) << judge(streams);
}

TEST_F(BenchJudge, opens_what_was_resealed_under_the_new_key) {
  BenchTask seal;
  seal.message.operation = Operation::seal;
  seal.message.codec = Codec::lz77;
  seal.key_use.suite = engine::CipherSuite::aes_256_gcm;
  seal.key = Bytes(32, 1);
  seal.has_key = true;
  const Outputs records = do_task(seal, undo_.expected);
  BenchTask reseal = seal;
  reseal.message.operation = Operation::reseal;
  reseal.new_key = Bytes(32, 2);
  Outputs resealed =
      do_task(reseal, std::vector<ByteView>(records.outputs.begin(), records.outputs.end()));
  undo_.task = seal;
  undo_.task.message.operation = Operation::unseal;
  EXPECT_EQ(judge(records), "");
  EXPECT_NE(judge(resealed).find("message 0"), std::string::npos) << "under the old key";
  undo_.task.key = reseal.new_key;
  EXPECT_EQ(judge(resealed), "");
  EXPECT_NE(judge(records).find("message 0"), std::string::npos) << "not resealed";
  resealed.outputs[2].back() ^= 1;
  EXPECT_NE(judge(resealed).find("message 2"), std::string::npos) << judge(resealed);
}

}  // namespace
}  // namespace nacre::tools
