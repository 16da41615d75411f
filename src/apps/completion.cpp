#include <algorithm>

#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/output.h"
#include "base/error.h"

namespace sluice {

namespace {

bool takes_file(const OptionEntry& entry) {
  return entry.value_name.substr(0, 4) == "FILE" || entry.value_name == "MODEL";
}

/// The words of "a|b|c"; empty for other value names.
std::vector<std::string> choices(const OptionEntry& entry) {
  std::vector<std::string> words;
  if (entry.value_name.find('|') == std::string_view::npos) return words;
  for (std::string_view rest = entry.value_name; !rest.empty();) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string command_names() {
  std::string names;
  for (const Command& command : commands()) names += (names.empty() ? "" : " ") + std::string(command.info.name);
  return names;
}

std::string bash_script() {
  std::string text =
      "_sluice() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" words=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      command_names() +
      "\" -- \"$current\")); return\n"
      "  fi\n"
      "  case \"${COMP_WORDS[1]} $previous\" in\n";
  std::string options;
  for (const Command& command : commands()) {
    std::string names = "--help --config";
    for (const OptionEntry& entry : command.options()) {
      const std::vector<std::string> words = choices(entry);
      for (const std::string& name : entry.names) {
        if (entry.is_positional()) continue;
        names += " " + name;
        if (!words.empty()) {
          text += fmt::format("    \"{} {}\") COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n",
                              command.info.name, name, fmt::join(words, " "));
        }
      }
      if (entry.is_positional()) names += " " + fmt::to_string(fmt::join(words, " "));
    }
    options += fmt::format("    {}) words=\"{}\" ;;\n", command.info.name, names);
  }
  text += "  esac\n  case \"${COMP_WORDS[1]}\" in\n" + options + "  esac\n";
  return text + "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\ncomplete -o default -F _sluice sluice\n";
}

std::string zsh_script() {
  std::string text = "#compdef sluice\n_sluice() {\n  local -a commands\n  commands=(\n";
  for (const Command& command : commands()) {
    text += "    " + in_quotes(fmt::format("{}:{}", command.info.name, command.info.summary)) + "\n";
  }
  text += "  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case $words[2] in\n";
  for (const Command& command : commands()) {
    text += fmt::format("    {}) _arguments '1:' '--help[print the help]' '--config[options from a file]:file:_files'",
                        command.info.name);
    for (const OptionEntry& entry : command.options()) {
      const std::vector<std::string> words = choices(entry);
      const std::string action = !words.empty()      ? fmt::format("({})", fmt::join(words, " "))
                                 : takes_file(entry) ? "_files"
                                                     : "";
      std::string sentence(entry.sentence);
      for (char& c : sentence) c = c == '[' || c == ']' ? '|' : c == ':' ? ',' : c;
      for (const std::string& name : entry.names) {
        if (entry.is_positional()) {
          text += " " + in_quotes(fmt::format("*:{}:{}", entry.value_name, words.empty() ? "_files" : action));
        } else {
          const std::string value = entry.is_flag ? "" : fmt::format(":value:{}", action);
          text += " " + in_quotes(fmt::format("{}{}[{}]{}", entry.is_repeatable ? "*" : "", name, sentence, value));
        }
      }
    }
    text += " ;;\n";
  }
  return text + "  esac\n}\ncompdef _sluice sluice\n";
}

std::string fish_script() {
  std::string text = "complete -c sluice -f\n";
  for (const Command& command : commands()) {
    text += fmt::format("complete -c sluice -n __fish_use_subcommand -a {} -d {}\n", command.info.name,
                        in_quotes(command.info.summary));
    for (const OptionEntry& entry : command.options()) {
      const std::vector<std::string> words = choices(entry);
      std::string line = fmt::format("complete -c sluice -n '__fish_seen_subcommand_from {}'", command.info.name);
      for (const std::string& name : entry.names) {
        if (entry.is_positional()) continue;
        line += name.substr(0, 2) == "--" ? " -l " + name.substr(2)
                : name.size() == 2        ? " -s " + name.substr(1)
                                          : " -o " + name.substr(1);
      }
      if (!entry.is_flag && !entry.is_positional()) line += words.empty() && takes_file(entry) ? " -r -F" : " -x";
      if (entry.is_positional()) line += words.empty() ? " -F" : "";
      if (!words.empty()) line += " -a " + in_quotes(fmt::to_string(fmt::join(words, " ")));
      text += line + " -d " + in_quotes(entry.sentence) + "\n";
    }
  }
  return text;
}

}  // namespace

int completion_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  CompletionOptions options;
  if (!read_into(options, info, arguments)) return 0;
  if (!options.shell.given()) fail<UsageError>("completion needs a shell: bash, zsh or fish");
  write_output(*options.shell == "bash" ? bash_script() : *options.shell == "zsh" ? zsh_script() : fish_script());
  return 0;
}

}  // namespace sluice
