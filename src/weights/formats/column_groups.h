#pragma once
#include "weights/format.h"

namespace sluice {

/// Checks the tensor of the group of each column, [in] int32; reads none of it. Throws LoadError.
void check_column_groups(const StoredTensor& groups_of_columns, std::int64_t in);
/// Columns of a group. Throws LoadError for a number of group that is none of 0 .. groups - 1, and for groups that are
/// not equally long: only the last may be shorter.
std::int64_t group_length(const StoredPart& groups_of_columns, std::int64_t groups, std::int64_t in);
/// The columns sorted by group, as they are within each; empty if they are sorted. For what group_length() accepts.
std::vector<std::int32_t> columns_by_group(const StoredPart& groups_of_columns, std::int64_t groups, std::int64_t in);

}  // namespace sluice
