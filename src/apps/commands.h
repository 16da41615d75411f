#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/options.h"

namespace sluice {

/// A command of the program: what it is, its options, and what it does with the arguments behind its name.
struct Command {
  CommandInfo info;
  /// Exit code. Throws Error; UsageError for wrong arguments.
  int (*run)(const CommandInfo& info, const std::vector<std::string>& arguments);
  /// Its options with their defaults, for the shell completion.
  std::vector<OptionEntry> (*options)();
};

/// All commands, in the order of the help.
std::span<const Command> commands();

int run_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int generate_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int serve_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int bench_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int inspect_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int quantize_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int logits_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int tokenize_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int detokenize_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int template_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int list_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int version_command(const CommandInfo& info, const std::vector<std::string>& arguments);
int completion_command(const CommandInfo& info, const std::vector<std::string>& arguments);

/// Reads the options of a command into a struct of command_options.h. False: the help was asked for and printed.
template <class Options>
bool read_into(Options& options, const CommandInfo& info, const std::vector<std::string>& arguments) {
  OptionList list;
  options.list(list);
  return read_options(info, list, arguments);
}

}  // namespace sluice
