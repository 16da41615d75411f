#include "weights/formats/plain.h"

#include "base/error.h"

namespace sluice {

namespace {

std::vector<std::string> detect(const Checkpoint& checkpoint, std::string_view base) {
  std::string name = fmt::format("{}.weight", base);
  if (checkpoint.find(name) == nullptr) return {};
  return {std::move(name)};
}

void check(const SourceMatrix& matrix) {
  const StoredTensor& tensor = matrix.values();
  if (!is_plain_float(tensor.dtype)) {
    fail<LoadError>(
        "{}: tensor \"{}\" is {}, expected bfloat16, float16 or float32 (or the scales of a quantized form "
        "of such numbers, which are not beside it)",
        tensor.source, tensor.name, tensor.type_name());
  }
  if (tensor.shape != std::vector<std::int64_t>{matrix.out, matrix.in}) {
    fail<LoadError>("{}: tensor \"{}\" has shape {}, expected [{}, {}]", tensor.source, tensor.name,
                    tensor.shape_text(), matrix.out, matrix.in);
  }
}

void dequantize(const SourceMatrix& matrix, std::int64_t first, std::int64_t count, float* out) {
  const StoredTensor& tensor = matrix.values();
  const auto rows = matrix.plain_rows().subspan(static_cast<std::size_t>(first * matrix.in) * size_of(tensor.dtype));
  to_float(tensor.dtype, rows.data(), static_cast<std::size_t>(count * matrix.in), out);
}

}  // namespace

const Format plain_format{"plain", detect, check, dequantize};

}  // namespace sluice
