#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Where a value came from; a later one wins over an earlier one.
enum class Origin : std::uint8_t { built_in, file, environment, command_line };

/// One option: what it is called, what it means, and its value (the built-in default until it is read).
/// T is bool (a flag), std::int64_t, double, std::string, or a vector of integers or strings.
template <class T>
struct Option {
  /// Separated by blanks. The first names the environment variable (SLUICE_...) and the key of the file; one without
  /// dashes is an argument by position.
  std::string_view names;
  /// What stands for the value in the help: "N", "FILE"; the allowed words where it has the form "a|b|c".
  std::string_view value_name;
  std::string_view sentence;
  T value{};
  double low = -1e300, high = 1e300;  // of a number
  Origin origin = Origin::built_in;

  bool given() const { return origin != Origin::built_in; }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
};

using Flag = Option<bool>;
using Integer = Option<std::int64_t>;
using Number = Option<double>;
using Text = Option<std::string>;
using Texts = Option<std::vector<std::string>>;      // repeatable
using Integers = Option<std::vector<std::int64_t>>;  // one value, separated by commas

/// An Option of whatever type, as the parser, the help and the shell completion see it.
struct OptionEntry {
  std::string_view group;
  std::vector<std::string> names;
  std::string_view value_name, sentence;
  std::string default_text;
  bool is_flag = false, is_repeatable = false;
  Origin* origin = nullptr;
  /// Converts and stores; throws UsageError that says what is wrong with the text.
  std::function<void(const std::vector<std::string>& texts)> set;

  bool is_positional() const { return names.front().front() != '-'; }
  /// The first name without dashes: the key in a file.
  std::string key() const;
  /// "SLUICE_MAX_TOKENS".
  std::string variable() const;
};

/// Collects the options of a command; the structs of command_options.h feed it.
class OptionList {
 public:
  void group(std::string_view name) { group_ = name; }
  template <class... Options>
  void add(Options&... options) {
    (add_one(options), ...);
  }
  const std::vector<OptionEntry>& entries() const { return entries_; }

 private:
  void add_one(Flag& option);
  void add_one(Integer& option);
  void add_one(Number& option);
  void add_one(Text& option);
  void add_one(Texts& option);
  void add_one(Integers& option);
  template <class T>
  OptionEntry& append(Option<T>& option);

  std::string_view group_ = "Options";
  std::vector<OptionEntry> entries_;
};

/// What a command is, for the list of commands, its help and the shell completion.
struct CommandInfo {
  std::string_view name;
  std::string_view usage;    // what follows the name: "[MODEL] [flags]"
  std::string_view summary;  // one sentence
  std::string_view example;  // one or more command lines
};

/// Reads the command line, then for what it leaves open the environment, then the file of --config (top-level keys and
/// those of the section [NAME]). Throws UsageError; LoadError for a file that cannot be read. False: the help was asked
/// for and printed.
bool read_options(const CommandInfo& command, OptionList& options, const std::vector<std::string>& arguments);

/// Usage, summary, all options with their defaults, and the example.
std::string help_text(const CommandInfo& command, const OptionList& options);

/// "1,2,3" as integers; `what` names it in the error. Throws UsageError.
std::vector<std::int64_t> parse_integers(std::string_view text, std::string_view what);

/// The parts of the environment that are not options.
struct Environment {
  bool no_color = false;            // NO_COLOR is set to anything
  std::filesystem::path hub_cache;  // HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub; empty: no HOME
  bool dumb_terminal = false;       // TERM is unset or "dumb"

  /// Whether terminals are sent colors.
  bool colored() const { return !no_color && !dumb_terminal; }
};
Environment read_environment();

}  // namespace sluice
