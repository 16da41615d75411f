#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "text/jinja/budget.h"
#include "text/jinja/template.h"

namespace sluice::jinja {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string load_error(const std::string& source) {
  try {
    const Template parsed(source, "t.jinja");
  } catch (const LoadError& error) {
    return error.what();
  }
  return "(no error)";
}

std::string render_error_of(const std::string& source, const Json& variables = Json::object()) {
  try {
    return "(no error) " + Template(source, "t.jinja").render(variables).substr(0, 100);
  } catch (const RequestError& error) {
    return error.what();
  }
}

void expect_limit(const std::string& source, const std::string& words, const Json& variables = Json::object()) {
  const std::string error = render_error_of(source, variables);
  EXPECT_NE(error.find(words), std::string::npos) << source.substr(0, 200) << "\n" << error;
}

TEST(JinjaErrors, NameTemplateLineAndColumnOfASyntaxError) {
  EXPECT_EQ(load_error("{{ 1 + }}"), "t.jinja, line 1, column 8: expected an expression, found '}}'");
  EXPECT_EQ(load_error("a\né {% if x %}"),
            "t.jinja, line 2, column 13: the template ends inside of a block; expected "
            "'elif' or 'else' or 'endif'");
  EXPECT_EQ(load_error("{% if x %}\n\n  {% endfor %}"), "t.jinja, line 3, column 6: unknown tag 'endfor'");
  EXPECT_EQ(load_error("日本 {{ $ }}"), "t.jinja, line 1, column 7: unexpected character '$'");
  EXPECT_EQ(load_error("\r\n\r\n{{ 'abc }}"), "t.jinja, line 3, column 4: the string is never closed");
  EXPECT_EQ(load_error("x\n{# never"), "t.jinja, line 2, column 1: the comment is never closed by '#}'");
  EXPECT_EQ(load_error("{{ a | nope }}"), "t.jinja, line 1, column 8: there is no filter named 'nope'");
  EXPECT_EQ(load_error("{{ a is nope }}"), "t.jinja, line 1, column 9: there is no test named 'nope'");
  EXPECT_EQ(load_error("{{ 99999999999999999999 }}"),
            "t.jinja, line 1, column 4: an integer outside of 64 bits is not supported");
  EXPECT_EQ(load_error("{{ (1] }}"), "t.jinja, line 1, column 6: unexpected ']', expected ')'");
}

TEST(JinjaErrors, RefuseOtherTemplatesByName) {
  for (const std::string tag : {"include", "import", "from", "extends", "block"})
    EXPECT_EQ(load_error("{% " + tag + " 'other' %}"),
              "t.jinja, line 1, column 4: the tag '" + tag + "' is not supported in chat templates");
  EXPECT_EQ(load_error("{% for x in y recursive %}{% endfor %}"),
            "t.jinja, line 1, column 15: recursive loops are not supported");
}

TEST(JinjaErrors, RefuseBreakOutsideOfALoop) {
  EXPECT_EQ(load_error("{% break %}"), "t.jinja, line 1, column 4: 'break' outside of a loop");
  EXPECT_EQ(load_error("{% for x in y %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}"),
            "t.jinja, line 1, column 35: 'continue' outside of a loop");
}

TEST(JinjaErrors, NameTheLineThatFailedWhileRendering) {
  EXPECT_EQ(render_error_of("ok\n{% if true %}\n  {{ missing.x }}\n{% endif %}"),
            "t.jinja, line 3: 'missing' is undefined");
  EXPECT_EQ(render_error_of("\n{{ m.x.y }}", {{"m", {{"a", 1}}}}),
            "t.jinja, line 2: 'dict object' has no attribute 'x'");
}

TEST(JinjaErrors, KeepTheWordsOfRaiseExceptionExactly) {
  EXPECT_EQ(render_error_of("\n{{ raise_exception('No: ' ~ x ~ '!') }}", {{"x", "é"}}), "No: é!");
}

TEST(JinjaErrors, RefuseSourceThatIsNotUtf8) {
  EXPECT_EQ(load_error("ok\n \xff"), "t.jinja, line 2, column 2: the template is not valid UTF-8");
  EXPECT_EQ(load_error("\xed\xa0\x80"), "t.jinja, line 1, column 1: the template is not valid UTF-8");
}

TEST(JinjaLimits, RefuseATemplateOfMoreThanOneMebibyte) {
  EXPECT_EQ(load_error(std::string(max_source_bytes, 'a')), "(no error)");
  EXPECT_NE(load_error(std::string(max_source_bytes + 1, 'a')).find("at most 1048576"), std::string::npos);
}

TEST(JinjaLimits, RefuseDeepNestingWhileParsing) {
  const int many = 100'000;
  for (const std::string& source :
       {"{{ " + repeated("(", many), "{{ " + repeated("[", many), "{{ " + repeated("{1:", many),
        "{{ " + repeated("not ", many) + "1 }}", "{{ " + repeated("-", many) + "1 }}",
        "{{ 1" + repeated("+1", many) + " }}", "{{ a" + repeated(".a", many) + " }}",
        "{{ a" + repeated("|e", many) + " }}", "{{ a" + repeated("()", many) + " }}",
        "{{ a" + repeated("[0]", many) + " }}", "{{ " + repeated("a if b else ", 50'000) + "1 }}",
        "{{ 1" + repeated(" if 1", many) + " }}", "{{ 1" + repeated(" and 1", many) + " }}",
        "{{ 1" + repeated("**1", many) + " }}", "{% for " + repeated("(", many), "{{ f(" + repeated("f(", many),
        repeated("{% if 1 %}", many), repeated("{% for a in b %}", 50'000), repeated("{% macro m() %}", 50'000)}) {
    EXPECT_NE(load_error(source).find("nested deeper than"), std::string::npos) << source.substr(0, 40);
  }
}

TEST(JinjaLimits, AcceptLongChainsThatDoNotNest) {
  EXPECT_EQ(load_error("{{ 1" + repeated("~1", 50'000) + " }}"), "(no error)");
  EXPECT_EQ(load_error("{{ [1" + repeated(",1", 50'000) + "] }}"), "(no error)");
  EXPECT_EQ(load_error("{% if a %}" + repeated("{% elif a %}", 10'000) + "{% endif %}"), "(no error)");
}

TEST(JinjaLimits, StopEndlessWork) {
  const std::string loops = "{% for a in range(100000) %}{% for b in range(100000) %}";
  expect_limit(loops + "{% endfor %}{% endfor %}", "takes more than");
  expect_limit("{% for a in range(100000) %}{% for b in range(100000) if false %}{% endfor %}{% endfor %}",
               "takes more than");
  expect_limit("{% set l = range(100000) | list %}{% for a in l %}{{ a in l }}{% endfor %}", "takes more than");
  expect_limit("{% set s = 'a' * 9000000 %}{% for a in range(100000) %}{{ s.find('b') }}{% endfor %}",
               "takes more than");
  expect_limit("{% set s = 'a' * 9000000 %}{{ s.rfind('b' ~ 'a' * 400000) }}", "takes more than");
  expect_limit("{% set s = 'a' * 900000 %}{{ s.strip('b' * 900000 ~ 'a') }}", "takes more than");
}

TEST(JinjaLimits, StopEndlessRecursionWithinTheStackOfAThread) {
  for (const std::string source :
       {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% macro m(x=m()) %}{% endmacro %}{{ m() }}",
        "{% macro m() %}{% if true %}{% for i in [1] %}{% call m() %}{{ [m()] }}{% endcall %}"
        "{% endfor %}{% endif %}{{ caller() }}{% endmacro %}{% call m() %}{% endcall %}",
        "{% macro m(a) %}{% set x %}{{ 1 + (m(a ~ [1, {2: (m(3), 4)}]) | trim | int) }}{% endset "
        "%}{% endmacro %}{{ m(1) }}"}) {
    std::thread([&] { expect_limit(source, "nests deeper than 800 levels"); }).join();
  }
}

TEST(JinjaLimits, StopStringsThatGrow) {
  expect_limit("{{ 'a' * 1000000000 }}", "grows beyond 64 MiB");
  expect_limit("{{ 'a' * 9223372036854775807 }}", "grows beyond 64 MiB");
  expect_limit("{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
               "grows beyond");
  expect_limit("{% for i in range(100000) %}{{ 'a' * 10000 }}{% endfor %}", "the output grows beyond 64 MiB");
  expect_limit("{{ 'a'.ljust(1000000000) }}", "grows beyond 64 MiB");
  expect_limit("{{ 'a' | center(1000000000) }}", "grows beyond 64 MiB");
  expect_limit("{{ '%1000000000d' % 1 }}", "grows beyond 64 MiB");
  expect_limit("{{ '{:1000000000}'.format(1) }}", "grows beyond 64 MiB");
  expect_limit("{{ 'a' | indent(1000000000) }}", "grows beyond 64 MiB");
  expect_limit("{{ ('a' * 60000).replace('', 'b' * 60000) }}", "grows beyond 64 MiB");
  expect_limit("{{ (['a'] * 60000) | join('b' * 60000) }}", "grows beyond 64 MiB");
}

TEST(JinjaLimits, StopListsThatGrow) {
  expect_limit("{{ [1] * 1000000000 }}", "grows beyond 1048576 items");
  expect_limit("{{ [1] * 9223372036854775807 }}", "grows beyond 1048576 items");
  expect_limit("{{ range(1000000000) }}", "Range too big");
  expect_limit("{{ range(-9223372036854775807, 9223372036854775807) }}", "Range too big");
  expect_limit("{{ ('a,' * 3000000).split(',') }}", "grows beyond 1048576 items");
  expect_limit("{{ [1] | batch(1000000000, 0) | list }}", "grows beyond 1048576 items");
  expect_limit("{{ [1] | slice(1000000000) | list }}", "grows beyond 1048576 items");
}

TEST(JinjaLimits, StopTheSumOfManyLargeValues) {
  const std::string source =
      "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = ns.l + ['a' * 60000000] %}{% endfor %}";
  expect_limit(source, "uses more than 1024 MiB");
}

TEST(JinjaLimits, StopValuesThatAreLargeOnlyWhenWalked) {
  const std::string doubling =
      "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}";
  expect_limit(doubling + "{{ ns.l }}", "takes more than");
  expect_limit(doubling + "{{ ns.l | tojson }}", "takes more than");
  expect_limit(doubling + "{% set a = ns.l + [] %}{{ a == ns.l }}", "takes more than");
}

TEST(JinjaLimits, StopListsThatNestDeeply) {
  expect_limit("{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}",
               "nested deeper than 200 levels");
  expect_limit("{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l].count %}{% endfor %}",
               "nested deeper than 200 levels");
  Json deep = 1;
  for (int i = 0; i < 300; ++i) deep = Json::array({deep});
  expect_limit("{{ deep }}", "nested deeper than 200 levels", {{"deep", deep}});
}

TEST(JinjaLimits, SurviveValuesThatReferToThemselves) {
  EXPECT_EQ(render_error_of(
                "{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.l = [ns] %}{{ ns.me.l[0].me is defined }}"),
            "(no error) True");
  EXPECT_EQ(
      render_error_of("{% set ns = namespace(f=none) %}{% for i in range(50000) %}{% macro m(g=ns.f) %}{% endmacro %}"
                      "{% set ns.f = m %}{% endfor %}done"),
      "(no error) done");
  expect_limit("{% for i in [1] %}{% set l = [loop] %}{% endfor %}", "cannot be kept");
  expect_limit("{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}{% endfor %}", "cannot be kept");
}

TEST(JinjaLimits, StopIntegersThatLeave64Bits) {
  for (const std::string expression : {"9223372036854775807 + 1", "-9223372036854775807 - 2", "9223372036854775807 * 2",
                                       "10 ** 19", "(-9223372036854775807 - 1) // -1", "-(-9223372036854775807 - 1)",
                                       "(-9223372036854775807 - 1) | abs", "1e30 | int"})
    expect_limit("{{ " + expression + " }}", "an integer grows beyond 64 bits");
  EXPECT_EQ(render_error_of("{{ (-9223372036854775807 - 1) % -1 }}"), "(no error) 0");
}

}  // namespace
}  // namespace sluice::jinja
