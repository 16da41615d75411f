#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"
#include "weights/checkpoint.h"
#include "weights/coding.h"

namespace sluice {

struct Format;
struct PartGrid;

/// One tensor of a matrix. Both pointers are the checkpoint's; the bytes are valid until it releases the tensor.
struct StoredPart {
  const StoredTensor* tensor = nullptr;
  const std::byte* bytes = nullptr;
  const StoredTensor* whole = nullptr;  // the checkpoint's, where `tensor` is one expert's slice of it

  /// The tensor that the checkpoint has.
  const StoredTensor& stored() const { return whole != nullptr ? *whole : *tensor; }
};

/// What the tensors of a matrix cannot tell about themselves.
struct StorageHints {
  bool zero_points_less_one = true;  // where words of columns store them
};

/// A matrix [out, in] (or a run of rows of one) as a file stores it.
struct SourceMatrix {
  const Format* format = nullptr;
  std::vector<StoredPart> parts;  // the values first, then what the format needs beside them
  std::int64_t first_row = 0;     // within the stored tensor, leading dimensions flattened
  std::int64_t out = 0, in = 0;
  StorageHints hints = {};

  const StoredTensor& values() const { return *parts.front().tensor; }
  /// Rows first .. first + count - 1 as float32, [count, in].
  void dequantize(std::int64_t first, std::int64_t count, float* out_values) const;
  /// What its codes and factors are; null for formats without.
  std::optional<Coding> coding() const;
  /// The columns in the coding's order: its column c is column input_order()[c] of the matrix. Empty: c is.
  std::vector<std::int32_t> input_order() const;
  /// Codes and factors of a row, the codes in `order`; coding() and input_order() are given, as they cost more than a
  /// row. Throws LoadError for factors with which a number could not be finite.
  void read_row(std::int64_t row, const Coding& coding, std::span<const std::int32_t> order, CodedRowBuffer& to) const;
  /// How its parts lie over it.
  std::vector<PartGrid> grids() const;
  /// The packed rows themselves, for formats that are plain numbers.
  std::span<const std::byte> plain_rows() const;
};

/// How one tensor of a matrix lies over it: which of the tensor's dimensions runs along the matrix's rows, and how many
/// rows share an element; the same for columns. -1: no dimension does, and all share it.
struct PartGrid {
  int row_axis = 0, column_axis = 1;
  std::int64_t rows = 1, columns = 1;

  static PartGrid whole() { return {-1, -1, 1, 1}; }
};

/// How a file stores matrices. One row of the table of formats; decided for each tensor by the names beside it.
struct Format {
  std::string_view name;
  /// Names of the tensors of matrix `base` (without ".weight") if the checkpoint stores it so; empty otherwise.
  std::vector<std::string> (*detect)(const Checkpoint& checkpoint, std::string_view base);
  /// Stored rows and columns: checks types and shapes of the tensors. Throws LoadError.
  void (*check)(const SourceMatrix& matrix);
  /// Either rows as float32 ...
  void (*dequantize)(const SourceMatrix& matrix, std::int64_t first, std::int64_t count, float* out);
  /// ... or their codes, by the matrix's columns, and factors; both for formats that can be read either way. Throw
  /// LoadError for numbers that are not finite.
  std::optional<Coding> (*coding)(const SourceMatrix& matrix) = nullptr;
  void (*read_row)(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) = nullptr;
  /// How each part lies over the matrix; null where the one part is [out, in]. Reads no bytes but those of an order.
  std::vector<PartGrid> (*grids)(const SourceMatrix& matrix) = nullptr;
  /// SourceMatrix::input_order() where it is not always empty.
  std::vector<std::int32_t> (*input_order)(const SourceMatrix& matrix) = nullptr;
};

/// All formats, in the order in which they are asked.
std::span<const Format* const> formats();
/// The matrix BASE in the first format that detects it; none if no format does. Throws LoadError if that one's check
/// does. No bytes are read.
std::optional<SourceMatrix> find_matrix(const Checkpoint& checkpoint, std::string_view base, std::int64_t out,
                                        std::int64_t in, const StorageHints& hints = {});

}  // namespace sluice
