#include "base/mmap.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace sluice {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail<LoadError>("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  struct stat status{};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    fail<LoadError>("{}: is not a regular file", path.string());
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {
    void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int error = errno;
    close(descriptor);
    if (mapped == MAP_FAILED) fail<LoadError>("{}: cannot be mapped: {}", path.string(), std::strerror(error));
    data_ = static_cast<const std::byte*>(mapped);
  } else {
    close(descriptor);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::span<const std::byte> part) const {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::string read_text_file(const std::filesystem::path& path, std::size_t limit) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    fail<LoadError>("{}: {}", path.string(),
                    std::filesystem::exists(path, error) ? "is not a regular file" : "no such file");
  }
  const auto size = std::filesystem::file_size(path, error);
  if (error) fail<LoadError>("{}: {}", path.string(), error.message());
  if (size > limit) fail<LoadError>("{}: {} bytes, more than the limit of {}", path.string(), size, limit);
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file || !file.read(text.data(), static_cast<std::streamsize>(size))) {
    fail<LoadError>("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  return text;
}

}  // namespace sluice
