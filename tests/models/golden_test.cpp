// The forward pass against what HF transformers answers in float32 for random checkpoints of several shapes.
#include "support/golden.h"

#include <random>

#include <gtest/gtest.h>

namespace sluice::test {
namespace {

constexpr double f32_tolerance = 1e-4;

class GoldenF32 : public testing::TestWithParam<std::string> {
 protected:
  GoldenF32()
      : directory_(source_dir() / "tests/data/golden" / GetParam()),
        golden_(directory_ / "expected.safetensors"),
        runner_(directory_, {.threads = 2, .compute = Compute::f32, .instruction_set = ""}) {}

  void expect_equal(const Rows& found, const std::string& name) {
    EXPECT_LT(relative_error(found, golden_.rows(name)), f32_tolerance) << name;
  }

  std::filesystem::path directory_;
  Golden golden_;
  ModelRunner runner_;
};

TEST_P(GoldenF32, AnswersEveryLengthAsTheReferenceDoes) {
  ASSERT_GE(golden_.lengths().size(), 11u);
  for (const int length : golden_.lengths()) {
    const auto n = std::to_string(length);
    const auto output = runner_.run(golden_.ids("ids." + n), 0, true);
    expect_equal(output.logits, "logits." + n);
    if (length > 1) expect_equal(output.draft_logits, "mtp_logits." + n);
  }
}

TEST_P(GoldenF32, KeepsTheResidualStreamOfEveryLayer) {
  Rows stream;
  runner_.run(golden_.ids("ids.65"), 0, false, [&](std::int64_t, const Tensor& rows) {
    for (Row& row : runner_.read_rows(rows)) stream.push_back(std::move(row));
  });
  expect_equal(stream, "hidden_per_layer.65");
}

TEST_P(GoldenF32, AnswersEveryPrefixAsTheRowsOfTheWhole) {
  const auto ids = golden_.ids("ids.200");
  const Rows expected = golden_.rows("logits.200");
  ASSERT_EQ(expected.size(), ids.size());
  for (std::size_t n = 1; n <= ids.size(); ++n) {
    const Rows found = runner_.run({ids.begin(), ids.begin() + static_cast<long>(n)}).logits;
    ASSERT_LT(relative_error(found, {expected[n - 1]}), f32_tolerance) << "prefix of " << n;
  }
}

TEST_P(GoldenF32, DoesNotDependOnTheSizeOfChunks) {
  for (const std::size_t chunk : {1u, 7u, 64u, 100u}) {
    for (const int length : golden_.lengths()) {
      const auto n = std::to_string(length);
      const auto output = runner_.run(golden_.ids("ids." + n), chunk, true);
      expect_equal(output.logits, "logits." + n);
      if (length > 1) expect_equal(output.draft_logits, "mtp_logits." + n);
    }
  }
}

TEST_P(GoldenF32, DoesNotDependOnTheOtherSequencesOfABatch) {
  const auto lengths = golden_.lengths();
  std::vector<ModelRunner::Sequence> sequences(lengths.size());
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<Rows> found(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sequences[i] = runner_.open();
    ids.push_back(golden_.ids("ids." + std::to_string(lengths[i])));
  }
  std::mt19937 random(11);
  for (bool left = true; left;) {
    left = false;
    std::vector<ModelRunner::Piece> pieces;
    std::vector<std::size_t> owners;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto begin = static_cast<std::size_t>(sequences[i].length);
      if (begin == ids[i].size()) continue;
      left = true;
      if (random() % 3 == 0) continue;
      const std::size_t count = std::min<std::size_t>(1 + random() % 40, ids[i].size() - begin);
      pieces.push_back({&sequences[i],
                        {ids[i].begin() + static_cast<long>(begin), ids[i].begin() + static_cast<long>(begin + count)},
                        {}});
      owners.push_back(i);
    }
    if (pieces.empty()) continue;
    const Rows logits = runner_.step(pieces).logits;
    std::size_t row = 0;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      for (std::size_t t = 0; t < pieces[p].ids.size(); ++t) found[owners[p]].push_back(logits[row++]);
    }
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) expect_equal(found[i], "logits." + std::to_string(lengths[i]));
}

TEST_P(GoldenF32, ContinuesGreedilyWithTheSameTokens) {
  auto sequence = runner_.open();
  std::vector<std::int32_t> next = golden_.ids("ids.5"), output;
  for (int i = 0; i < 32; ++i) {
    next = {arg_max(runner_.step({{&sequence, next, {}}}).logits.back())};
    output.push_back(next.front());
  }
  EXPECT_EQ(output, golden_.ids("greedy_after_5"));
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenF32, testing::Values("dense-ratio3", "moe-ratio2", "dense-packed"),
                         [](const auto& checkpoint) {
                           std::string name = checkpoint.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

constexpr double quantized_tolerance = 2e-4;

class GoldenQuantized : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(GoldenQuantized, AnswersEveryLengthAsItsDequantizedWeightsDo) {
  const auto& [folder, instruction_set] = GetParam();
  const auto directory = source_dir() / "tests/data/golden" / folder;
  const Golden golden(directory / "expected.safetensors");
  ModelRunner runner(directory, {.threads = 2, .compute = Compute::f32, .instruction_set = instruction_set});
  ASSERT_GE(golden.lengths().size(), 4u);
  for (const int length : golden.lengths()) {
    const auto n = std::to_string(length);
    const auto output = runner.run(golden.ids("ids." + n), 0, true);
    EXPECT_LT(relative_error(output.logits, golden.rows("logits." + n)), quantized_tolerance) << n;
    if (length > 1) {
      EXPECT_LT(relative_error(output.draft_logits, golden.rows("mtp_logits." + n)), quantized_tolerance) << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenQuantized,
                         testing::Combine(testing::Values("dense-ratio3-fp8-block", "dense-ratio3-ct-int4",
                                                          "moe-ratio2-fp8-block", "moe-ratio2-modelopt-mixed"),
                                          testing::Values("", "plain")),
                         [](const auto& checkpoint) {
                           std::string name = std::get<0>(checkpoint.param) + "_" +
                                              (std::get<1>(checkpoint.param).empty() ? "best" : "plain");
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class GoldenBf16 : public testing::TestWithParam<std::string> {
 protected:
  /// Error of every tensor beside that of HF's own bf16 run.
  struct Comparison {
    std::string name;
    double ours, theirs;
  };
  std::vector<Comparison> compare(const std::string& folder) {
    const auto directory = source_dir() / "tests/data/golden" / folder;
    const Golden golden(directory / "expected.safetensors");
    const Json yardstick =
        parse_json(read_text_file(directory / "yardstick.json"), "yardstick")["relative_l2_error_of_hf_bf16"];
    ModelRunner runner(directory, {.threads = 2, .compute = Compute::bf16, .instruction_set = GetParam()});
    std::vector<Comparison> all;
    for (const int length : golden.lengths()) {
      const auto n = std::to_string(length);
      const auto output = runner.run(golden.ids("ids." + n), 0, true);
      auto add = [&](const Rows& found, const std::string& name) {
        all.push_back({name, relative_error(found, golden.rows(name)), yardstick.at(name).get<double>()});
      };
      add(output.logits, "logits." + n);
      if (length > 1) add(output.draft_logits, "mtp_logits." + n);
    }
    Rows stream;
    runner.run(golden.ids("ids.65"), 0, false, [&](std::int64_t, const Tensor& rows) {
      for (Row& row : runner.read_rows(rows)) stream.push_back(std::move(row));
    });
    all.push_back({"hidden_per_layer.65", relative_error(stream, golden.rows("hidden_per_layer.65")),
                   yardstick.at("hidden_per_layer.65").get<double>()});
    return all;
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2.0;
}

TEST_P(GoldenBf16, IsNoWorseThanTwiceTheReferencesOwnErrorOnDenseModels) {
  for (const char* folder : {"dense-ratio3", "dense-packed"}) {
    for (const Comparison& tensor : compare(folder)) {
      EXPECT_LT(tensor.ours, 2.0 * tensor.theirs + 0.01) << folder << " " << tensor.name;
    }
  }
}

// Routers near a tie make single tensors of a mixture a lottery; the median over lengths is steady.
TEST_P(GoldenBf16, HasAMedianErrorWithinTwiceTheReferencesOnMixtures) {
  for (const char* kind : {"logits.", "mtp_logits."}) {
    std::vector<double> ours, theirs;
    for (const Comparison& tensor : compare("moe-ratio2")) {
      if (!tensor.name.starts_with(kind)) continue;
      ours.push_back(tensor.ours);
      theirs.push_back(tensor.theirs);
    }
    EXPECT_LT(median(ours), 2.0 * median(theirs) + 0.01) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(BestInstructionSet, GoldenBf16, testing::Values(""),
                         [](const auto&) { return "chosen_for_this_machine"; });
INSTANTIATE_TEST_SUITE_P(InstructionSets, GoldenBf16, testing::Values("plain"),
                         [](const auto& set) { return set.param; });

}  // namespace
}  // namespace sluice::test
