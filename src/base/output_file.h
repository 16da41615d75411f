#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace sluice {

/// A file that is written from front to back and appears under its name only when it is whole: until commit() it is
/// NAME.partial, which the destructor removes. Special files (a pipe, /dev/full) are written in place.
class OutputFile {
 public:
  /// Throws Error when it cannot be created.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Throws Error when it cannot be written (a full disk).
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Throws Error; then no file of that name is new.
  void commit();
  /// Bytes written so far.
  std::uint64_t size() const { return size_; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void fail_with(int error) const;

  std::filesystem::path path_, target_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::uint64_t size_ = 0;
  bool committed_ = false;
};

}  // namespace sluice
