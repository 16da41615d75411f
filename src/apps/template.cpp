#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/generation.h"
#include "apps/model_files.h"
#include "apps/output.h"
#include "base/error.h"

namespace sluice {

int template_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  TemplateOptionsFlags options;
  if (!read_into(options, info, arguments)) return 0;
  if (options.messages->empty()) fail<UsageError>("template needs --messages FILE.json");
  const std::unique_ptr<ModelFiles> files =
      open_model_files(options.model.name(), read_environment(), *options.model.mmproj);
  const auto chat_template = files->require_chat_template(*options.chat_template);
  const TemplateOptions render{!*options.no_generation_prompt, template_variables(*options.thinking)};
  const std::string prompt =
      chat_template->render(read_messages(*options.messages), read_tools(*options.tools), render);
  if (*options.json) {
    const auto tokenizer = files->require_tokenizer();
    write_output(indented_json({{"prompt", prompt}, {"prompt_ids", tokenizer->encode(prompt)}}));
  } else {
    write_output(prompt);
  }
  return 0;
}

}  // namespace sluice
