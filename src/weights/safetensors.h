#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"
#include "weights/mapped_checkpoint.h"

namespace sluice {

/// A file (x.safetensors), or a directory with model.safetensors.index.json, model.safetensors, or one lone
/// *.safetensors file; memory-mapped. Throws LoadError for anything that does not add up: truncated, overlapping
/// or out-of-range data, wrong byte counts, unknown types, doubled names, shards or names that the index
/// lists and no file holds (and the reverse), headers over 100 MiB.
std::unique_ptr<Checkpoint> open_safetensors(const std::filesystem::path& path);

/// The tensors that a file's header claims, checked against the data that follows it; bytes are not read.
/// `file_size` is that of the whole file, `head` its first bytes (8 + header at least).
std::vector<FileTensor> parse_safetensors_header(std::span<const std::byte> head, std::uint64_t file_size,
                                                 std::string_view what);

/// Writes contiguous host tensors to a new file. Throws Error when the disk is full or the path is bad; then no
/// file of that name is left behind.
void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace sluice
