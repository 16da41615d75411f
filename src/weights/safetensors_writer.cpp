#include <algorithm>

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

std::string in_quotes(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string header_of(std::span<const StoredTensor> tensors) {
  std::string text = "{";
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    CHECK(tensor.block_type == nullptr, "tensor {} is {}", tensor.name, tensor.type_name());
    const std::uint64_t end = offset + tensor.byte_size();
    text +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", text.size() == 1 ? "" : ",",
                    in_quotes(tensor.name), type_name(tensor.dtype), fmt::join(tensor.shape, ","), offset, end);
    offset = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::uint64_t total_bytes(std::span<const StoredTensor> tensors) {
  std::uint64_t total = 0;
  for (const StoredTensor& tensor : tensors) total += tensor.byte_size();
  return total;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::span<const StoredTensor> tensors)
    : file_(path), left_(total_bytes(tensors)) {
  const std::string header = header_of(tensors);
  const std::uint64_t size = header.size();
  file_.write(std::as_bytes(std::span(&size, 1)));
  file_.write(header);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  CHECK(bytes.size() <= left_, "{} bytes, {} are left", bytes.size(), left_);
  file_.write(bytes);
  left_ -= bytes.size();
}

void SafetensorsWriter::finish() {
  CHECK(left_ == 0, "{} bytes are missing", left_);
  file_.commit();
}

SafetensorsFolderWriter::SafetensorsFolderWriter(std::filesystem::path folder, std::vector<StoredTensor> tensors,
                                                 std::uint64_t max_file_bytes)
    : folder_(std::move(folder)), tensors_(std::move(tensors)) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::uint64_t size = tensors_[i].byte_size();
    if (files_.empty() || (files_.back().count > 0 && files_.back().bytes + size > max_file_bytes)) {
      files_.push_back({i, 0, 0});
    }
    ++files_.back().count;
    files_.back().bytes += size;
  }
  CHECK(!files_.empty(), "no tensors for {}", folder_.string());
  open_next();
}

std::string SafetensorsFolderWriter::file_name(std::size_t file) const {
  if (files_.size() == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, files_.size());
}

void SafetensorsFolderWriter::open_next() {
  if (open_ != nullptr) open_->finish();
  const File& file = files_[next_];
  open_ = std::make_unique<SafetensorsWriter>(folder_ / file_name(next_),
                                              std::span(tensors_).subspan(file.first, file.count));
  left_ = file.bytes;
  ++next_;
}

void SafetensorsFolderWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    while (left_ == 0) {
      CHECK(next_ < files_.size(), "{} bytes too many", bytes.size());
      open_next();
    }
    const std::size_t part = std::min<std::size_t>(left_, bytes.size());
    open_->write(bytes.first(part));
    left_ -= part;
    bytes = bytes.subspan(part);
  }
}

void SafetensorsFolderWriter::finish() {
  while (left_ == 0 && next_ < files_.size()) open_next();
  open_->finish();
  CHECK(next_ == files_.size(), "{} of {} files", next_, files_.size());
  if (files_.size() > 1) write_index();
}

void SafetensorsFolderWriter::write_index() const {
  OutputFile file(folder_ / "model.safetensors.index.json");
  file.write(fmt::format("{{\n  \"metadata\": {{\"total_size\": {}}},\n  \"weight_map\": {{", total_bytes(tensors_)));
  for (std::size_t i = 0; i < files_.size(); ++i) {
    for (const StoredTensor& tensor : std::span(tensors_).subspan(files_[i].first, files_[i].count)) {
      file.write(fmt::format("{}\n    {}: \"{}\"", &tensor == tensors_.data() ? "" : ",", in_quotes(tensor.name),
                             file_name(i)));
    }
  }
  file.write("\n  }\n}\n");
  file.commit();
}

void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<StoredTensor> described;
  for (const auto& [name, tensor] : tensors) {
    CHECK(tensor.is_contiguous(), "tensor {}", name);
    StoredTensor& entry = described.emplace_back();
    entry.name = name;
    entry.dtype = tensor.dtype();
    for (int i = 0; i < tensor.rank(); ++i) entry.shape.push_back(tensor.size(i));
  }
  SafetensorsWriter writer(path, described);
  for (const auto& [name, tensor] : tensors) {
    writer.write({static_cast<const std::byte*>(tensor.data()), tensor.bytes()});
  }
  writer.finish();
}

}  // namespace sluice
