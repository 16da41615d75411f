#include <algorithm>
#include <cstring>

#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/model_files.h"
#include "apps/sequence_batch.h"
#include "apps/session.h"
#include "base/error.h"
#include "weights/safetensors.h"

namespace sluice {

namespace {

std::vector<std::int32_t> checked_ids(const std::vector<std::int64_t>& ids, std::int64_t vocabulary,
                                      std::int64_t max_tokens) {
  const auto count = static_cast<std::int64_t>(ids.size());
  if (count == 0) fail<RequestError>("there are no token ids");
  if (count > max_tokens) fail<RequestError>("{} token ids are more than the context of {} tokens", count, max_tokens);
  std::vector<std::int32_t> checked;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= vocabulary)
      fail<RequestError>("token id {} is out of range, expected 0 to {}", id, vocabulary - 1);
    checked.push_back(static_cast<std::int32_t>(id));
  }
  return checked;
}

/// The numbers of an int64 or int32 tensor of one dimension.
std::vector<std::int64_t> read_ids(const std::string& file, const std::string& key) {
  const std::unique_ptr<Checkpoint> tensors = open_safetensors(file);
  const StoredTensor* tensor = tensors->find(key);
  if (tensor == nullptr) {
    std::vector<std::string> names = tensors->names();
    const std::size_t all = names.size();
    names.resize(std::min<std::size_t>(all, 12));
    fail<LoadError>("{}: has no tensor \"{}\"; --key names one of {}{}", file, key, fmt::join(names, ", "),
                    all > names.size() ? ", ..." : "");
  }
  const bool is_integer = tensor->dtype == DType::i64 || tensor->dtype == DType::i32;
  if (!is_integer || tensor->shape.size() != 1) {
    fail<LoadError>("{}: tensor \"{}\" is {} {}, expected int64 or int32 of one dimension", file, key,
                    name_of(tensor->dtype), tensor->shape_text());
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(tensor->elements()));
  const std::byte* bytes = tensors->bytes(*tensor).data();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int32_t narrow = 0;
    if (tensor->dtype == DType::i64) {
      std::memcpy(&ids[i], bytes + i * sizeof(std::int64_t), sizeof(std::int64_t));
    } else {
      std::memcpy(&narrow, bytes + i * sizeof narrow, sizeof narrow);
      ids[i] = narrow;
    }
  }
  return ids;
}

/// Rows of logits that come in pieces.
class LogitRows {
 public:
  LogitRows(Ops& ops, std::int64_t rows, std::int64_t columns)
      : ops_(ops), buffer_(checked(ops, rows, columns)), rows_(buffer_.view(0, DType::f32, {rows, columns})) {}
  void append(const Tensor& logits) {
    const Tensor place = rows_.slice(0, filled_, logits.size(0));
    ops_.to_host(place.data(), logits);
    filled_ += logits.size(0);
  }
  const Tensor& rows() const { return rows_; }

 private:
  static Buffer checked(Ops& ops, std::int64_t rows, std::int64_t columns) {
    const double bytes = static_cast<double>(rows) * static_cast<double>(columns) * sizeof(float);
    if (bytes > static_cast<double>(ops.free_memory())) {
      fail<RequestError>("{} rows of {} logits take {:.1f} GB, more than the free memory; use fewer tokens", rows,
                         columns, bytes / 1e9);
    }
    return host_buffer(static_cast<std::size_t>(bytes));
  }
  Ops& ops_;
  std::int64_t filled_ = 0;
  Buffer buffer_;
  Tensor rows_;
};

void check_usage(const LogitsOptions& options) {
  options.engine.refuse_unsupported();
  if (options.image_patches.given()) fail<UsageError>("--image-patches: pictures are not in this build");
  if (options.ids.given() == options.input.given()) fail<UsageError>("logits needs either --ids 1,2,3 or --input FILE");
  if (options.out->empty()) fail<UsageError>("logits needs --out FILE.safetensors");
}

}  // namespace

int logits_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  LogitsOptions options;
  if (!read_into(options, info, arguments)) return 0;
  check_usage(options);
  const Environment environment = read_environment();
  const std::vector<std::int64_t> given =
      options.input.given() ? read_ids(*options.input, *options.key) : parse_integers(*options.ids, "--ids");
  const std::unique_ptr<ModelFiles> files = open_model_files(options.model.name(), environment, *options.model.mmproj);
  const LoadedModel loaded = load_weights(files->config(), files->weights(), options.engine, environment);
  Model& model = *loaded.model;
  const ModelInfo& model_info = model.info();
  if (*options.mtp && !model_info.has_draft_head) fail<RequestError>("--mtp: the checkpoint has no draft head");
  const std::int64_t limit = *options.engine.max_model_len;
  const std::vector<std::int32_t> ids = checked_ids(
      given, model_info.vocabulary, limit > 0 ? std::min(limit, model_info.max_context) : model_info.max_context);

  const auto count = static_cast<std::int64_t>(ids.size());
  const bool drafts = *options.mtp && count > 1;
  if (*options.mtp && !drafts) fail<RequestError>("--mtp: needs at least 2 tokens, found {}", count);
  SequenceBatch sequence(*loaded.ops, model, 1, count);
  LogitRows logits(*loaded.ops, count, model_info.vocabulary);
  LogitRows draft_logits(*loaded.ops, drafts ? count - 1 : 1, drafts ? model_info.vocabulary : 1);
  const std::span<const std::int32_t> all(ids);
  for (std::size_t begin = 0; begin < ids.size(); begin += static_cast<std::size_t>(*options.chunk)) {
    const std::size_t size = std::min(ids.size() - begin, static_cast<std::size_t>(*options.chunk));
    const std::span<const std::int32_t> part = all.subspan(begin, size);
    const auto keep = [&](const ForwardResult& result) { logits.append(result.logits); };
    if (drafts) {
      const std::span<const std::int32_t> next = all.subspan(begin + 1, std::min(size, ids.size() - begin - 1));
      sequence.forward_and_draft(part, next, keep,
                                 [&](const ForwardResult& result) { draft_logits.append(result.logits); });
    } else {
      sequence.forward(part, ScoredRows::all, keep);
    }
  }
  std::vector<std::pair<std::string, Tensor>> tensors{{"logits", logits.rows()}};
  if (drafts) tensors.emplace_back("mtp_logits", draft_logits.rows());
  write_safetensors(*options.out, tensors);
  return 0;
}

}  // namespace sluice
