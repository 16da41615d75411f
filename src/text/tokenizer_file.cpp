#include "text/tokenizer_file.h"

#include <string>

#include <simdjson.h>

#include "base/error.h"
#include "base/json.h"
#include "text/unicode.h"

namespace sluice {

namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

/// Longest text of a token; bounds the time that looking for added tokens takes.
constexpr std::size_t token_length_limit = 4096;

/// Merges that are looked up together, and how far ahead of the tokens their memory is fetched.
constexpr std::size_t merge_block = 64, prefetch_distance = 16;

/// A message that quotes a file may be as long as the file.
constexpr std::size_t message_limit = 1000;

std::string shortened(const std::string& message) {
  if (message.size() <= message_limit) return message;
  std::string text;
  append_valid_utf8(text, std::string_view(message).substr(0, message_limit), true);
  return text + "...";
}

/// Reads one tokenizer.json; every member function throws LoadError.
class FileReader {
 public:
  explicit FileReader(std::string_view what) : what_(what) {}
  TokenizerFile read(std::string_view json);

 private:
  struct WrittenMerge {
    std::string_view left, right;
    std::string merged;
  };
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail<LoadError>("{}: {}", what_, shortened(fmt::format(format, std::forward<Args>(args)...)));
  }
  static bool is_absent(const object& from, const char* key);
  template <class T>
  T get(const object& from, const char* key, std::string_view where) const;
  bool flag(const object& from, const char* key, bool otherwise, std::string_view where) const;
  object as_object(const element& value, std::string_view where) const;
  TokenId token_id(const element& value, std::string_view token) const;
  std::string_view type_of(const object& step, std::string_view where) const;

  void read_model(const object& model);
  void read_vocabulary(const object& vocabulary);
  void read_merges(const array& merges);
  WrittenMerge written_merge(const element& value, std::uint32_t rank) const;
  void add_merges(const std::vector<WrittenMerge>& block, std::uint32_t first_rank);
  void read_bytes();
  void read_added_tokens(const array& tokens);
  void read_normalizer(const object& normalizer);
  void read_pre_tokenizer(const object& pre_tokenizer);
  void read_split(const object& split);
  void check_post_processor(const object& post_processor) const;
  void check_decoder(const object& decoder) const;

  std::string_view what_;
  TokenizerFile file_;
  std::vector<bool> is_added_;  // by id, as far as any was seen
};

bool FileReader::is_absent(const object& from, const char* key) {
  element value;
  return from[key].get(value) != simdjson::SUCCESS || value.is_null();
}

template <class T>
T FileReader::get(const object& from, const char* key, std::string_view where) const {
  element value;
  T typed;
  if (from[key].get(value) != simdjson::SUCCESS) refuse("{} has no \"{}\"", where, key);
  if (value.get(typed) != simdjson::SUCCESS) refuse("\"{}\" of {} has the wrong JSON type", key, where);
  return typed;
}

bool FileReader::flag(const object& from, const char* key, bool otherwise, std::string_view where) const {
  return is_absent(from, key) ? otherwise : get<bool>(from, key, where);
}

object FileReader::as_object(const element& value, std::string_view where) const {
  object typed;
  if (value.get(typed) != simdjson::SUCCESS) refuse("{} is not a JSON object", where);
  return typed;
}

TokenId FileReader::token_id(const element& value, std::string_view token) const {
  std::int64_t id = 0;
  if (value.get(id) != simdjson::SUCCESS) refuse("the id of token \"{}\" is not an integer", token);
  if (id < 0 || id >= token_id_limit)
    refuse("token \"{}\" has the id {}; ids go from 0 to {}", token, id, token_id_limit - 1);
  return static_cast<TokenId>(id);
}

std::string_view FileReader::type_of(const object& step, std::string_view where) const {
  return get<std::string_view>(step, "type", where);
}

TokenizerFile FileReader::read(std::string_view json) {
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root); error != simdjson::SUCCESS)
    refuse("not valid JSON: {}", simdjson::error_message(error));
  const object top = as_object(root, "the file");
  read_model(get<object>(top, "model", "the file"));
  if (!is_absent(top, "added_tokens")) read_added_tokens(get<array>(top, "added_tokens", "the file"));
  if (!is_absent(top, "normalizer")) read_normalizer(get<object>(top, "normalizer", "the file"));
  read_pre_tokenizer(get<object>(top, "pre_tokenizer", "the file"));
  if (!is_absent(top, "post_processor")) check_post_processor(get<object>(top, "post_processor", "the file"));
  check_decoder(get<object>(top, "decoder", "the file"));
  return std::move(file_);
}

void FileReader::read_model(const object& model) {
  // Older files leave the type out where there are merges.
  const std::string_view type =
      is_absent(model, "type") && !is_absent(model, "merges") ? "BPE" : type_of(model, "model");
  if (type != "BPE") refuse("model type \"{}\" is not supported, only BPE", type);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!is_absent(model, key) && !get<std::string_view>(model, key, "model").empty())
      refuse("model option \"{}\" is not supported", key);
  if (!is_absent(model, "dropout") && get<double>(model, "dropout", "model") != 0)
    refuse("model option \"dropout\" is not supported");
  if (flag(model, "byte_fallback", false, "model")) refuse("model option \"byte_fallback\" is not supported");
  file_.encoder.whole_pieces_first = flag(model, "ignore_merges", false, "model");
  read_vocabulary(get<object>(model, "vocab", "model"));
  read_bytes();
  read_merges(get<array>(model, "merges", "model"));
}

void FileReader::read_vocabulary(const object& vocabulary) {
  file_.encoder.vocabulary.reserve(vocabulary.size());
  auto ahead = vocabulary.begin();
  for (std::size_t i = 0; i < prefetch_distance && ahead != vocabulary.end(); ++i) ++ahead;
  for (const auto& [text, value] : vocabulary) {
    if (ahead != vocabulary.end()) {
      file_.encoder.vocabulary.prefetch(ahead.key());
      ++ahead;
    }
    const TokenId id = token_id(value, text);
    if (text.size() > token_length_limit)
      refuse("the token with id {} is longer than {} bytes", id, token_length_limit);
    const auto bytes = printable_to_bytes(text);
    switch (file_.encoder.vocabulary.add(text, bytes ? *bytes : text, id)) {
      case Vocabulary::Added::yes: break;
      case Vocabulary::Added::id_taken:
        refuse("tokens \"{}\" and \"{}\" both have the id {}", file_.encoder.vocabulary.text_of(id), text, id);
      case Vocabulary::Added::text_taken: refuse("token \"{}\" is in the vocabulary twice", text);
    }
  }
}

/// Each byte that occurs in UTF-8 needs a token.
void FileReader::read_bytes() {
  for (unsigned value = 0; value < 256; ++value) {
    const std::string text = bytes_to_printable(std::string(1, static_cast<char>(value)));
    const auto id = file_.encoder.vocabulary.find(text);
    const bool occurs = value != 0xC0 && value != 0xC1 && value < 0xF5;
    if (!id && occurs) refuse("the vocabulary has no token for the byte {:#04x} (\"{}\")", value, text);
    file_.encoder.byte_tokens[value] = id.value_or(-1);
  }
}

void FileReader::read_merges(const array& merges) {
  file_.encoder.merges.reserve(merges.size());
  std::vector<WrittenMerge> block;
  std::uint32_t rank = 0;
  for (const element& value : merges) {
    block.push_back(written_merge(value, rank++));
    if (block.size() < merge_block) continue;
    add_merges(block, rank - static_cast<std::uint32_t>(block.size()));
    block.clear();
  }
  add_merges(block, rank - static_cast<std::uint32_t>(block.size()));
}

/// A merge is "left right" or ["left", "right"].
FileReader::WrittenMerge FileReader::written_merge(const element& value, std::uint32_t rank) const {
  std::string_view left, right;
  array pair;
  if (value.get(left) == simdjson::SUCCESS) {
    const std::size_t space = left.find(' ');
    if (space == std::string_view::npos || left.find(' ', space + 1) != std::string_view::npos)
      refuse("merge {} (\"{}\") is not two tokens with a space between them", rank, left);
    right = left.substr(space + 1);
    left = left.substr(0, space);
  } else if (value.get(pair) != simdjson::SUCCESS || pair.size() != 2 || pair.at(0).get(left) != simdjson::SUCCESS ||
             pair.at(1).get(right) != simdjson::SUCCESS) {
    refuse("merge {} is neither a string nor a pair of strings", rank);
  }
  return {left, right, std::string(left).append(right)};
}

void FileReader::add_merges(const std::vector<WrittenMerge>& block, std::uint32_t first_rank) {
  std::vector<std::string_view> texts;
  for (const WrittenMerge& merge : block) texts.insert(texts.end(), {merge.left, merge.right, merge.merged});
  std::vector<TokenId> ids(texts.size());
  file_.encoder.vocabulary.find_all(texts, ids);
  for (std::size_t i = 0; i < ids.size(); i += 3) file_.encoder.merges.prefetch(ids[i], ids[i + 1]);
  for (std::uint32_t i = 0; i < block.size(); ++i) {
    const std::uint32_t rank = first_rank + i;
    for (std::size_t part = 3 * i; part < 3 * i + 3; ++part)
      if (ids[part] < 0)
        refuse("merge {} needs the token \"{}\", which the vocabulary does not have", rank, texts[part]);
    if (!file_.encoder.merges.add(ids[3 * i], ids[3 * i + 1], {rank, ids[3 * i + 2]}))
      refuse("merge {} (\"{} {}\") is in the list twice", rank, block[i].left, block[i].right);
  }
}

void FileReader::read_added_tokens(const array& tokens) {
  for (const element& value : tokens) {
    const std::string where = fmt::format("added token {}", file_.added_tokens.size());
    const object entry = as_object(value, where);
    AddedToken token;
    token.content = get<std::string_view>(entry, "content", where);
    if (token.content.empty() || token.content.size() > token_length_limit)
      refuse("{} has {} bytes; 1 to {} are allowed", where, token.content.size(), token_length_limit);
    token.id = token_id(get<element>(entry, "id", where), token.content);
    token.special = flag(entry, "special", false, where);
    token.normalized = flag(entry, "normalized", !token.special, where);
    token.lstrip = flag(entry, "lstrip", false, where);
    token.rstrip = flag(entry, "rstrip", false, where);
    if (flag(entry, "single_word", false, where))
      refuse("added token \"{}\" has \"single_word\", which is not supported", token.content);
    if (token.id < static_cast<TokenId>(is_added_.size()) && is_added_[token.id])
      refuse("two added tokens have the id {}, the second is \"{}\"", token.id, token.content);
    Vocabulary& vocabulary = file_.encoder.vocabulary;
    const bool known = vocabulary.find(token.content) == token.id;
    if (!known && vocabulary.add(token.content, token.content, token.id) != Vocabulary::Added::yes)
      refuse("added token \"{}\" with the id {} disagrees with the vocabulary", token.content, token.id);
    is_added_.resize(vocabulary.size());
    is_added_[token.id] = true;
    file_.added_tokens.push_back(std::move(token));
  }
}

void FileReader::read_normalizer(const object& normalizer) {
  const std::string_view type = type_of(normalizer, "normalizer");
  if (type == "Sequence") {
    for (const element& step : get<array>(normalizer, "normalizers", "normalizer")) {
      const object inner = as_object(step, "a normalizer of the sequence");
      if (type_of(inner, "normalizer") == "Sequence") refuse("normalizer sequences inside sequences are not supported");
      read_normalizer(inner);
    }
  } else if (type == "NFC") {
    file_.normalize = true;
  } else {
    refuse("normalizer type \"{}\" is not supported, only NFC", type);
  }
}

void FileReader::read_pre_tokenizer(const object& pre_tokenizer) {
  const std::string_view type = type_of(pre_tokenizer, "pre_tokenizer");
  if (type != "Sequence")
    refuse("pre_tokenizer type \"{}\" is not supported, only a Sequence of Split and ByteLevel", type);
  const array steps = get<array>(pre_tokenizer, "pretokenizers", "pre_tokenizer");
  std::size_t index = 0;
  for (const element& value : steps) {
    const object step = as_object(value, "a pre_tokenizer of the sequence");
    const std::string_view expected = index == 0 ? "Split" : "ByteLevel";
    const std::string_view found = type_of(step, "pre_tokenizer");
    if (index > 1 || found != expected)
      refuse("pre_tokenizer {} of the sequence is \"{}\"; only Split, then ByteLevel is supported", index, found);
    if (index++ == 0) {
      read_split(step);
    } else if (flag(step, "add_prefix_space", true, "ByteLevel") || flag(step, "use_regex", true, "ByteLevel")) {
      refuse("pre_tokenizer ByteLevel is only supported without add_prefix_space and use_regex");
    }
  }
  if (index != 2) refuse("pre_tokenizer has {} steps; Split, then ByteLevel is expected", index);
}

void FileReader::read_split(const object& split) {
  const object pattern = get<object>(split, "pattern", "pre_tokenizer Split");
  const std::string_view regex = get<std::string_view>(pattern, "Regex", "the pattern of pre_tokenizer Split");
  const auto known = word_pattern_of(regex);
  if (!known) refuse("the pre_tokenizer has the unknown pattern {}", regex);
  file_.pattern = *known;
  const std::string_view behavior = get<std::string_view>(split, "behavior", "pre_tokenizer Split");
  if (behavior != "Isolated") refuse("pre_tokenizer Split has the behavior \"{}\"; Isolated is expected", behavior);
  if (flag(split, "invert", false, "pre_tokenizer Split"))
    refuse("pre_tokenizer Split with \"invert\" is not supported");
}

/// ByteLevel only moves offsets, which nobody here asks for.
void FileReader::check_post_processor(const object& post_processor) const {
  const std::string_view type = type_of(post_processor, "post_processor");
  if (type != "ByteLevel") refuse("post_processor type \"{}\" is not supported, only ByteLevel", type);
}

void FileReader::check_decoder(const object& decoder) const {
  const std::string_view type = type_of(decoder, "decoder");
  if (type != "ByteLevel") refuse("decoder type \"{}\" is not supported, only ByteLevel", type);
}

/// eos_token of tokenizer_config.json: a string, or an object with "content".
std::optional<std::string> eos_token(std::string_view config_json, std::string_view config_what) {
  const Json config = parse_json(config_json, config_what);
  if (!config.is_object()) fail<LoadError>("{}: not a JSON object", config_what);
  const auto found = config.find("eos_token");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && (*found)["content"].is_string())
    return (*found)["content"].get<std::string>();
  fail<LoadError>("{}: \"eos_token\" is neither a string nor an object with \"content\"", config_what);
}

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view tokenizer_json, std::string_view config_json, std::string_view what,
                                  std::string_view config_what) {
  TokenizerFile file = FileReader(what).read(tokenizer_json);
  if (!config_json.empty())
    if (const auto eos = eos_token(config_json, config_what)) file.eos = file.encoder.vocabulary.find(*eos);
  return file;
}

}  // namespace sluice
