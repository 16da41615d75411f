#include "apps/bench_stream.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"

namespace sluice {

namespace {

constexpr std::size_t most_head_bytes = 64u << 10, most_event_bytes = 16u << 20;
constexpr std::string_view blanks = " \t";

bool equal_words(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::uint64_t parse_size(std::string_view text, int base, std::string_view what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    fail<RequestError>("the response has a bad {}: \"{}\"", what, text.substr(0, 40));
  }
  return value;
}

/// Where the value of some "name": of `data` begins, if one of them begins with `first` (and goes on after it).
bool has_value(std::string_view data, std::string_view quoted_name, char first, char not_second) {
  for (std::size_t at = data.find(quoted_name); at != std::string_view::npos; at = data.find(quoted_name, at)) {
    at += quoted_name.size();
    const std::size_t colon = std::min(data.find_first_not_of(blanks, at), data.size());
    if (colon == data.size() || data[colon] != ':') continue;
    const std::size_t value = std::min(data.find_first_not_of(blanks, colon + 1), data.size());
    if (value + 1 < data.size() && data[value] == first && data[value + 1] != not_second) return true;
  }
  return false;
}

}  // namespace

bool ResponseReader::take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  const std::size_t taken = std::min(end, bytes.size());
  head_bytes_ += taken + 1;
  if (head_bytes_ > most_head_bytes) fail<RequestError>("the response's headers are longer than {}", most_head_bytes);
  line_ += bytes.substr(0, taken);
  bytes.remove_prefix(std::min(taken + 1, bytes.size()));
  if (end == std::string_view::npos) return false;
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  return true;
}

void ResponseReader::read_status() {
  if (line_.rfind("HTTP/1.", 0) != 0 || line_.size() < 12) {
    fail<RequestError>("no HTTP/1.1 response: it begins with \"{}\"", line_.substr(0, 40));
  }
  status_ = static_cast<int>(parse_size(std::string_view(line_).substr(9, 3), 10, "status"));
  keeps_connection_ = line_[7] != '0';
  has_length_ = chunked_ = false;
}

void ResponseReader::read_header() {
  const std::size_t colon = line_.find(':');
  if (colon == std::string::npos) fail<RequestError>("the response has a bad header: \"{}\"", line_.substr(0, 40));
  const std::string_view name = std::string_view(line_).substr(0, colon);
  const std::string_view value = trimmed(std::string_view(line_).substr(colon + 1));
  if (equal_words(name, "content-length")) {
    left_ = parse_size(value, 10, "Content-Length");
    has_length_ = true;
  } else if (equal_words(name, "transfer-encoding")) {
    if (!equal_words(value, "chunked")) fail<RequestError>("Transfer-Encoding {} is not supported", value);
    chunked_ = true;
  } else if (equal_words(name, "connection")) {
    if (equal_words(value, "close")) keeps_connection_ = false;
    if (equal_words(value, "keep-alive")) keeps_connection_ = true;
  } else if (equal_words(name, "content-encoding") && !equal_words(value, "identity")) {
    fail<RequestError>("Content-Encoding {} was not asked for", value);
  }
}

void ResponseReader::end_headers() {
  if (status_ < 200) {
    part_ = Part::status;
  } else if (status_ == 204 || status_ == 304) {
    part_ = Part::complete;
  } else if (chunked_) {
    part_ = Part::chunk_size;
  } else if (has_length_) {
    part_ = left_ > 0 ? Part::body : Part::complete;
  } else {
    keeps_connection_ = false;
    left_ = std::numeric_limits<std::uint64_t>::max();
    part_ = Part::rest;
  }
}

void ResponseReader::read_chunk_size() {
  left_ = parse_size(trimmed(std::string_view(line_).substr(0, line_.find(';'))), 16, "chunk size");
  head_bytes_ = 0;
  part_ = left_ > 0 ? Part::chunk : Part::trailers;
}

void ResponseReader::take_body(std::string_view& bytes, std::string& body) {
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  body += bytes.substr(0, taken);
  bytes.remove_prefix(taken);
  if (part_ == Part::rest) return;
  left_ -= taken;
  if (left_ == 0) part_ = part_ == Part::chunk ? Part::chunk_end : Part::complete;
}

std::size_t ResponseReader::read(std::string_view bytes, std::string& body) {
  const std::size_t size = bytes.size();
  while (!bytes.empty() && part_ != Part::complete) {
    if (part_ == Part::body || part_ == Part::rest || part_ == Part::chunk) {
      take_body(bytes, body);
      continue;
    }
    if (!take_line(bytes)) break;
    switch (part_) {
      case Part::status:
        read_status();
        part_ = Part::headers;
        break;
      case Part::headers: line_.empty() ? end_headers() : read_header(); break;
      case Part::chunk_size: read_chunk_size(); break;
      case Part::chunk_end:
        if (!line_.empty()) fail<RequestError>("a chunk of the response is longer than its size");
        part_ = Part::chunk_size;
        break;
      default:
        if (line_.empty()) part_ = Part::complete;
    }
    line_.clear();
  }
  return size - bytes.size();
}

void ResponseReader::end_of_connection() {
  if (part_ == Part::rest) part_ = Part::complete;
  if (part_ != Part::complete) fail<RequestError>("the server closed the connection before the response was complete");
}

bool EventReader::take_line(std::string_view& bytes) {
  if (dispatched_) {
    data_.clear();
    has_data_ = dispatched_ = false;
  }
  const std::size_t end = bytes.find('\n');
  std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
  if (line_.size() + data_.size() + line.size() > most_event_bytes) {
    fail<RequestError>("an event of the stream is longer than {} bytes", most_event_bytes);
  }
  if (end == std::string_view::npos) {
    line_ += line;
    return false;
  }
  if (!line_.empty()) line = line_ += line;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.rfind("data:", 0) == 0) {
    line.remove_prefix(line.size() > 5 && line[5] == ' ' ? 6 : 5);
    if (has_data_) data_ += '\n';
    data_ += line;
    has_data_ = true;
  } else {
    dispatched_ = line.empty() && has_data_;
  }
  line_.clear();
  return dispatched_;
}

EventContent scan_event(std::string_view data) {
  EventContent content;
  content.done = data == "[DONE]";
  content.has_error = has_value(data, "\"error\"", '{', '}');
  content.has_usage = has_value(data, "\"usage\"", '{', '}');
  for (const std::string_view name :
       {"\"text\"", "\"content\"", "\"reasoning_content\"", "\"reasoning\"", "\"arguments\""}) {
    if (content.has_text) break;
    content.has_text = has_value(data, name, '"', '"');
  }
  return content;
}

}  // namespace sluice
