#include "weights/gguf.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view extension = ".gguf";

/// What the name of a file of a set says: NAME-00002-of-00003.gguf.
struct PartName {
  std::string name;
  std::int64_t number = 1, count = 1;

  fs::path in(const fs::path& folder) const {
    return folder / (count == 1 ? fmt::format("{}{}", name, extension)
                                : fmt::format("{}-{:05}-of-{:05}{}", name, number, count, extension));
  }
};

std::optional<std::int64_t> five_digits(std::string_view text) {
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

PartName parse_part_name(const fs::path& path) {
  std::string file = path.filename().string();
  if (file.ends_with(extension)) file.resize(file.size() - extension.size());
  constexpr std::size_t suffix = std::string_view("-00001-of-00003").size();
  if (file.size() > suffix) {
    const std::string_view end = std::string_view(file).substr(file.size() - suffix);
    const auto number = five_digits(end.substr(1, 5)), count = five_digits(end.substr(10));
    if (end[0] == '-' && end.substr(6, 4) == "-of-" && number && count && *number >= 1 && *number <= *count) {
      return {file.substr(0, file.size() - suffix), *number, *count};
    }
  }
  return {std::move(file)};
}

std::pair<std::unique_ptr<MappedFile>, GgufHeader> open_file(const fs::path& path) {
  auto file = std::make_unique<MappedFile>(path);
  GgufHeader header = parse_gguf_header(file->bytes(), file->bytes().size(), path.string());
  return {std::move(file), std::move(header)};
}

/// Which file of which set a header says it is, counted from 1.
struct Part {
  std::int64_t number = 1, count = 1;
};

Part part_of(const GgufMetadata& metadata) {
  Part part;
  part.count = metadata.integer("split.count").value_or(1);
  part.number = metadata.integer("split.no").value_or(0) + 1;
  if (part.count <= 1) return {};
  if (part.number < 1 || part.number > part.count || part.count > 99999) {
    fail<LoadError>("{}: \"split.no\" is {} and \"split.count\" {}, which do not fit", metadata.source(),
                    part.number - 1, part.count);
  }
  return part;
}

}  // namespace

GgufCheckpoint::GgufCheckpoint(const fs::path& path) {
  auto [file, header] = open_file(path);
  metadata_ = std::move(header.metadata);
  add_file(std::move(file), std::move(header.tensors));
  const Part part = part_of(*metadata_);
  if (part.count == 1) {
    set_description(path.string());
    return;
  }
  PartName name = parse_part_name(path);
  if (name.count != part.count || name.number != part.number) {
    fail<LoadError>("{}: is file {} of {} of a set, whose names must end in -{:05}-of-{:05}.gguf", path.string(),
                    part.number, part.count, part.number, part.count);
  }
  const fs::path folder = path.parent_path();
  if (part.number != 1) {
    fail<LoadError>("{}: is file {} of {} of a set; name the first, {}", path.string(), part.number, part.count,
                    PartName{name.name, 1, name.count}.in(folder).string());
  }
  for (name.number = 2; name.number <= name.count; ++name.number) {
    const fs::path next = name.in(folder);
    std::error_code ignored;
    if (!fs::exists(next, ignored)) {
      fail<LoadError>("{}: missing, but {} says that it is the first of {} files", next.string(), path.string(),
                      part.count);
    }
    auto [next_file, next_header] = open_file(next);
    const Part found = part_of(next_header.metadata);
    if (found.number != name.number || found.count != part.count) {
      fail<LoadError>("{}: says that it is file {} of {}, expected {} of {}", next.string(), found.number, found.count,
                      name.number, part.count);
    }
    add_file(std::move(next_file), std::move(next_header.tensors));
  }
  const auto expected = metadata_->integer("split.tensors.count");
  const auto total = static_cast<std::int64_t>(names().size());
  if (expected && *expected != total) {
    fail<LoadError>("{}: the {} files of the set hold {} tensors, \"split.tensors.count\" says {}", path.string(),
                    part.count, total, *expected);
  }
  set_description(fmt::format("{} ({} files)", path.string(), part.count));
}

std::string gguf_name(const fs::path& path) { return parse_part_name(path).name; }

bool is_later_gguf_part(const fs::path& path) { return parse_part_name(path).number > 1; }

}  // namespace sluice
