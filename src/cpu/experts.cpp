#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/cpu_ops.h"
#include "cpu/linear/product.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

namespace {

/// Rows that are worked on at a time, which bounds the step memory.
constexpr std::int64_t rows_at_a_time = 1024;

/// The (row, choice) pairs of some rows, sorted by expert; within an expert by row.
struct Grouping {
  struct Group {
    std::int64_t expert, first, count;  // places first .. first + count - 1
  };
  std::vector<Group> groups;           // of the experts that are used
  std::vector<std::int64_t> row_of;    // [places]
  std::vector<std::int64_t> place_of;  // [rows, choices]

  Grouping(const Tensor& chosen, std::int64_t first_row, std::int64_t rows, std::int64_t experts) {
    const std::int64_t choices = chosen.size(1);
    std::vector<std::int64_t> next(static_cast<std::size_t>(experts) + 1);
    for_each_choice(chosen, first_row, rows, [&](std::int64_t, std::int64_t, std::int64_t expert) {
      CHECK(expert >= 0 && expert < experts, "expert {} of {}", expert, experts);
      ++next[static_cast<std::size_t>(expert) + 1];
    });
    for (std::size_t expert = 0; expert < static_cast<std::size_t>(experts); ++expert) {
      const std::int64_t count = next[expert + 1];
      if (count > 0) groups.push_back({static_cast<std::int64_t>(expert), next[expert], count});
      next[expert + 1] += next[expert];
    }
    row_of.resize(static_cast<std::size_t>(rows * choices));
    place_of.resize(row_of.size());
    for_each_choice(chosen, first_row, rows, [&](std::int64_t row, std::int64_t choice, std::int64_t expert) {
      const std::int64_t place = next[static_cast<std::size_t>(expert)]++;
      row_of[static_cast<std::size_t>(place)] = first_row + row;
      place_of[static_cast<std::size_t>(row * choices + choice)] = place;
    });
  }

  template <class Body>
  static void for_each_choice(const Tensor& chosen, std::int64_t first_row, std::int64_t rows, Body body) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto* experts = chosen.row<std::int32_t>(first_row + row);
      for (std::int64_t choice = 0; choice < chosen.size(1); ++choice) body(row, choice, experts[choice]);
    }
  }
};

/// One product for each group: rows `inputs` (by place) with a segment of the group's matrix, to rows of `out` (by
/// place).
std::vector<Product> group_products(const Grouping& grouping, const CpuExpertWeights& weights, const Segment& segment,
                                    const LinearKernel& kernel, const std::vector<const float*>& inputs,
                                    std::byte* packed, float* out) {
  std::vector<Product> products;
  for (const auto& [expert, first, count] : grouping.groups) {
    products.push_back(
        {weights.data(segment, expert), inputs.data() + first, packed + packed_bytes(kernel, segment.panels, first),
         count, out + first * weights.out() + segment.first_row, weights.out(), weights.order(segment, expert)});
  }
  return products;
}

}  // namespace

Tensor CpuOps::experts(const Tensor& x, const Routing& routing, const ExpertWeights& gate_up,
                       const ExpertWeights& down) {
  const CpuExpertWeights &first = cpu_weights(gate_up), &second = cpu_weights(down);
  const HeadRows in(x);
  const std::int64_t inner = second.in();
  CHECK(x.rank() == 2 && in.n == first.in() && first.out() == 2 * inner && first.experts() == second.experts() &&
            routing.experts.size(0) == in.rows && routing.weights.shape() == routing.experts.shape(),
        "{} by {} x [{}, {}] and {} x [{}, {}], routed by {}", x.shape().to_string(), first.experts(), first.out(),
        first.in(), second.experts(), second.out(), second.in(), routing.experts.shape().to_string());
  const Tensor result = allocate(DType::f32, {in.rows, second.out()});
  for (std::int64_t row = 0; row < in.rows; row += rows_at_a_time) {
    expert_rows(in, routing, first, second, row, std::min(rows_at_a_time, in.rows - row), result);
  }
  return result;
}

void CpuOps::expert_rows(const HeadRows& in, const Routing& routing, const CpuExpertWeights& gate_up,
                         const CpuExpertWeights& down, std::int64_t first_row, std::int64_t rows,
                         const Tensor& result) {
  const Scope scope(*this);
  const Grouping grouping(routing.experts, first_row, rows, gate_up.experts());
  const std::int64_t choices = routing.experts.size(1), places = rows * choices;
  const auto multiply_groups = [&](const CpuExpertWeights& weights, const std::vector<const float*>& inputs) {
    const Tensor out = allocate(DType::f32, {places, weights.out()});
    for (const Segment& segment : weights.segments()) {
      const LinearKernel& kernel = choose_linear_kernel(segment.panels.layout, instruction_set_, compute_);
      const Scope packing(*this);
      auto* packed = static_cast<std::byte*>(arena_.allocate(packed_bytes(kernel, segment.panels, places)));
      multiply(pool_, kernel, segment.panels,
               group_products(grouping, weights, segment, kernel, inputs, packed, out.as<float>()));
    }
    return out;
  };

  std::vector<const float*> inputs;
  for (const std::int64_t row : grouping.row_of) inputs.push_back(in.at(row));
  const Tensor hidden = silu_mul(multiply_groups(gate_up, inputs));
  for (std::int64_t place = 0; place < places; ++place)
    inputs[static_cast<std::size_t>(place)] = hidden.row<float>(place);
  const Tensor parts = multiply_groups(down, inputs);

  const RowKernels& kernels = row_kernels(instruction_set_);
  const std::int64_t n = down.out();
  pool_.parallel_for(rows, grain_of_rows(n * choices), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* sum = result.row<float>(first_row + row);
      std::fill_n(sum, n, 0.0f);
      for (std::int64_t choice = 0; choice < choices; ++choice) {  // in routing's order, whatever the grouping
        const std::int64_t place = grouping.place_of[static_cast<std::size_t>(row * choices + choice)];
        kernels.add_scaled(sum, parts.row<float>(place), routing.weights.row<float>(first_row + row)[choice], n);
      }
    }
  });
}

}  // namespace sluice
