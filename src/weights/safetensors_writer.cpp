#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "weights/safetensors.h"

namespace sluice {

namespace {

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "F32";
    case DType::f16: return "F16";
    case DType::bf16: return "BF16";
    case DType::i64: return "I64";
    case DType::i32: return "I32";
    case DType::f8_e4m3: return "F8_E4M3";
    case DType::f8_e8m0: return "F8_E8M0";
    case DType::i8: return "I8";
    case DType::u8: return "U8";
    default: break;
  }
  fail<Error>("tensors of type {} cannot be written", name_of(dtype));
}

std::string header_of(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    CHECK(tensor.is_contiguous(), "tensor {}", name);
    Json shape = Json::array();
    for (int i = 0; i < tensor.rank(); ++i) shape.push_back(tensor.size(i));
    header[name] = {
        {"dtype", type_name(tensor.dtype())}, {"shape", shape}, {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  const std::string header = header_of(tensors);
  // Special files (a pipe, /dev/full) are written in place; a regular file appears only when it is whole.
  std::error_code ignored;
  const bool in_place = std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
  std::filesystem::path target = path;
  if (!in_place) target += ".partial";

  auto give_up = [&](const char* what, int error) {
    if (!in_place) std::filesystem::remove(target, ignored);
    fail<Error>("{}: {}: {}", path.string(), what, std::strerror(error));
  };
  std::unique_ptr<std::FILE, Closer> file(std::fopen(target.c_str(), "wb"));
  if (file == nullptr) fail<Error>("{}: cannot be created: {}", path.string(), std::strerror(errno));
  const std::uint64_t header_size = header.size();
  bool ok = std::fwrite(&header_size, sizeof header_size, 1, file.get()) == 1 &&
            std::fwrite(header.data(), 1, header.size(), file.get()) == header.size();
  for (const auto& [name, tensor] : tensors) {
    ok = ok && std::fwrite(tensor.data(), 1, tensor.bytes(), file.get()) == tensor.bytes();
  }
  if (!ok || std::fflush(file.get()) != 0) give_up("cannot be written", errno);
  if (std::fclose(file.release()) != 0) give_up("cannot be written", errno);
  if (!in_place) {
    std::error_code error;
    std::filesystem::rename(target, path, error);
    if (error) give_up("cannot be written", error.value());
  }
}

}  // namespace sluice
