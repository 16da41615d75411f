#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "text/jinja/template.h"

namespace sluice::jinja {
namespace {

Json read_cases() {
  const std::string path = SLUICE_SOURCE_DIR "/tests/data/jinja/cases.json";
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), path);
}

/// How a template ends: its text, or where and with what it failed.
struct Outcome {
  std::string kind, text;
};

Outcome outcome_of(const std::string& source, const Json& context) {
  try {
    return {"text", Template(source, "case").render(context)};
  } catch (const LoadError& error) {
    return {"load", error.what()};
  } catch (const RequestError& error) {
    return {"render", error.what()};
  }
}

/// What jinja2 made of the row. Errors count with their kind; the words only where the template chose them.
void expect_as_jinja2(const Json& row, const Json& context) {
  const Outcome outcome = outcome_of(row["template"].get<std::string>(), context);
  if (row.contains("text")) {
    EXPECT_EQ(outcome.kind, "text") << outcome.text;
    EXPECT_EQ(outcome.text, row["text"].get<std::string>());
  } else if (row["fails"] == "words") {
    EXPECT_EQ(outcome.kind, "render");
    EXPECT_EQ(outcome.text, row["words"].get<std::string>());
  } else {
    EXPECT_EQ(outcome.kind, row["fails"].get<std::string>()) << outcome.text;
  }
}

TEST(JinjaCases, RenderAsJinja2Does) {
  const Json data = read_cases();
  ASSERT_GT(data["cases"].size(), 2000u);
  for (const Json& row : data["cases"]) {
    SCOPED_TRACE(row["template"].get<std::string>());
    expect_as_jinja2(row, data["contexts"][row["context"].get<std::string>()]);
  }
}

}  // namespace
}  // namespace sluice::jinja
