// Matrices whose columns lie in an order of their own, because their groups are no runs of neighbours.
#include <algorithm>
#include <cmath>
#include <deque>

#include "cpu/row_fixture.h"
#include "cpu/weight_source.h"
#include "support/quantized_matrices.h"

namespace sluice {
namespace {

using test::MemoryCheckpoint;

class InputOrder : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Ops> backend(Compute compute = Compute::f32) const {
    return make_cpu_backend({2, compute, GetParam()});
  }
  SourceMatrix make(const std::string& form, std::int64_t out, std::int64_t in) {
    const auto forms = test::quantized_forms();
    MemoryCheckpoint& checkpoint = checkpoints_.emplace_back();
    std::ranges::find(forms, form, &test::QuantizedForm::name)->write(checkpoint, random_, out, in);
    return checkpoint.matrix("m", out, in);
  }
  static std::vector<float> numbers_of(const SourceMatrix& matrix) {
    std::vector<float> values(static_cast<std::size_t>(matrix.out * matrix.in));
    matrix.dequantize(0, matrix.out, values.data());
    return values;
  }
  /// The same matrix as float32.
  SourceMatrix plain(const SourceMatrix& matrix) {
    MemoryCheckpoint& checkpoint = checkpoints_.emplace_back();
    checkpoint.add_values("m.weight", DType::f32, {matrix.out, matrix.in}, numbers_of(matrix));
    return checkpoint.matrix("m", matrix.out, matrix.in);
  }
  /// A matrix with the columns of `matrix`, a gptq4_act_order one, sorted as its order says.
  SourceMatrix sorted(const SourceMatrix& matrix) {
    const std::vector<std::int32_t> order = matrix.input_order();
    MemoryCheckpoint& to = checkpoints_.emplace_back();
    std::vector<std::uint32_t> words(static_cast<std::size_t>(matrix.out * matrix.in / 8));
    std::vector<std::uint32_t> groups;
    for (std::size_t column = 0; column < order.size(); ++column) {
      const auto from = static_cast<std::size_t>(order[column]);
      for (std::size_t row = 0; row < static_cast<std::size_t>(matrix.out); ++row) {
        const auto rows = static_cast<std::size_t>(matrix.out);
        const std::uint32_t code = word(matrix.parts[0], from / 8 * rows + row) >> (from % 8 * 4) & 15u;
        words[column / 8 * rows + row] |= code << (column % 8 * 4);
      }
      groups.push_back(word(matrix.parts[3], from));
    }
    to.add_values("m.qweight", DType::i32, {matrix.in / 8, matrix.out}, words);
    for (const std::size_t part : {1, 2}) {
      const StoredTensor& tensor = *matrix.parts[part].tensor;
      to.add(tensor.name, tensor.dtype, tensor.shape,
             {matrix.parts[part].bytes, matrix.parts[part].bytes + tensor.byte_size()});
    }
    to.add_values("m.g_idx", DType::i32, {matrix.in}, groups);
    return to.matrix("m", matrix.out, matrix.in);
  }
  static std::uint32_t word(const StoredPart& part, std::size_t index) {
    std::uint32_t value;
    std::memcpy(&value, part.bytes + 4 * index, sizeof value);
    return value;
  }
  void expect_near(const Tensor& found, const Tensor& wanted) {
    ASSERT_EQ(found.shape(), wanted.shape());
    double difference = 0.0, magnitude = 0.0;
    for (std::int64_t row = 0; row < found.size(0); ++row) {
      for (std::int64_t i = 0; i < found.size(1); ++i) {
        difference += std::pow(double{found.row<float>(row)[i]} - wanted.row<float>(row)[i], 2);
        magnitude += std::pow(double{wanted.row<float>(row)[i]}, 2);
      }
    }
    EXPECT_LT(std::sqrt(difference / magnitude), 1e-6);
  }

  test::RandomTensors random_{11};
  Source source_;
  std::deque<MemoryCheckpoint> checkpoints_;
};

TEST_P(InputOrder, AProductHasTheBitsOfSortedInputsWithSortedColumns) {
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    const auto ops = backend(compute);
    for (const auto& [out, in] : std::vector<std::pair<std::int64_t, std::int64_t>>{{8, 40}, {40, 328}, {136, 1000}}) {
      const SourceMatrix matrix = make("gptq4_act_order", out, in);
      const std::vector<std::int32_t> order = matrix.input_order();
      const SourceMatrix same = sorted(matrix);
      ASSERT_TRUE(same.input_order().empty());
      ASSERT_FALSE(order.empty());
      const Tensor x = source_.normal({70, in}), ordered = source_.filled({70, in}, 0.0f);
      for (std::int64_t row = 0; row < 70; ++row) {
        for (std::int64_t i = 0; i < in; ++i) {
          ordered.row<float>(row)[i] = x.row<float>(row)[order[static_cast<std::size_t>(i)]];
        }
      }
      const WeightPtr weight = ops->placer().place({&matrix, 1}), reference = ops->placer().place({&same, 1});
      for (const std::int64_t rows : {1, 2, 9, 70}) {
        const Scope scope(*ops);
        const Tensor found = ops->linear(x.slice(0, 0, rows), *weight);
        expect_same_rows(found, 0, rows, ops->linear(ordered.slice(0, 0, rows), *reference), 0);
      }
    }
  }
}

TEST_P(InputOrder, PartsOfAStackHaveOrdersOfTheirOwn) {
  const auto ops = backend();
  const std::int64_t in = 200;
  const SourceMatrix first = make("gptq4_act_order", 24, in), second = make("gptq4_act_order", 8, in),
                     third = make("packed_int8_act_order", 5, in);
  ASSERT_NE(first.input_order(), second.input_order());
  const std::vector<SourceMatrix> parts{first, first, second, third, plain(second)};
  std::vector<SourceMatrix> numbers;
  for (const SourceMatrix& part : parts) numbers.push_back(plain(part));
  const WeightPtr weight = ops->placer().place(parts), reference = ops->placer().place(numbers);
  std::vector<std::int32_t> rows(static_cast<std::size_t>(weight->out()));
  std::iota(rows.begin(), rows.end(), 0);
  const Tensor ids = source_.integers(rows);
  expect_same_rows(ops->embed(*weight, ids), 0, weight->out(), ops->embed(*reference, ids), 0);
  for (const std::int64_t count : {1, 33}) {
    const Tensor x = source_.normal({count, in});
    expect_near(ops->linear(x, *weight), ops->linear(x, *reference));
  }
}

TEST_P(InputOrder, ExpertsHaveOrdersOfTheirOwn) {
  const auto ops = backend();
  const std::int64_t experts = 5, hidden = 72, inner = 40;
  std::vector<std::vector<SourceMatrix>> gate_up, down, plain_gate_up, plain_down;
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const bool ordered = expert != 1;  // a form without an order among them
    const SourceMatrix gate = make("gptq4_act_order", inner, hidden);
    gate_up.push_back({ordered ? gate : sorted(gate), expert == 2 ? gate : make("gptq4_act_order", inner, hidden)});
    down.push_back({make("gptq4_act_order", hidden, inner)});
    plain_gate_up.push_back({plain(gate_up.back()[0]), plain(gate_up.back()[1])});
    plain_down.push_back({plain(down.back()[0])});
  }
  Placer& placer = ops->placer();
  const auto first = placer.place_experts(gate_up), second = placer.place_experts(down),
             first_plain = placer.place_experts(plain_gate_up), second_plain = placer.place_experts(plain_down);
  for (const std::int64_t rows : {1, 40}) {
    std::vector<std::int32_t> chosen;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::vector<std::int32_t> order = source_.shuffled(static_cast<std::int32_t>(experts));
      chosen.insert(chosen.end(), order.begin(), order.begin() + 3);
    }
    const Routing routing{source_.integers(chosen, {rows, 3}), source_.uniform({rows, 3}, 0.1f, 1.0f)};
    const Tensor x = source_.normal({rows, hidden});
    expect_near(ops->experts(x, routing, *first, *second), ops->experts(x, routing, *first_plain, *second_plain));
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, InputOrder, testing::ValuesIn(all_instruction_sets()), [](const auto& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace sluice
