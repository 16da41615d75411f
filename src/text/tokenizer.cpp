#include "text/tokenizer.h"

#include <fstream>
#include <iterator>
#include <system_error>

#include "base/error.h"
#include "text/tokenizer_file.h"
#include "text/unicode.h"

namespace sluice {

namespace {

/// Larger files are no tokenizers: the family's are 19 MB.
constexpr std::uintmax_t file_size_limit = std::uintmax_t{512} << 20;

class ByteLevelTokenizer : public Tokenizer {
 public:
  explicit ByteLevelTokenizer(TokenizerFile file) : file_(std::move(file)) {
    special_.resize(file_.encoder.vocabulary.size());
    added_.resize(file_.encoder.vocabulary.size());
    for (const AddedToken& token : file_.added_tokens) {
      special_[token.id] = token.special;
      added_[token.id] = true;
      AddedToken looked_for = token;
      if (token.normalized && file_.normalize) looked_for.content = to_nfc(token.content);
      (token.normalized ? in_normalized_ : in_raw_).add(looked_for);
    }
  }

  std::vector<TokenId> encode(std::string_view text, bool recognize_special) const override {
    std::string repaired;
    if (!is_valid_utf8(text)) {
      append_valid_utf8(repaired, text);
      text = repaired;
    }
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3);
    for (const auto& segment : in_raw_.split(text, recognize_special)) {
      if (segment.token)
        ids.push_back(*segment.token);
      else if (file_.normalize && !is_surely_nfc(segment.text))
        encode_normalized(to_nfc(segment.text), recognize_special, ids);
      else
        encode_normalized(segment.text, recognize_special, ids);
    }
    return ids;
  }

  std::string_view bytes_of(TokenId id) const override { return file_.encoder.vocabulary.bytes_of(id); }

  std::string decode(const std::vector<TokenId>& ids, bool skip_special) const override {
    std::string bytes;
    for (TokenId id : ids)
      if (!skip_special || !is_special(id)) bytes += bytes_of(id);
    if (is_valid_utf8(bytes)) return bytes;
    std::string text;
    append_valid_utf8(text, bytes);
    return text;
  }

  bool is_special(TokenId id) const override { return is_known(id) && special_[id]; }
  bool is_added(TokenId id) const override { return is_known(id) && added_[id]; }
  bool is_known(TokenId id) const override { return file_.encoder.vocabulary.contains(id); }
  std::optional<TokenId> id_of(std::string_view token) const override { return file_.encoder.vocabulary.find(token); }
  int size() const override { return file_.encoder.vocabulary.size(); }
  std::optional<TokenId> eos() const override { return file_.eos; }

 private:
  void encode_normalized(std::string_view text, bool recognize_special, std::vector<TokenId>& ids) const {
    for (const auto& segment : in_normalized_.split(text, recognize_special)) {
      if (segment.token) {
        ids.push_back(*segment.token);
        continue;
      }
      PieceScanner scanner(segment.text, file_.pattern);
      for (std::string_view piece = scanner.next(); !piece.empty(); piece = scanner.next())
        file_.encoder.encode(piece, ids);
    }
  }

  TokenizerFile file_;
  AddedTokenMatcher in_raw_, in_normalized_;
  std::vector<bool> special_, added_;  // by id
};

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) fail<LoadError>("{}: {}", path.string(), error.message());
  if (size > file_size_limit)
    fail<LoadError>("{}: {} bytes; a tokenizer file has at most {}", path.string(), size, file_size_limit);
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) fail<LoadError>("{}: cannot be read", path.string());
  return text;
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "tokenizer.json", config = directory / "tokenizer_config.json";
  std::error_code ignored;
  const std::string config_text = std::filesystem::exists(config, ignored) ? read_file(config) : std::string();
  return std::make_shared<ByteLevelTokenizer>(
      read_tokenizer_file(read_file(path), config_text, path.string(), config.string()));
}

std::shared_ptr<const Tokenizer> Tokenizer::parse(std::string_view tokenizer_json, std::string_view config_json,
                                                  std::string_view what) {
  const std::string config_what = fmt::format("tokenizer_config.json of {}", what);
  return std::make_shared<ByteLevelTokenizer>(read_tokenizer_file(tokenizer_json, config_json, what, config_what));
}

}  // namespace sluice
