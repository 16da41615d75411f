#include <algorithm>
#include <iostream>
#include <iterator>

#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/model_files.h"
#include "apps/output.h"
#include "base/error.h"
#include "base/mmap.h"

namespace sluice {

namespace {

struct Input {
  std::string model, text;
};

std::string read_file_or_standard_input(const std::string& file) {
  if (file != "-") return read_text_file(file);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

/// One argument is the text, or the model beside --file; two are model and text.
Input read_input(const TokenizeOptions& options, std::string_view command) {
  const bool from_file = options.file.given();
  if (from_file && options.second.given()) fail<UsageError>("{} takes either a text or --file, found both", command);
  if (!from_file && !options.first.given()) fail<UsageError>("{} needs a text or --file FILE", command);
  const bool first_is_model = from_file || options.second.given();
  Input input;
  input.model = first_is_model && options.first.given() ? *options.first : *options.model_flag;
  input.text = from_file        ? read_file_or_standard_input(*options.file)
               : first_is_model ? *options.second
                                : *options.first;
  return input;
}

std::vector<TokenId> ids_of_text(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return c == '\n' || c == '\t' || c == '\r' || c == '[' || c == ']' || c == ','; }, ' ');
  std::vector<TokenId> ids;
  for (std::size_t begin = text.find_first_not_of(' '); begin < text.size();
       begin = text.find_first_not_of(' ', begin)) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::int64_t id = parse_integers(text.substr(begin, end - begin), "token ids").front();
    if (id < 0 || id > INT32_MAX) fail<RequestError>("{} is no token id", id);
    ids.push_back(static_cast<TokenId>(id));
    begin = end;
  }
  return ids;
}

}  // namespace

int tokenize_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  TokenizeOptions options;
  if (!read_into(options, info, arguments)) return 0;
  const Input input = read_input(options, info.name);
  const auto tokenizer = open_model_files(input.model, read_environment())->require_tokenizer();
  const std::vector<TokenId> ids = tokenizer->encode(input.text, !*options.no_special);
  if (*options.json) {
    Json tokens = Json::array();
    for (const TokenId id : ids) tokens.push_back(std::string(tokenizer->bytes_of(id)));
    write_output(indented_json({{"ids", ids}, {"tokens", tokens}, {"count", ids.size()}}));
  } else {
    write_output(fmt::format("{}\n", fmt::join(ids, ",")));
  }
  return 0;
}

int detokenize_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  TokenizeOptions options;
  if (!read_into(options, info, arguments)) return 0;
  const Input input = read_input(options, info.name);
  const std::vector<TokenId> ids = ids_of_text(input.text);
  const auto tokenizer = open_model_files(input.model, read_environment())->require_tokenizer();
  for (const TokenId id : ids) {
    if (!tokenizer->is_known(id))
      fail<RequestError>("token id {} is unknown, expected 0 to {}", id, tokenizer->size() - 1);
  }
  const std::string text = tokenizer->decode(ids, *options.no_special);
  write_output(*options.json ? indented_json({{"text", text}, {"count", ids.size()}}) : text + "\n");
  return 0;
}

}  // namespace sluice
