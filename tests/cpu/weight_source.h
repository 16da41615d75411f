#pragma once
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cpu/row_fixture.h"
#include "cpu/simd/instruction_set.h"
#include "weights/formats/plain.h"
#include "weights/weight.h"

namespace sluice {

/// Matrices of random numbers in memory, as a file stores them and as the numbers that they stand for.
class WeightSource {
 public:
  explicit WeightSource(unsigned seed = 7) : random_(seed) {}

  /// A matrix [out, in] of this type; `first_row` rows of something else precede it in its tensor.
  SourceMatrix matrix(DType dtype, std::int64_t out, std::int64_t in, std::int64_t first_row = 0) {
    Stored& stored = tensors_.emplace_back();
    stored.tensor = {fmt::format("matrix{}", tensors_.size()), dtype, {first_row + out, in}, "memory"};
    // An odd address: files do not align tensors.
    stored.bytes.resize(1 + stored.tensor.byte_size());
    std::normal_distribution<float> distribution;
    for (std::int64_t i = 0; i < stored.tensor.elements(); ++i) {
      std::byte* at = stored.bytes.data() + 1 + static_cast<std::size_t>(i) * size_of(dtype);
      const float value = write(dtype, distribution(random_), at);
      if (i >= first_row * in) stored.values.push_back(value);
    }
    return {&plain_format, {{&stored.tensor, stored.bytes.data() + 1}}, first_row, out, in};
  }
  /// The numbers of a matrix that matrix() made.
  const std::vector<float>& values(const SourceMatrix& matrix) const { return stored(matrix.values()).values; }
  /// The numbers of stacked matrices.
  std::vector<float> values(const std::vector<SourceMatrix>& parts) const {
    std::vector<float> all;
    for (const SourceMatrix& part : parts) all.insert(all.end(), values(part).begin(), values(part).end());
    return all;
  }

 private:
  struct Stored {
    StoredTensor tensor;
    std::vector<std::byte> bytes;
    std::vector<float> values;
  };
  const Stored& stored(const StoredTensor& tensor) const {
    for (const Stored& candidate : tensors_) {
      if (&candidate.tensor == &tensor) return candidate;
    }
    check_failed(__FILE__, __LINE__, "a tensor of this source", tensor.name);
  }
  static float write(DType dtype, float value, std::byte* at) {
    if (dtype == DType::f32) {
      std::memcpy(at, &value, 4);
      return value;
    }
    const std::uint16_t bits = dtype == DType::bf16 ? float_to_bf16(value) : float_to_f16(value);
    std::memcpy(at, &bits, 2);
    return dtype == DType::bf16 ? bf16_to_float(bits) : f16_to_float(bits);
  }

  std::mt19937 random_;
  std::deque<Stored> tensors_;
};

/// Those of instruction_sets(), and what only matrix products tell apart.
inline std::vector<std::string> all_instruction_sets() {
  std::vector<std::string> sets = instruction_sets();
  if (choose_instruction_set("").avx512_bf16) sets.push_back("avx512-bf16");
  return sets;
}

}  // namespace sluice
