#include <fmt/format.h>

#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/model_files.h"
#include "apps/output.h"

namespace sluice {

int list_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  ListOptions options;
  if (!read_into(options, info, arguments)) return 0;
  const Environment environment = read_environment();
  const std::vector<CachedModel> models = cached_models(environment.hub_cache);
  if (*options.json) {
    Json list = Json::array();
    for (const CachedModel& model : models) {
      list.push_back({{"name", model.name},
                      {"revision", model.revision},
                      {"path", model.directory.string()},
                      {"bytes", model.bytes}});
    }
    write_output(indented_json(list));
    return 0;
  }
  if (models.empty()) write_error(fmt::format("no models in {}\n", environment.hub_cache.string()));
  for (const CachedModel& model : models) {
    const std::string revision = model.revision == "main" ? "" : "@" + model.revision;
    write_output(fmt::format("{:<56} {:>9.2f} GB\n", model.name + revision, static_cast<double>(model.bytes) / 1e9));
  }
  return 0;
}

}  // namespace sluice
