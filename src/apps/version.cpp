#include "base/version.h"

#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/output.h"
#include "apps/session.h"

namespace sluice {

int version_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  VersionOptions options;
  if (!read_into(options, info, arguments)) return 0;
  const std::vector<std::string> device = make_device(EngineFlags{})->describe();
  if (*options.json) {
    write_output(indented_json(
        {{"version", version()}, {"commit", commit()}, {"build", build_options()}, {"devices", {{"cpu", device}}}}));
    return 0;
  }
  std::string text = fmt::format("sluice {} ({})\n{}\n", version(), commit(), build_options());
  for (const std::string& line : device) text += line + "\n";
  write_output(text);
  return 0;
}

}  // namespace sluice
