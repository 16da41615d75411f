#include "server/openai_logprobs.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "text/unicode.h"

namespace sluice {

namespace {

/// JSON has no infinity; a forbidden token has this.
double shown_logprob(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

std::span<const ReportedToken::Alternative> best(const ReportedToken& token, int top) {
  const std::size_t count = std::min(token.top.size(), static_cast<std::size_t>(std::max(top, 0)));
  return std::span(token.top).first(count);
}

std::string replaced(std::string_view bytes) {
  std::string text;
  append_valid_utf8(text, bytes);
  return text;
}

std::string text_or_bytes(std::string_view bytes) {
  if (is_valid_utf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (char byte : bytes) fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

Json entry(std::string_view bytes, double logprob) {
  Json values = Json::array();
  for (char byte : bytes) values.push_back(static_cast<unsigned char>(byte));
  return {{"token", replaced(bytes)}, {"logprob", logprob}, {"bytes", std::move(values)}};
}

std::size_t characters_in(std::string_view bytes) {
  return static_cast<std::size_t>(std::count_if(
      bytes.begin(), bytes.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

}  // namespace

Json chat_logprobs(const std::vector<ReportedToken>& tokens, int top) {
  Json content = Json::array();
  for (const ReportedToken& token : tokens) {
    Json shown = entry(token.bytes, shown_logprob(token.logprob.value_or(0.0f)));
    Json others = Json::array();
    for (const auto& other : best(token, top)) others.push_back(entry(other.bytes, shown_logprob(other.logprob)));
    shown["top_logprobs"] = std::move(others);
    content.push_back(std::move(shown));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json prompt_logprobs_json(const std::vector<ReportedToken>& tokens, int top) {
  Json list = Json::array();
  for (const ReportedToken& token : tokens) {
    if (!token.logprob) {
      list.push_back(nullptr);
      continue;
    }
    Json shown = Json::object();
    auto add = [&](TokenId id, float logprob, int rank, std::string_view bytes) {
      shown.emplace(std::to_string(id), Json{{"logprob", shown_logprob(logprob)},
                                             {"rank", rank > 0 ? Json(rank) : Json()},
                                             {"decoded_token", replaced(bytes)}});
    };
    add(token.token, *token.logprob, token.rank, token.bytes);
    int rank = 0;
    for (const auto& other : best(token, top)) add(other.token, other.logprob, ++rank, other.bytes);
    list.push_back(std::move(shown));
  }
  return list;
}

Json CompletionLogprobs::add(const std::vector<ReportedToken>& tokens) {
  Json texts = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const ReportedToken& token : tokens) {
    texts.push_back(text_or_bytes(token.bytes));
    offsets.push_back(offset_);
    offset_ += characters_in(token.bytes);
    values.push_back(token.logprob ? Json(shown_logprob(*token.logprob)) : Json());
    Json shown;
    if (token.logprob) {
      shown = {{text_or_bytes(token.bytes), shown_logprob(*token.logprob)}};
      for (const auto& other : best(token, top_))
        shown.emplace(text_or_bytes(other.bytes), shown_logprob(other.logprob));
    }
    tops.push_back(std::move(shown));
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace sluice
