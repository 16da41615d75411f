#include "base/output_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace sluice {

namespace fs = std::filesystem;

OutputFile::OutputFile(fs::path path) : path_(std::move(path)), target_(path_) {
  std::error_code ignored;
  const bool in_place = fs::exists(path_, ignored) && !fs::is_regular_file(path_, ignored);
  if (!in_place) target_ += ".partial";
  file_.reset(std::fopen(target_.c_str(), "wb"));
  if (file_ == nullptr) fail<Error>("{}: cannot be created: {}", path_.string(), std::strerror(errno));
}

OutputFile::~OutputFile() {
  file_.reset();
  std::error_code ignored;
  if (!committed_ && target_ != path_) fs::remove(target_, ignored);
}

void OutputFile::fail_with(int error) const {
  fail<Error>("{}: cannot be written: {}", path_.string(), std::strerror(error));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail_with(errno);
  size_ += bytes.size();
}

void OutputFile::commit() {
  if (std::fflush(file_.get()) != 0) fail_with(errno);
  if (std::fclose(file_.release()) != 0) fail_with(errno);
  std::error_code error;
  if (target_ != path_) fs::rename(target_, path_, error);
  if (error) fail_with(error.value());
  committed_ = true;
}

}  // namespace sluice
