#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace sluice {

/// A whole file, mapped read-only. Throws LoadError when it cannot be opened or is no regular file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }
  /// Drops the pages that lie wholly inside `part` from this process; they come back from the file when read.
  void release(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The whole text of a file of at most `limit` bytes. Throws LoadError: missing, unreadable, too large.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit = std::size_t{256} << 20);

}  // namespace sluice
