#include "weights/formats/column_groups.h"

#include <algorithm>

#include "base/error.h"
#include "weights/formats/parts.h"

namespace sluice {

void check_column_groups(const StoredTensor& groups_of_columns, std::int64_t in) {
  expect_dtype(groups_of_columns, {DType::i32});
  expect_shape(groups_of_columns, {in});
}

std::int64_t group_length(const StoredPart& groups_of_columns, std::int64_t groups, std::int64_t in) {
  const StoredTensor& tensor = *groups_of_columns.tensor;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(groups));
  for (std::int64_t column = 0; column < in; ++column) {
    const auto group = static_cast<std::int32_t>(word_at(groups_of_columns, column));
    if (group < 0 || group >= groups) {
      fail<LoadError>("{}: tensor \"{}\": column {} is in group {}, and there are scales for {} groups", tensor.source,
                      tensor.name, column, group, groups);
    }
    ++lengths[static_cast<std::size_t>(group)];
  }
  for (std::size_t group = 0; group < lengths.size(); ++group) {
    const bool may_be_shorter = group + 1 == lengths.size() && lengths[group] > 0;
    if (lengths[group] == lengths[0] || (may_be_shorter && lengths[group] < lengths[0])) continue;
    fail<LoadError>("{}: tensor \"{}\": group {} has {} columns, expected {} as in group 0", tensor.source, tensor.name,
                    group, lengths[group], lengths[0]);
  }
  return lengths[0];
}

std::vector<std::int32_t> columns_by_group(const StoredPart& groups_of_columns, std::int64_t groups, std::int64_t in) {
  const std::int64_t length = group_length(groups_of_columns, groups, in);
  std::vector<std::int64_t> next(static_cast<std::size_t>(groups));
  for (std::size_t group = 0; group < next.size(); ++group) next[group] = static_cast<std::int64_t>(group) * length;
  std::vector<std::int32_t> order(static_cast<std::size_t>(in));
  for (std::int64_t column = 0; column < in; ++column) {
    const std::uint32_t group = word_at(groups_of_columns, column);
    order[static_cast<std::size_t>(next[group]++)] = static_cast<std::int32_t>(column);
  }
  if (std::ranges::is_sorted(order)) order.clear();
  return order;
}

}  // namespace sluice
