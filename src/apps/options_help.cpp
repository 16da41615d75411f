#include <algorithm>

#include <fmt/format.h>

#include "apps/options.h"

namespace sluice {

namespace {

constexpr std::size_t help_width = 100, sentence_column = 34;

/// The sentence, from the current column on, in lines of at most help_width columns.
std::string wrapped(std::string_view sentence, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  while (!sentence.empty()) {
    const std::size_t end = std::min(sentence.find(' '), sentence.size());
    if (column > indent && column + 1 + end > help_width) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      text += ' ';
      ++column;
    }
    text += sentence.substr(0, end);
    column += end;
    sentence.remove_prefix(std::min(end + 1, sentence.size()));
  }
  return text;
}

std::string entry_help(const OptionEntry& entry) {
  std::string left = "  " + fmt::to_string(fmt::join(entry.names, ", "));
  if (!entry.is_flag && !entry.is_positional()) left += fmt::format(" {}", entry.value_name);
  std::string sentence(entry.sentence);
  if (!entry.default_text.empty()) sentence += fmt::format(" [{}]", entry.default_text);
  const bool own_line = left.size() + 2 > sentence_column;
  if (own_line) {
    left += "\n" + std::string(sentence_column, ' ');
  } else {
    left.resize(sentence_column, ' ');
  }
  return left + wrapped(sentence, sentence_column) + "\n";
}

}  // namespace

std::string help_text(const CommandInfo& command, const OptionList& options) {
  std::string text = fmt::format("{}\n\nusage: sluice {} {}\n", command.summary, command.name, command.usage);
  std::string_view group;
  for (const OptionEntry& entry : options.entries()) {
    if (entry.group != group) {
      group = entry.group;
      text += fmt::format("\n{}:\n", group);
    }
    text += entry_help(entry);
  }
  text += fmt::format("  -h, --help{}{}\n", std::string(sentence_column - 12, ' '), "print this text");
  text += "\n" +
          wrapped(
              "Each --option can also be set as SLUICE_OPTION in the environment or as `option = value` in the "
              "file of --config; the command line wins, then the environment, then the file, then "
              "generation_config.json.",
              0) +
          "\n";
  return text + fmt::format("\nexample:\n  {}\n", command.example);
}

}  // namespace sluice
