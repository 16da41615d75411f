// A matrix of any stored form, changed at random: it must be refused, or give finite numbers, the same from its codes
// and factors as from its rows.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "support/quantized_matrices.h"
#include "weights/fused_experts.h"

namespace {

using namespace sluice;

constexpr std::int64_t experts = 2, most_elements = 1 << 16;

/// Takes the input apart.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::size_t byte() {
    if (bytes_.empty()) return 0;
    const std::size_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  std::size_t below(std::size_t count) { return (byte() << 8 | byte()) % count; }

 private:
  std::span<const std::uint8_t> bytes_;
};

void change(test::MemoryCheckpoint& checkpoint, Input& input) {
  const std::vector<std::string> names = checkpoint.names();
  if (names.empty()) return;
  const std::string& name = names[input.below(names.size())];
  StoredTensor& tensor = checkpoint.tensor(name);
  std::vector<std::byte>& data = checkpoint.data(name);
  switch (input.byte() % 6) {
    case 0: return checkpoint.remove(name);
    case 1:
      if (tensor.block_type == nullptr) tensor.dtype = static_cast<DType>(input.below(16));
      break;
    case 2:
      if (!tensor.shape.empty())
        tensor.shape[input.below(tensor.shape.size())] = static_cast<std::int64_t>(input.byte());
      break;
    case 3: tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(input.byte() % 4)); break;
    default:
      for (std::size_t at = data.empty() ? 0 : input.below(data.size()), end = at + 1 + input.byte() % 8;
           at < std::min(end, data.size()); ++at) {
        data[at] = static_cast<std::byte>(input.byte());
      }
      return;
  }
  std::int64_t elements = 1;  // parsers bound the product too
  for (const std::int64_t size : tensor.shape)
    elements = std::min(elements * std::max<std::int64_t>(size, 1), most_elements + 1);
  if (elements > most_elements || tensor.shape.size() > 8) return checkpoint.remove(name);
  if (tensor.block_type != nullptr &&
      (tensor.shape.empty() || tensor.shape.back() % tensor.block_type->values != 0 || tensor.elements() == 0)) {
    return checkpoint.remove(name);  // a parser lets no such tensor through
  }
  data.resize(tensor.byte_size());
}

void read(const SourceMatrix& matrix) {
  const auto count = static_cast<std::size_t>(matrix.out * matrix.in);
  std::vector<float> rows(count), row(static_cast<std::size_t>(matrix.in));
  matrix.dequantize(0, matrix.out, rows.data());
  const auto coding = matrix.coding();
  if (!coding && matrix.values().block_type == nullptr) return;  // plain numbers are what they are
  for (const float number : rows) {
    if (!std::isfinite(number)) std::abort();
  }
  if (!coding) return;
  const std::vector<std::int32_t> order = matrix.input_order();
  CodedRowBuffer buffer(*coding, matrix.in);
  for (std::int64_t r = 0; r < matrix.out; ++r) {
    matrix.read_row(r, *coding, order, buffer);
    decode_row(*coding, buffer.row(), matrix.in, row.data());
    restore_order(order, row.data());
    const float* same = rows.data() + r * matrix.in;
    float largest = 0.0f;
    for (std::int64_t i = 0; i < matrix.in; ++i) largest = std::max(largest, std::fabs(same[i]));
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (std::fabs(row[i] - same[i]) > 1e-5f * largest + 1e-37f) std::abort();
    }
  }
}

/// The same tensors once for each expert.
test::MemoryCheckpoint repeated(const test::MemoryCheckpoint& single) {
  test::MemoryCheckpoint all;
  for (const std::string& name : single.names()) {
    const StoredTensor& tensor = *single.find(name);
    std::vector<std::int64_t> shape = tensor.shape;
    shape.insert(shape.begin(), experts);
    std::vector<std::byte> bytes;
    for (std::int64_t e = 0; e < experts; ++e) {
      bytes.insert(bytes.end(), single.bytes(tensor).begin(), single.bytes(tensor).end());
    }
    all.add(name, tensor.dtype, shape, std::move(bytes), tensor.block_type);
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<test::QuantizedForm> forms = test::quantized_forms();
  Input input({data, size});
  const test::QuantizedForm& form = forms[input.byte() % forms.size()];
  const std::int64_t out = form.out_step * static_cast<std::int64_t>(1 + input.byte() % 3);
  const std::int64_t in = form.in_step * static_cast<std::int64_t>(1 + input.byte() % 5);
  const std::size_t flags = input.byte();
  const StorageHints hints{(flags & 1) != 0};
  test::MemoryCheckpoint checkpoint;
  test::RandomTensors random(1);
  form.write(checkpoint, random, out, in);
  const bool fused = (flags & 2) != 0;
  if (fused) checkpoint = repeated(checkpoint);
  for (int changes = 0; changes < 64 && !input.empty(); ++changes) change(checkpoint, input);
  try {
    if (!fused) {
      if (const auto matrix = find_matrix(checkpoint, "m", out, in, hints)) read(*matrix);
    } else if (const auto all = find_fused_experts(checkpoint, "m", experts, {&out, 1}, in, hints)) {
      for (const auto& expert : all->matrices) {
        for (const SourceMatrix& matrix : expert) read(matrix);
      }
    }
  } catch (const LoadError&) {
  }
  return 0;
}
