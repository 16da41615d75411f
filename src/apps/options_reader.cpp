#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <CLI/CLI.hpp>

#include "apps/commands.h"
#include "apps/options.h"
#include "apps/output.h"
#include "base/error.h"
#include "base/mmap.h"

namespace sluice {

namespace {

bool is_long(std::string_view name) { return name.substr(0, 2) == "--"; }

/// The names that CLI11 knows: it takes neither "-np" nor an option without a long or one-letter name.
std::string parser_names(const OptionEntry& entry) {
  std::vector<std::string> names;
  for (const std::string& name : entry.names) {
    if (is_long(name) || name.size() == 2 || entry.is_positional()) names.push_back(name);
  }
  return fmt::to_string(fmt::join(names, ","));
}

const OptionEntry* find_named(const std::vector<OptionEntry>& entries, std::string_view name) {
  for (const OptionEntry& entry : entries) {
    if (std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end()) return &entry;
  }
  return nullptr;
}

/// Writes "-np 4" as "--parallel 4" would be: the first name in its place. Values are left alone.
std::vector<std::string> without_short_words(const std::vector<std::string>& arguments,
                                             const std::vector<OptionEntry>& entries) {
  std::vector<std::string> result;
  bool is_value = false, only_positional = false;
  for (const std::string& argument : arguments) {
    const OptionEntry* entry = is_value || only_positional ? nullptr : find_named(entries, argument);
    only_positional = only_positional || (!is_value && argument == "--");
    is_value = entry != nullptr && !entry->is_flag && !entry->is_positional();
    const bool short_word = entry != nullptr && argument.size() > 2 && argument[0] == '-' && argument[1] != '-';
    result.push_back(short_word ? entry->names.front() : argument);
  }
  return result;
}

void store(const OptionEntry& entry, const std::vector<std::string>& texts, Origin origin, std::string_view where) {
  try {
    entry.set(texts);
  } catch (const UsageError& error) {
    fail<UsageError>("{}: {}", where, error.what());
  }
  *entry.origin = origin;
}

void add_to_parser(CLI::App& parser, const OptionEntry& entry) {
  const std::string shown = entry.names.front();
  if (entry.is_flag) {
    parser.add_flag_function(
        parser_names(entry), [&entry, shown](std::int64_t) { store(entry, {"true"}, Origin::command_line, shown); },
        "");
    return;
  }
  CLI::Option* option = parser.add_option(parser_names(entry), [&entry, shown](const CLI::results_t& texts) {
    store(entry, texts, Origin::command_line, shown);
    return true;
  });
  option->type_size(1)->expected(1);
  option->multi_option_policy(entry.is_repeatable ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
}

[[noreturn]] void unknown_argument(const CommandInfo& command, const std::string& argument) {
  const bool is_option = argument.size() > 1 && argument.front() == '-';
  fail<UsageError>("{} \"{}\"; `sluice {} --help` lists what {} takes",
                   is_option ? "unknown option" : "unexpected argument", argument, command.name, command.name);
}

/// False: --help was given.
bool read_command_line(const CommandInfo& command, const std::vector<OptionEntry>& entries,
                       const std::vector<std::string>& arguments) {
  CLI::App parser;
  parser.set_help_flag();
  bool help = false;
  parser.add_flag("-h,--help", help);
  parser.allow_extras();
  for (const OptionEntry& entry : entries) add_to_parser(parser, entry);
  std::vector<std::string> reversed = without_short_words(arguments, entries);
  std::reverse(reversed.begin(), reversed.end());
  try {
    parser.parse(reversed);
  } catch (const CLI::ParseError& error) {
    fail<UsageError>("{}; `sluice {} --help` shows the usage", error.what(), command.name);
  }
  if (help) return false;
  for (const std::string& extra : parser.remaining()) {
    if (extra != "--") unknown_argument(command, extra);
  }
  return true;
}

void read_variables(const std::vector<OptionEntry>& entries) {
  for (const OptionEntry& entry : entries) {
    if (entry.is_positional() || *entry.origin != Origin::built_in) continue;
    const std::string name = entry.variable();
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    store(entry, {value}, Origin::environment, fmt::format("{} in the environment", name));
  }
}

/// "max_tokens" and "max-tokens" are both --max-tokens.
std::string option_of_key(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

std::vector<CLI::ConfigItem> parse_file(const std::string& path) {
  std::istringstream text(read_text_file(path, std::size_t{1} << 20));
  try {
    return CLI::ConfigTOML().from_config(text);
  } catch (const CLI::Error& error) {
    fail<LoadError>("{}: {}", path, error.what());
  }
}

bool is_command(std::string_view name) {
  return std::any_of(commands().begin(), commands().end(),
                     [&](const Command& command) { return command.info.name == name; });
}

bool some_command_has(const std::string& option) {
  return std::any_of(commands().begin(), commands().end(),
                     [&](const Command& command) { return find_named(command.options(), option) != nullptr; });
}

/// Refuses keys and sections that mean nothing to any command.
void check_file(const std::vector<CLI::ConfigItem>& items, const std::string& path) {
  for (const CLI::ConfigItem& item : items) {
    if (!item.parents.empty() && (item.parents.size() > 1 || !is_command(item.parents.front()))) {
      fail<UsageError>("{}: [{}] is no command", path, fmt::join(item.parents, "."));
    }
    if (item.name != "++" && item.name != "--" && item.parents.empty() && !some_command_has(option_of_key(item.name))) {
      fail<UsageError>("{}: no command has an option \"{}\"", path, item.name);
    }
  }
}

/// Keys of the section of the command win over those outside sections; other commands' sections are passed over.
void read_file(const CommandInfo& command, const std::vector<OptionEntry>& entries, const std::string& path) {
  const std::vector<CLI::ConfigItem> items = parse_file(path);
  check_file(items, path);
  for (const bool in_section : {true, false}) {
    for (const CLI::ConfigItem& item : items) {
      if (item.name == "++" || item.name == "--") continue;
      const bool own = item.parents.size() == 1 && item.parents.front() == command.name;
      if (in_section ? !own : !item.parents.empty()) continue;
      const OptionEntry* entry = find_named(entries, option_of_key(item.name));
      if (entry == nullptr && in_section)
        fail<UsageError>("{}: [{}] has no option \"{}\"", path, command.name, item.name);
      if (entry == nullptr || *entry->origin != Origin::built_in) continue;
      store(*entry, item.inputs, Origin::file, fmt::format("{}: {}", path, item.name));
    }
  }
}

std::string variable_or(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

}  // namespace

bool read_options(const CommandInfo& command, OptionList& options, const std::vector<std::string>& arguments) {
  Text config{"--config", "FILE.toml", "options as `key = value`, for one command under [COMMAND]"};
  options.group("Settings");
  options.add(config);
  const std::vector<OptionEntry>& entries = options.entries();
  if (!read_command_line(command, entries, arguments)) {
    write_output(help_text(command, options));
    return false;
  }
  read_variables(entries);
  if (config.given()) read_file(command, entries, *config);
  return true;
}

Environment read_environment() {
  Environment environment;
  environment.no_color = !variable_or("NO_COLOR", "").empty();
  const std::string home = variable_or("HOME", "");
  const std::string cache = variable_or("XDG_CACHE_HOME", home.empty() ? "" : home + "/.cache");
  const std::string hub_home = variable_or("HF_HOME", cache.empty() ? "" : cache + "/huggingface");
  environment.hub_cache = variable_or("HF_HUB_CACHE", hub_home.empty() ? "" : hub_home + "/hub");
  environment.dumb_terminal = variable_or("TERM", "dumb") == "dumb";
  return environment;
}

}  // namespace sluice
