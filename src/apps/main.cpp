#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/output.h"
#include "base/check.h"
#include "base/error.h"

namespace sluice {
namespace {

constexpr int failure = 1, wrong_usage = 2, broken_pipe = 141;

std::string overview() {
  std::string text = "An inference engine for the Qwen3.5 family.\n\nusage: sluice COMMAND [MODEL] [flags]\n\n";
  for (const Command& command : commands())
    text += fmt::format("  {:<12}{}\n", command.info.name, command.info.summary);
  return text +
         "\nMODEL is a directory, a GGUF file, or ORG/NAME[@revision] in the Hugging Face cache; the bundled tiny\n"
         "model when absent.\n"
         "`sluice COMMAND --help` lists the flags of a command.\n\n"
         "example:\n  sluice run -p \"What is the capital of Peru?\"\n";
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) fail<UsageError>("a command is missing; `sluice --help` lists them");
  const std::string& name = arguments.front();
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (name == "--help" || name == "-h" || name == "help") {
    write_output(overview());
    return 0;
  }
  const std::string wanted = name == "--version" ? "version" : name;
  for (const Command& command : commands()) {
    if (command.info.name == wanted) return command.run(command.info, rest);
  }
  fail<UsageError>("unknown command \"{}\"; `sluice --help` lists them", name);
}

int report(std::string_view message, int exit_code) {
  write_error(fmt::format("sluice: {}\n", message));
  return exit_code;
}

int guarded(const std::vector<std::string>& arguments) {
  try {
    return dispatch(arguments);
  } catch (const BrokenPipe&) {
    return broken_pipe;
  } catch (const UsageError& error) {
    return report(error.what(), wrong_usage);
  } catch (const Error& error) {
    return report(error.what(), failure);
  } catch (const std::bad_alloc&) {
    return report("out of memory", failure);
  } catch (const std::exception& error) {
    return report(fmt::format("this is a bug, please report it: {}", error.what()), failure);
  }
}

}  // namespace
}  // namespace sluice

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of writing
  return sluice::guarded(std::vector<std::string>(arguments + (count > 0 ? 1 : 0), arguments + count));
}
