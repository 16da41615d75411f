#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weights/format.h"

namespace sluice {

/// BASE.NAME of all `needed` and, after them, of those of `optional` that are there; empty if a needed one is not.
std::vector<std::string> names_beside(const Checkpoint& checkpoint, std::string_view base,
                                      std::initializer_list<std::string_view> needed,
                                      std::initializer_list<std::string_view> optional);
/// The tensor BASE.NAME; null if it is not there.
const StoredTensor* tensor_beside(const Checkpoint& checkpoint, std::string_view base, std::string_view name);
/// The part of the matrix whose tensor's name ends in .NAME; null if it has none.
const StoredPart* part_of(const SourceMatrix& matrix, std::string_view name);

/// Throw LoadError that says what was found and what expected.
void expect_shape(const StoredTensor& tensor, std::initializer_list<std::int64_t> shape);
void expect_dtype(const StoredTensor& tensor, std::initializer_list<DType> dtypes);
[[noreturn]] void fail_shape(const StoredTensor& tensor, std::string_view expected);
/// A scale of one number, [] or [1].
void expect_one_float(const StoredTensor& tensor);

/// Element of a tensor of float scales. Throws LoadError if it is not finite.
float finite_scale(const StoredPart& part, std::int64_t index);
/// Copies `count` scales as they are, `stride` apart from `index` on. Throws LoadError for one that is not finite.
void copy_scales(const StoredPart& part, std::int64_t index, std::int64_t stride, std::int64_t count, std::byte* out);
/// Element of a tensor of 32-bit words.
std::uint32_t word_at(const StoredPart& part, std::int64_t index);
/// The low nibble of each byte first.
void unpack_nibbles(const std::byte* bytes, std::int64_t count, std::uint8_t* codes);

}  // namespace sluice
