#!/usr/bin/env python3
"""Writes tests/data/jinja/cases.json: template snippets and what jinja2, set up as HF transformers does, makes of them.

Needs jinja2 3.1. Run without arguments from anywhere; the output depends on nothing but this file and jinja2.
"""
import copy
import datetime
import json
import pathlib
import random
import warnings

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    """The tag with which training code marks the assistant's words; it prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class TemplateWords(Exception):
    """What raise_exception raised."""


def raise_exception(message):
    raise TemplateWords(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    for name in ("lipsum", "cycler", "joiner"):
        del made.globals[name]
    return made


MESSAGES = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "Hi <b>there</b> & welcome"},
    {"role": "assistant", "content": "<think>\nWell.\n</think>\n\nHello!", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2.5, "note": "é\"q\"", "deep": {"k": [True, None]}}}}]},
    {"role": "tool", "content": "3.5"},
    {"role": "tool", "content": [{"type": "text", "text": "part one"}, {"type": "image"}, {"type": "text", "text": " two"}]},
    {"role": "user", "content": "Thanks, 日本 😀"},
]
CONTEXTS = {
    "empty": {},
    "chat": {"messages": MESSAGES, "add_generation_prompt": True, "enable_thinking": False, "bos_token": "<s>",
             "tools": [{"type": "function", "function": {"name": "add", "description": "Sum \"of\" <two>", "parameters": {
                 "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number", "default": 1e-7}}, "required": ["a"]}}}]},
    "values": {
        "n": 7, "m": -3, "zero": 0, "big": 9007199254740993, "x": 2.5, "y": -0.1, "t": True, "f": False, "none_value": None,
        "s": "Hello World", "low": "abc", "u": "Straße ÉCOLE ß 日本語 😀", "blank": "  \t padded \n ", "empty": "",
        "q": "it's \"quoted\"\n\\", "num": "42", "fl": "3.14", "l": [3, 1, 2], "words": ["pear", "Apple", "fig", "apple"],
        "mixed": [1, "a", None, True, 2.0, [1, {"k": "v"}]], "d": {"b": 1, "a": 2, "C": 3}, "nested": {"a": {"b": [10, 20, {"c": "deep"}]}},
        "people": [{"name": "Bo", "age": 30, "city": "Rome"}, {"name": "al", "age": 25, "city": "Oslo"}, {"name": "Cy", "age": 30}],
        "one": 1, "two": 2, "minus": -1, "half": 3.5, "a": "a", "el": "l", "space": " ", "cjk": "日", "pair": [1, "b"], "single": {"k": 1},
        "e": [], "ed": {}, "items": [1, 2], "weird": {"items": "own", "keys": 5, "get": "g", "pop": "p", "x y": 1, "1": "one"},
        "lines": "one\ntwo\r\nthree\n\nfive", "csv": "a,b,,c", "spaces": " a  b c ", "pairs": [["k1", 1], ["k2", 2]], "long": "The quick brown fox jumps over the lazy dog"},
}

SNIPPETS = {}


def add(context, text):
    SNIPPETS.setdefault(context, []).extend(line for line in text)


def expressions(context, text):
    """One expression a line, printed."""
    add(context, ["{{ " + line.strip() + " }}" for line in text.strip().splitlines() if line.strip()])


# White space control, with trim_blocks and lstrip_blocks.
add("values", [
    "a\n{% if t %}\nb\n{% endif %}\nc\n", "a\n  {% if t %}  \n  b\n  {% endif %}\nc", "  {% if t %}x{% endif %}  y", "{% if t %}\n\n\nx{% endif %}\n",
    "a  {%- if t -%}  b  {%- endif -%}  c", "a \n {%- if t %}\n b \n{%- endif %}\n c", "a\n  {%+ if t %}b{% endif %}", "a\n{% if t +%}\nb{% endif %}",
    "a {{- n }} b", "a {{ n -}} b", "a\n{{ n }}\nb", "a\n  {{ n }}\n  b", "a\n  {{- n -}}\n  b", "{{ n }}\n", "{{ n }}\n\n", "\n{{ n }}", "\n\n", "\n", "",
    "a {# note #} b", "a\n{# note #}\nb", "a\n  {# note #}\nb", "a {#- note -#} b", "a\n {#+ note +#}\nb", "{# {{ n }} {% bad #}x", "a{#\n#}\nb", "{#-#}x", "{#--#} x",
    "{% raw %}{{ n }}{% endraw %}", "{% raw %}\n{{ n }}\n{% endraw %}\nx", " {%- raw -%} {{ n }} {%- endraw -%} x", "a\n  {% raw %}  {% x %}\n  {% endraw %}\nb", "{% raw %}{# c #}{% endraw +%}\nx", "{%raw%}{%endraw%}",
    "{% for i in l %}\n{{ i }}\n{% endfor %}\n", "{% for i in l %}{{ i }}{% endfor %}\n\nend", "{% for i in l -%}\n  {{ i }},\n{%- endfor %}\nend",
    "<{% for i in l %}\n    {% if i > 1 %}\n      {{ i }}\n    {% endif %}\n{% endfor %}>", "x\t{% if t %}y{% endif %}", "x\n\t {% if t %}y{% endif %}", "\u00a0{%- if t %}y{% endif %}", "a\n\u2003{% if t %}y{% endif %}",
    "{% if t %}a{% endif %}{% if t %}\nb{% endif %}", "{{ '\n' }}|", "{{ '\\n' }}|", "a\r\nb\r{{ n }}\r\n", "{% set a = 1 %}\n{% set b = 2 %}\n{{ a + b }}", "{% set a = 1 -%}\n\n   {{ a }}",
    "  {% set a = 1 %}  {% set b = 2 %}  x", "{{ n }}  {% if t %} z {% endif %}", "}} %} #}", "{ { n } }", "{", "{{ '}}' }}", "{{ '%}' }}{% if '%}' %}ok{% endif %}", "{{ {'a': {'b': 1}}.a.b }}", "{{ {'a': {'b': 1}}}}", "{%if t%}x{%endif%}", "{%- if t -%}x{%- endif -%}",
    "line\n    {%- for i in l %}\n    - {{ i }}\n    {%- endfor %}\n", "  {#- a -#}  {#- b -#}  x", "a\n   {%- set z = 1 %}\n   b",
])
# Literals, arithmetic and comparison.
expressions("values", r"""
1
-5
1_000
0x1F
0b101
0o17
1.5
1e3
1.5e-3
1e16
123456789012345678.0
1e-5
0.0001
1E5
100000.0
1e22
0.1 + 0.2
1/3
2.0
-0.0
1e308 * 10
9223372036854775807
-9223372036854775807
true
True
false
none
None
'a' 'b'
"a\tb\x41\u00e9\101\q\'\""
'\\'
[1, 2, 3,]
[]
(1, 2)
(1,)
()
1, 2
{}
{'a': 1, "b": [1, (2,)], 3: None, 1.5: true, none: 'n'}
{1: 'a', 1.0: 'b', true: 'c'}
[1, 'a', "it's", 'say "x"', 'both \' and "', '\n\t\\', '\x00\x7f\xa0', 'é', '\u200b', none, true, 1.0, {}]
1 + 2 * 3
(1 + 2) * 3
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
7.5 // 2
-7.5 // 2
7.5 % 2
-7.5 % 2
-1 % 1.5
7 / 2
6 / 2
2 ** 10
2 ** -1
2 ** 0.5
2 ** 3 ** 2
-2 ** 2
0 ** 0
10 ** 18
n * m
n - -m
+n
-x
--n
true + true
true * 3
'ab' * 3
3 * 'ab'
'ab' * 0
'ab' * -1
[1, 2] * 2
(1,) * 3
[1] + [2]
(1,) + (2, 3)
'a' + 'b'
'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1]
'a' ~ missing ~ 'b'
1 ~ 2
1 + 2 ~ 3 + 4
1 < 2
1 < 2 < 3
1 < 3 < 2
1 == 1.0
1 == true
'1' == 1
'a' < 'b'
'B' < 'a'
[1, 2] < [1, 3]
[1, 2] == [1, 2.0]
(1, 2) == [1, 2]
{'a': 1} == {'a': 1.0}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
none == none
none != 1
big == 9007199254740992.0
big == big
missing == missing2
missing == none
missing != 1
1 in [1, 2]
1.0 in [1, 2]
'a' in 'abc'
'' in 'abc'
'x' not in 'abc'
'a' in d
'z' not in d
1 in d
1 in (1, 2)
3 in range(5)
'a' in missing
none in [none]
missing in [missing]
missing in [1]
not true
not not n
not 1 == 2
not 1 in [2]
1 and 2
0 and 2
0 or 'x'
'' or none or []
1 or missing.x
0 and missing.x
n and s
'a' if t
'a' if f
'a' if f else 'b'
'a' if t else missing.x
1 if f else 2 if f else 3
('a' if f) is undefined
[1, 2, 3][0]
[1, 2, 3][-1]
[1, 2, 3][5]
[1, 2, 3][true]
[1, 2, 3]['0']
[1, 2, 3].0
[1, 2, 3][1:]
[1, 2, 3][:-1]
[1, 2, 3][::-1]
[1, 2, 3, 4, 5][::2]
[1, 2, 3, 4, 5][1:4:2]
[1, 2, 3, 4, 5][-2:]
[1, 2, 3, 4, 5][4:1:-1]
[1, 2, 3, 4, 5][:2:-1]
[1, 2, 3, 4, 5][10:]
[1, 2, 3, 4, 5][-10:2]
[1, 2, 3, 4, 5][none:2]
[1, 2, 3][:]
[1, 2, 3][::]
(1, 2, 3)[1:]
(1, 2, 3)[::-1]
s[0]
s[-1]
s[100]
s[1:4]
s[::-1]
s[::2]
u[0:6]
u[-1]
u[-3:]
u[::-1]
u[1:20:3]
u | length
u[4]
range(10)[2]
range(10)[2:5]
range(10)[::-3]
range(10)[-1]
range(0)
range(3)
range(1, 10, 3)
range(5, 0, -2)
range(3) | list
range(1, 4) | list
range(5, 0, -2) | list
range(100000) | length
d.a
d['a']
d['z']
d.z
d.z is defined
nested.a.b[2].c
nested['a']['b'][0]
nested.a.b.2.c
nested.a.x is undefined
none.x
none['x'] is defined
n.x is defined
s.x is defined
s.upper
weird.items()
weird['items']
weird.get
weird.keys()
weird['x y']
weird.pop
weird['pop']
weird['1']
weird.1
weird.__class__
weird['__class__']
d.items()
d.keys()
d.values()
d.items() | list
d.keys() | list
d.values() | list
d.get('a')
d.get('z')
d.get('z', 5)
d.get('z') is none
d.items() | length
'a' in d.keys()
2 in d.values()
('a', 2) in d.items()
d.items()[0]
d.copy()
l.count(3)
l.index(2)
l.copy()
(1, 2, 1).count(1)
missing
missing | length
missing | list
missing | upper
missing ~ 'x'
missing is defined
[missing]
{'a': missing}
missing is iterable
missing is sequence
missing is mapping
missing is string
missing or 'd'
mixed
nested
d
t
f
none
x
y
big
q
[q]
l
dict(a=1, b='x')
dict({'a': 1}, b=2)
dict([['a', 1], ['b', 2]])
dict(d, a=5)
dict()
dict(**d)
namespace(a=1).a
namespace({'k': 2}).k
namespace().x is defined
raise_exception is callable
range is callable
range is defined
loop is defined
strftime_now('%') | length > 0
strftime_now('%Y') | length
strftime_now('')
""")
# Filters.
expressions("values", r"""
d | tojson
nested | tojson
mixed | tojson
q | tojson
u | tojson
u | tojson(ensure_ascii=true)
'<a href="x">&\'' | tojson
'\x00\x1f\x7f\u2028' | tojson
'\x00\x1f\x7f\u2028' | tojson(ensure_ascii=True)
1.0 | tojson
1e100 | tojson
1e-7 | tojson
none | tojson
true | tojson
[] | tojson
{} | tojson
(1, 2) | tojson
{1: 'a', none: 'b', true: 'c', 1.5: 'd'} | tojson
nested | tojson(indent=2)
mixed | tojson(indent=4)
[] | tojson(indent=2)
[[], {}] | tojson(indent=1)
d | tojson(indent='\t')
d | tojson(indent=0)
d | tojson(separators=(',', ':'))
d | tojson(sort_keys=true)
nested | tojson(indent=2, separators=(', ', ' : '))
d | tojson(true)
blank | trim
'xxaxx' | trim('x')
'abcba' | trim('ab')
none | trim
5 | trim
'\u3000a\u00a0' | trim | length
s | upper
u | upper
u | lower
u | capitalize
u | title
u.title()
"they're bill's" | title
"they're bill's".title()
'foo-bar (baz) [q] {z} <w> x_y' | title
'ΑΣ ΑΣΑ' | lower
'İ' | lower | length
'ǆ' | title
'ǆ' | capitalize
'ﬁn' | upper
'ﬁn' | title
'' | title
'' | capitalize
s | length
l | length
d | length
l | count
l | first
l | last
s | first
s | last
u | last
e | first
e | last
e | first is undefined
d | first
d | last
range(5) | last
l | join
l | join(', ')
l | join(1)
words | join('-')
mixed | join('|')
people | join(', ', attribute='name')
people | map(attribute='name') | join(',')
s | join('.')
e | join(',')
d | join(',')
missing | default('x')
missing | d('x')
missing | d
none | default('x')
none | default('x', true)
'' | default('x', true)
0 | default('x', boolean=true)
s | default('x')
d.z | default('x')
s | list
d | list
l | list
(1, 2) | list
d | dictsort
d | dictsort(true)
d | dictsort(by='value')
d | dictsort(reverse=true)
d | dictsort(false, 'value', true)
{'b': 'X', 'a': 'y'} | dictsort(by='value')
d | items | list
missing | items | list
l | sort
l | sort(reverse=true)
words | sort
words | sort(case_sensitive=true)
words | sort(true)
people | sort(attribute='age') | map(attribute='name') | list
people | sort(attribute='name') | map(attribute='name') | list
people | sort(attribute='age,name') | map(attribute='name') | list
people | sort(attribute='age', reverse=true) | map(attribute='name') | list
s | sort | join
d | sort
l | reverse | list
s | reverse
u | reverse
range(3) | reverse | list
d | reverse | list
words | unique | list
words | unique(true) | list
[1, 1.0, true, 2] | unique | list
people | unique(attribute='age') | map(attribute='name') | list
words | map('upper') | list
words | map('length') | list
words | map('replace', 'p', 'b') | list
words | map('default', 'x') | list
people | map(attribute='city', default='?') | list
people | map(attribute='city') | list
pairs | map(attribute=0) | list
pairs | map(attribute='1') | list
[nested] | map(attribute='a.b.0') | list
['1', '2'] | map('int') | sum
l | map('string') | list
words | map('trim', 'p') | list
[0, 1, '', 'a', none] | select | list
[0, 1, '', 'a', none] | reject | list
l | select('gt', 1) | list
l | select('>', 1) | list
l | reject('odd') | list
l | select('in', [1, 2]) | list
mixed | select('string') | list
people | selectattr('city') | map(attribute='name') | list
people | selectattr('age', 'equalto', 30) | map(attribute='name') | list
people | selectattr('city', 'defined') | list | length
people | rejectattr('city', 'defined') | map(attribute='name') | list
people | selectattr('name', 'lower') | map(attribute='name') | list
people | rejectattr('age', 'ge', 30) | list
people | selectattr('age', 'eq', 99) | list
(people | selectattr('age', 'eq', 99)) is iterable
'yes' if people | selectattr('age', 'eq', 99) else 'no'
'yes' if people | selectattr('age', 'eq', 99) | list else 'no'
people | selectattr('age', 'eq', 30) | first
people | groupby('age') | list
people | groupby('city', default='none') | map(attribute='grouper') | list
people | groupby('name') | map('first') | list
people | groupby('age') | map(attribute='list') | map('length') | list
words | groupby(0) | map('last') | list
n | string
x | string ~ '!'
l | string
'42' | int
'42.9' | int
'-7' | int
' 8 ' | int
'1_000' | int
'abc' | int
'abc' | int(5)
'' | int
'0x1A' | int(base=16)
'1A' | int(0, 16)
'101' | int(base=2)
'0b101' | int(base=0)
x | int
-2.7 | int
true | int
none | int
none | int(-1)
l | int
'1e3' | int
'inf' | int
'nan' | int
'3.14' | float
'abc' | float
'abc' | float(1.5)
n | float
true | float
none | float
'1e5' | float
' .5 ' | float
'5.' | float
'inf' | float
'-Infinity' | float
'nan' | float
'1_0.5' | float
m | abs
y | abs
-5 | abs
true | abs
2.5 | round
3.5 | round
2.675 | round(2)
2.5 | round(0, 'ceil')
2.1 | round(0, 'ceil')
2.9 | round(0, 'floor')
42.55 | round(1)
42.55 | round(1, 'floor')
1234.5 | round(-2)
7 | round
1250 | round(-2)
1350 | round(-2)
-1250 | round(-2)
7 | round(1, 'floor')
0.5 | round
-0.5 | round
2.5 | round | int
s | replace('l', 'L')
s | replace('l', 'L', 1)
s | replace('', '-')
s | replace('World', '')
n | replace(7, 8)
'aaa' | replace('aa', 'b')
'<b>' | safe
'<b>' | escape
'<b>&"\'' | e
'<b>' | safe | escape
'<b>' | escape | escape
'<b>' | forceescape
('<b>' | safe) + '<i>'
'<i>' + ('<b>' | safe)
('<b>' | safe) ~ '<i>'
('<b>' | safe) | upper
lines | indent
lines | indent(2)
lines | indent(2, true)
lines | indent(2, blank=true)
lines | indent('> ')
lines | indent(width=1, first=true, blank=true)
'' | indent
'a' | indent(4, true)
s | wordcount
u | wordcount
'a_b c-d' | wordcount
l | batch(2) | list
l | batch(2, 'x') | list
range(7) | batch(3) | list
[] | batch(2, 'x') | list
l | slice(2) | list
range(7) | slice(3) | list
range(7) | slice(3, 'x') | list
l | sum
[1.5, 2] | sum
people | sum(attribute='age')
people | sum('age', 100)
e | sum
[[1], [2]] | sum(start=[])
l | min
l | max
words | min
words | max
words | max(true)
e | max
people | max(attribute='age')
people | min(attribute='name')
d | attr('a')
d | attr('items') is callable
s | attr('upper')
'%s is %d' | format('a', 5)
'%(a)s-%(b)05.1f' | format(a='x', b=2.25)
'%s' | format([1, 'a'])
'%5s|%-5s|%05d|%+d|% d|%x|%X|%o|%e|%g|%%' | format('a', 'b', 42, 5, 5, 255, 255, 8, 12345.678, 0.0001)
'%.3f %.0f %5.1f %#x %c %c %r' | format(1.23456, 2.5, 3.14159, 255, 65, 'z', 'q')
'%.2s|%i|%u' | format('abc', 3.9, 4)
'%*d|%-*d|' | format(5, 42, 5, 42)
'%s' % 'x'
'%s %s' % (1, 2)
'%d%%' % 50
'%(k)s' % {'k': 'v'}
'%s' % [1, 2]
'%s' % none
long | truncate(20)
long | truncate(20, true)
long | truncate(20, true, '..')
long | truncate(20, false, '…')
long | truncate(40)
long | truncate(38)
long | truncate(20, leeway=0)
long | truncate(20, end='')
'abc' | truncate(5)
'x' | center(5)
'ab' | center(5)
'abc' | center(6)
'abc' | center(2)
s | center | length
'a b/c?d=é&' | urlencode
{'a b': 1, 'c': 'é/'} | urlencode
[['a', 1], ['b', '&']] | urlencode
5 | urlencode
s | upper | lower | title | length
-3 | abs
-3 | abs | string
l | map('string') | join('+') | upper
(l | sort)[0]
l | sort | first + 1
s|upper~'x'
[1,2,3] | map('abs') | select('odd') | sum
""")
# Tests.
expressions("values", r"""
n is defined
missing is defined
missing is undefined
n is not defined
none is none
n is none
s is string
n is string
n is number
x is number
t is number
n is integer
t is integer
x is integer
x is float
n is float
t is boolean
n is boolean
d is mapping
l is mapping
l is sequence
s is sequence
d is sequence
n is sequence
(1,) is sequence
range(3) is sequence
d.items() is sequence
l is iterable
s is iterable
d is iterable
n is iterable
none is iterable
range(3) is iterable
d.items() is iterable
namespace() is iterable
t is true
f is false
n is true
1 is true
0 is false
n is odd
n is even
6 is even
6 is divisibleby 3
6 is divisibleby(4)
n is eq 7
n is eq(7)
n is equalto 7
n is sameas n
none is sameas none
1 is sameas 1
l is sameas l
[1] is sameas [1]
1 is sameas 1.0
true is sameas 1
n is ne 7
n is == 7
n is lt 8
n is gt 8
n is le 7
n is ge 8
n is lessthan 8
n is greaterthan 6
n is in [7, 8]
n is in(l)
n is not in l
'a' is in 'abc'
low is lower
s is lower
'ABC' is upper
'ABC1' is upper
'123' is upper
u is lower
'é' is lower
s.upper is callable
s is callable
'upper' is filter
'nope' is filter
'odd' is test
'nope' is test
s is escaped
(s | safe) is escaped
not n is odd
n is odd and t
n is odd or f
n is not odd and not f
n is defined and n is number and n > 3
s is string and s is not mapping
[1, 2] is sequence and [1, 2] is not string
n is odd if t else 5
4 is even ~ 'x'
-1 is number
n is divisibleby 7 and t
d.a is defined and d.a == 2
'x' is defined | string
""")
# Methods of strings.
expressions("values", r"""
'a,b,,c'.split(',')
csv.split(',', 1)
csv.rsplit(',', 1)
csv.split(',')[-1]
csv.split('x')
csv.split(sep=',', maxsplit=2)
spaces.split()
spaces.split(none, 1)
spaces.rsplit(none, 1)
spaces.rsplit()
spaces.split(' ')
''.split()
''.split(',')
'a--b--c'.split('--')
'aaa'.split('aa')
'aaa'.rsplit('aa')
'a b c'.split(maxsplit=1)
'a b c'.split(' ', 0)
' a b '.split(none, 0)
blank.strip()
blank.lstrip()
blank.rstrip()
'xyaxy'.strip('xy')
'xyaxy'.lstrip('x')
'xyaxy'.rstrip('y')
'\n\nx\n'.strip('\n')
'éaé'.strip('é')
'日a本'.strip('本日')
'aXb'.strip('')
s.startswith('He')
s.startswith(('x', 'He'))
s.startswith('World', 6)
s.startswith('')
s.endswith('ld')
s.endswith(('x', 'y'))
s.endswith('Hello', 0, 5)
s.replace('o', '0')
s.replace('o', '0', 1)
s.replace('', '.', 3)
s.upper()
s.lower()
u.upper()
u.swapcase()
u.casefold()
u.capitalize()
'hello world'.title()
','.join(['a', 'b'])
'-'.join('abc')
''.join([])
', '.join(d)
s.find('o')
s.find('o', 5)
s.find('zz')
s.find('')
s.find('', 100)
s.find('o', -5)
s.rfind('o')
s.rfind('o', 0, 5)
s.index('W')
s.rindex('l')
u.find('日')
u.rfind('ß')
s.count('l')
s.count('')
s.count('l', 4)
'aaaa'.count('aa')
lines.splitlines()
lines.splitlines(true)
'a\x0bb\x0cc\x1cd\x85e\u2028f'.splitlines()
''.splitlines()
'\n'.splitlines()
'foobar'.removeprefix('foo')
'foobar'.removesuffix('bar')
'foobar'.removeprefix('x')
'foobar'.removesuffix('')
'123'.isdigit()
'12a'.isdigit()
''.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
'٣'.isdecimal()
'abc'.isalpha()
'日本'.isalpha()
'ab1'.isalpha()
'ab1'.isalnum()
' \t\n'.isspace()
''.isspace()
'abc'.islower()
'ABC'.isupper()
'Hello World'.istitle()
'Hello world'.istitle()
'abc'.isascii()
'é'.isascii()
''.isascii()
'a\n'.isprintable()
'é'.isprintable()
''.isprintable()
'42'.zfill(5)
'-42'.zfill(5)
'+4'.zfill(4)
'abc'.zfill(2)
'ab'.ljust(5)
'ab'.ljust(5, '.')
'ab'.rjust(5, '日')
'ab'.center(5, '*')
'abc'.center(6, '*')
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('x')
'abc'.rpartition('x')
'a\tb'.expandtabs()
'a\tb\n\tc'.expandtabs(4)
'{} and {}'.format(1, 'x')
'{1}{0}{1}'.format('a', 'b')
'{a}-{b!r}'.format(a=1, b='q')
'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
'{:5}|{:05d}|{:+}|{:x}|{:#b}|{:,}'.format(42, 42, 42, 255, 5, 1234567)
'{:.2f}|{:10.3e}|{:%}|{:g}|{:.3}|{:,.2f}'.format(3.14159, 12345.678, 0.25, 0.00001, 2.0, 1234567.891)
'{:5}|{:.2}|{:<8.3f}|'.format(1.5, 'abc', 2.0)
'{0[a]} {0.a} {1[0]}'.format(d, l)
'{{}} {}'.format(1)
'{} {}'.format(true, none)
'{:_}'.format(1234567)
'a'.upper().lower().title()
s.split(' ')[0].lower()
(s ~ '!').upper()
'abc'[1].upper()
""")
# What must fail; the words of the error are free, except those of raise_exception.
expressions("values", r"""
missing.x
missing['x']
missing[0]
missing[1:]
missing()
missing + 1
1 + missing
-missing
missing < 1
missing.x.y
nested.x.y
d.z.z
n()
s()
1 + 'a'
'a' + 1
'a' - 'b'
[1] + (1,)
none + 1
1 / 0
1 // 0
1 % 0
1.0 / 0
1.0 % 0
0 ** -1
1 < 'a'
none < 1
[1] < (1,)
{} < {}
1 in 5
1 in 'abc'
none in 'abc'
'a' in none
5 | length
none | length
5 | list
none | first
5 | join
missing | int
missing | float
missing | abs
missing | round
missing | tojson
[missing] | tojson
range | tojson
{(1, 2): 3} | tojson
d.items() | tojson
(l | map('string')) | tojson
{[1]: 2}
{{}: 2}
'x' | abs
none | round
[1, 'a'] | sort
[none, 1] | max
['a'] | sum
'abc' | items
l | items
l | dictsort
d | dictsort(by='x')
l | map
l | map('nope') | list
l | select('nope') | list
l | selectattr
l | unique(1, 2, 3)
[[1]] | unique | list
s | replace('a')
s | replace
s | upper(1)
s | trim(5)
s | indent('a', 'b', 'c', 'd')
5 | indent
long | truncate(2)
5 | truncate
'%d' | format('a')
'%s %s' | format(1)
'%s' | format(1, 2)
'%y' | format(1)
'%' | format(1)
'%(a)s' % 5
'{} {}'.format(1)
'{a}'.format(1)
'{'.format()
'}'.format()
'{:d}'.format('a')
'{:.2d}'.format(5)
'a'.split('')
'a'.index('b')
[1].index(2)
'a'.join([1])
','.join(5)
'a'.center(5, 'xx')
'a'.strip(5)
'a'.startswith(5)
'a'.startswith(['a'])
'a'.nope()
'a'.upper(1)
'a'.split(',', 'x')
'a'.split(nope=1)
l.append(1)
l.pop()
l.sort()
l.extend([1])
d.pop('a')
d.update({})
d.clear()
d.get()
d.get([1])
range()
range('a')
range(1.5)
range(1, 2, 0)
range(100001)
dict(5)
dict([[1]])
dict(**5)
dict(*5)
namespace(5)
raise_exception('stop: ' ~ n)
raise_exception('')
raise_exception()
raise_exception('a', 'b')
l['a':]
l[::0]
n is divisibleby
n is divisibleby 0
n is divisibleby 'a'
s is odd
n is eq
n is in 5
'inf' | float | int
1e400 | int
d.items() | last | first | nope
nope(1)
n | nope
n is nope
s.x.y
loop.index
caller()
""")
# Statements.
add("values", [
    "{% if f %}a{% elif none %}b{% elif n %}c{% else %}d{% endif %}", "{% if f %}a{% endif %}", "{% if missing %}a{% else %}b{% endif %}", "{% if 1, 2 %}a{% endif %}", "{% if e %}a{% elif ed %}b{% elif empty %}c{% elif zero %}d{% elif 0.0 %}e{% else %}f{% endif %}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{% endfor %}", "{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}", "{% for i in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for i in [1,1,2,2,1] %}{{ loop.changed(i) }}{% endfor %}", "{% for i in [1,1,2] %}{{ loop.changed(i, 'x') }}{% endfor %}",
    "{% for i in e %}x{% else %}none{% endfor %}", "{% for i in l %}x{% else %}none{% endfor %}", "{% for i in missing %}x{% else %}none{% endfor %}", "{% for i in l if i > 1 %}{{ i }}{{ loop.index }}{{ loop.last }}{{ loop.length }};{% endfor %}", "{% for i in l if i > 9 %}x{% else %}none{% endfor %}",
    "{% for i in l if i > 1 %}{{ loop.revindex }}{{ loop.nextitem }};{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d | items %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for c in low %}{{ c }}.{% endfor %}", "{% for c in u %}{{ c }}.{% endfor %}",
    "{% for (a, b) in pairs %}{{ a }}{{ b }}{% endfor %}", "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for i in 1, 2, 3 %}{{ i }}{% endfor %}", "{% for i in (1, 2) %}{{ i }}{% endfor %}", "{% for i in range(3) %}{{ i }}{% endfor %}", "{% for i in l | sort %}{{ i }}{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}", "{% for i in l %}{% break %}{% else %}E{% endfor %}", "{% for i in l %}{% continue %}{% else %}E{% endfor %}", "{% for i in l %}{% if loop.last %}{% break %}{% endif %}{% else %}E{% endfor %}",
    "{% for i in l %}{% for j in l %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}", "{% for i in l %}{% for j in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for i in l %}{% set outer = loop %}{% for j in [1, 2] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}", "{% for a in l %}{% for b in l if b != a %}{{ a }}{{ b }},{% endfor %}{% endfor %}",
    "{% set x2 = 1 %}{% for i in l %}{{ x2 }}{% set x2 = i %}{{ x2 }};{% endfor %}{{ x2 }}", "{% for i in l %}{% set z = i %}{% endfor %}{{ z is defined }}", "{% if t %}{% set z = 1 %}{% endif %}{{ z }}", "{% set n = n + 1 %}{{ n }}", "{% for n in l %}{{ n }}{% endfor %}{{ n }}", "{% for i in l %}{% if i == 3 %}{% set z = 5 %}{% endif %}{{ z }}|{% endfor %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = pairs %}{{ a }}{{ b }}", "{% set (a, b) = 'xy' %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a = [1] %}{% set b = a + [2] %}{{ a }}{{ b }}", "{% set a %}x{{ n }}y{% endset %}[{{ a }}]", "{% set a | upper %}x{{ s }}{% endset %}{{ a }}", "{% set a | replace('o', '0') | upper %}foo{% endset %}{{ a }}", "{% set a %}{% set inner = 1 %}{% endset %}{{ inner is defined }}", "{% set a %}<b>{% endset %}{{ a | escape }}",
    "{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b, c = 2, 3 %}{{ ns.a }}{{ ns.b }}{{ c }}", "{% set ns = namespace(l=[]) %}{% for i in l %}{% set ns.l = ns.l + [i * 2] %}{% endfor %}{{ ns.l }}", "{% set ns = namespace(found=false) %}{% for i in l if not ns.found %}{{ i }}{% set ns.found = true %}{% endfor %}", "{% set ns = namespace(found=false) %}{% for i in l if not ns.found %}{{ i }}{{ loop.last }}{% set ns.found = true %}{% endfor %}", "{% set ns = namespace(a=1) %}{{ ns['a'] }}{{ ns.b is defined }}{{ ns.items is defined }}", "{% set ns = namespace(a=1) %}{% set ns.a %}block{% endset %}{{ ns.a }}",
    "{% macro m(a, b=2, c=b) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m(1, c=9) }} {{ m() }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}{{ m(none) }}", "{% macro fact(k) %}{{ 1 if k <= 1 else k * (fact(k - 1) | int) }}{% endmacro %}{{ fact(10) }}", "{% macro m() %}{{ n }}{% endmacro %}{% set n = 100 %}{{ m() }}", "{% macro m() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ m() }}", "{% for i in l %}{% macro m() %}{{ i }}{{ loop.index }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m(x) %}  {{ x }}  {% endmacro %}[{{ m('a') | trim }}]", "{% macro outer() %}{% macro inner() %}I{% endmacro %}{{ inner() }}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}", "{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}\n{{ m(1) }}\n", "{% macro m(l) %}{% for i in l %}{{ i }}{% endfor %}{% endmacro %}{{ m([1, 2]) }}{{ m('ab') }}", "{% macro m(a) %}{% set a = a ~ '!' %}{{ a }}{% endmacro %}{{ m(1) }}", "{{ m is defined }}{% macro m() %}x{% endmacro %}{{ m is defined }}{{ m is callable }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{% macro m(n=n) %}{{ n }}{% endmacro %}{{ m() }}", "{% macro m(a=n, n=2) %}{{ a }}|{{ n }}{% endmacro %}{{ m() }}", "{% print 'a' %}", "{% set v = dict(k=1) %}{{ v.k }}", "{{ zero | map('upper') | list }}{{ '' | select | list }}", "{% macro m() %}x{% endmacro %}{{ m.name }}{{ m }}",
    "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body{{ n }}{% endcall %}", "{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m(x) %}{{ x }}{{ caller() if caller is defined else '-' }}{% endmacro %}{{ m(1) }}{% call m(2) %}c{% endcall %}", "{% macro m() %}{% for i in [1, 2] %}{{ caller(i) }}{% endfor %}{% endmacro %}{% for j in l %}{% call(i) m() %}{{ i }}{{ j }} {% endcall %}{% endfor %}",
    "{% filter upper %}abc {{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aXa{% endfilter %}", "{% filter trim %}  a {% set inner = 1 %} {% endfilter %}{{ inner is defined }}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "{% with a = n, n = 2 %}{{ a }}{{ n }}{% endwith %}{{ n }}", "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}", "{% print n, s %}", "{% print n %}",
    "{% generation %}a{{ n }}{% endgeneration %}b", "{% generation %}\n  a\n{% endgeneration %}\nb", "{% for i in l %}{% generation %}{{ i }}{{ loop.index }}{% set w = 1 %}{% endgeneration %}{{ w is defined }}{% endfor %}", "{%- generation -%} x {%- endgeneration -%}",
    "{% set g = l | map('string') %}{% for i in g %}{{ i }}{% endfor %}|{% for i in g %}{{ i }}{% else %}used{% endfor %}", "{% set g = l | select %}{{ g | first }}{{ g | list }}", "{% set g = d | items %}{{ g | list | length }}{{ g | list | length }}", 
    "{% for i in [] %}{% endfor %}{{ i is defined }}", "{% for x, y in [[1, 2], [3, 4]] if x > 1 %}{{ x }}{{ y }}{% endfor %}", "{% for i in l: %}{{ i }}{% endfor %}", "{% if t: %}x{% endif %}", "{% for item in d.items() %}{{ item[0] }}{{ item.1 }}{% endfor %}", "{% for g in people | groupby('age') %}{{ g.grouper }}:{{ g.list | length }}{{ g[0] }};{% endfor %}", "{% for age, group in people | groupby('age') %}{{ age }}{% for p in group %}{{ p.name }}{% endfor %};{% endfor %}", "{% for row in l | batch(2) %}{{ row }}{% endfor %}",
    # Failing statements.
    "{% for i in 5 %}{% endfor %}", "{% for i in none %}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% set a, b = 1 %}", "{% set a, b = [1, 2, 3] %}", "{% set d.x = 1 %}", "{% set missing.x = 1 %}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% for i in l %}{{ loop.cycle() }}{% endfor %}", "{% for i in l %}{{ loop([1]) }}{% endfor %}", "{% if t %}{{ n | nope }}{% endif %}", "{% if f %}{{ n | nope }}{% endif %}ok", "{% if f %}{{ n is nope }}{% endif %}ok", "{% if missing.x %}{% endif %}", "{{ loop }}x",
    # Syntax errors.
    "{{", "{{ }}", "{{ n", "{% if t %}", "{% if %}{% endif %}", "{% endif %}", "{% for i in l %}", "{% for in l %}{% endfor %}", "{% for i l %}{% endfor %}", "{% nope %}", "{% else %}", "{{ 1 + }}", "{{ (1 }}", "{{ 1) }}", "{{ [1, 2 }}", "{{ {'a' 1} }}", "{{ 'abc }}", "{{ a b }}", "{{ a. }}", "{{ a | }}", "{{ a is }}", "{{ a is not }}", "{{ 1 ? 2 }}", "{{ a ! b }}", "{{ $ }}", "{# open", "{% raw %}x", "{% set %}", "{% set 1 = 2 %}", "{% set a.b.c = 1 %}", "{% set true = 1 %}", "{% set a b %}", "{% macro %}{% endmacro %}", "{% macro m( %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% block x %}{% endfor %}", "{% if t %}{% endfor %}", "{% if t %}{% else %}{% else %}{% endif %}", "{{ f(a=1, 2) }}", "{{ f(**a, b) }}", "{{ f(a b) }}", "{{ n is odd is even }}", "{% for loop in l %}{% endfor %}", "{{ a := 1 }}", "{{ not }}", "{{ a[ }}", "{{ a if }}", "{{ '\\x4' }}", "{{ '\\u12' }}", "{% call m %}{% endcall %}", "{% call 5 %}{% endcall %}", "{% filter %}{% endfilter %}", "{{ if }}", "{{ a.'b' }}", "{{ 1..2 }}", "{{ ; }}", "{{ @ }}", "{% if a = b %}{% endif %}", "{% set x = %}", "{{ a }", "{% if t }}x{% endif %}", "{{ n | nope }}", "{{ n is nope }}", "{% for i in l | nope %}{% endfor %}",
])
# Constructions of published chat templates, in own words.
add("chat", [
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}{% if message.content is string %}{{ message.content | trim }}{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{%- set ns = namespace(multi_step_tool=true, last=messages | length - 1) -%}\n{%- for message in messages[::-1] %}\n  {%- set index = (messages | length - 1) - loop.index0 %}\n  {%- if ns.multi_step_tool and message.role == 'user' and message.content is string and not (message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}\n    {%- set ns.multi_step_tool = false %}\n    {%- set ns.last = index %}\n  {%- endif %}\n{%- endfor %}\n{{ ns.last }} {{ ns.multi_step_tool }}",
    "{%- for message in messages %}{%- if message.role == 'assistant' %}{%- set content = message.content %}{%- set reasoning = '' %}{%- if '</think>' in content %}{%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- endif %}[{{ reasoning }}][{{ content }}]{%- endif %}{%- endfor %}",
    "{%- for m in messages %}{%- if m.role == 'tool' %}{%- if loop.previtem and loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{%- endif %}{{ '\\n<tool_response>\\n' }}{{ m.content if m.content is string else m.content | length }}{{ '\\n</tool_response>' }}{%- if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\\n' }}{%- endif %}{%- endif %}{%- endfor %}",
    "{%- for m in messages %}{%- for call in m.tool_calls | default([]) %}{%- set call = call.function if call.function else call %}{{ '{\"name\": \"' ~ call.name ~ '\", \"arguments\": ' }}{%- if call.arguments is string %}{{ call.arguments }}{%- else %}{{ call.arguments | tojson }}{%- endif %}{{ '}' }}{%- endfor %}{%- endfor %}",
    "{%- for m in messages if m.tool_calls is defined and m.tool_calls %}{%- for call in m.tool_calls %}{%- for name, value in call.function.arguments | items %}{{ '<parameter=' + name + '>\\n' }}{%- set value = value | tojson | safe if value is mapping or (value is sequence and value is not string) else value | string %}{{ value }}{{ '\\n</parameter>\\n' }}{%- endfor %}{%- endfor %}{%- endfor %}",
    "{%- if tools and tools is iterable and tools is not mapping %}{{ '# Tools\\n<tools>' }}{%- for tool in tools %}{{ '\\n' ~ (tool | tojson) }}{%- endfor %}{{ '\\n</tools>' }}{%- endif %}",
    "{%- macro render_content(content, counts) %}{%- if content is string %}{{ content }}{%- elif content is iterable and content is not mapping %}{%- for item in content %}{%- if item.type == 'image' or 'image_url' in item %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}{%- elif 'text' in item %}{{ item.text }}{%- else %}{{ raise_exception('Unexpected item type.') }}{%- endif %}{%- endfor %}{%- elif content is none or content is undefined %}{{ '' }}{%- else %}{{ raise_exception('Unexpected content type.') }}{%- endif %}{%- endmacro %}{%- for m in messages %}[{{ render_content(m.content, true) | trim }}]{%- endfor %}",
    "{% if messages[0].role != 'user' %}{{ raise_exception('Conversation must start with a user, not with ' + messages[0].role + '!') }}{% endif %}",
    "{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('Unknown role: ' ~ m.role) }}{% endif %}{% endfor %}",
    "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ m.role[0] }}{% endif %}{% endfor %}",
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{{ system_message }}{% for m in loop_messages %}{{ loop.index0 }}{{ m.role }}{% endfor %}",
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% else %}{{ '<think>\\n' }}{% endif %}", "{{ (enable_thinking | default(true)) }}{{ preserve_thinking | default(true) }}", "{% set today = strftime_now('%Y') if strftime_now is defined else '2024' %}{{ today | length }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }}", "{{ messages | rejectattr('role', 'in', ['system', 'tool']) | list | length }}", "{{ (messages | last).content }}", "{{ messages[-1].content[-1] }}", "{{ messages[-1]['content'] | length }}", "{{ messages | map(attribute='role') | unique | join(' ') }}", "{{ (messages | selectattr('role', 'eq', 'system') | first).content }}", "{{ messages[2].tool_calls[0]['function'].arguments | tojson(indent=2) }}", "{{ tools | tojson(indent=4) }}", "{{ tools[0].function.parameters.properties | dictsort | map('first') | join(',') }}", "{% for k, v in tools[0].function.parameters.properties.items() %}{{ k }}: {{ v.type }}{{ ' = ' ~ v.default if v.default is defined }};{% endfor %}", "{{ messages[2].tool_calls[0].function.arguments.items() | list }}", "{{ messages[2].tool_calls[0].function.arguments }}", "{{ messages }}",
    "{%- set ns = namespace(images=0) %}{%- for m in messages %}{%- if m.content is not string %}{%- for part in m.content %}{%- if part.type == 'image' %}{%- set ns.images = ns.images + 1 %}Picture {{ ns.images }}: {% endif %}{%- endfor %}{%- endif %}{%- endfor %}", "{%- macro kind(p) -%}{%- if p.type is string -%}{{ p.type }}{%- elif p.anyOf -%}{% for o in p.anyOf %}{{ kind(o) }}{{ '|' if not loop.last }}{% endfor %}{%- else -%}any{%- endif -%}{%- endmacro -%}{{ kind({'anyOf': [{'type': 'a'}, {'anyOf': [{'type': 'b'}, {}]}]}) }}", "{% for m in messages %}{{ loop.index }}/{{ loop.length }} {{ m.role | upper }}{{ ', ' if not loop.last else '.' }}{% endfor %}", "{% for m in messages | reverse %}{{ m.role }} {% endfor %}", "{{- '' if not tools else 'with ' ~ tools | length ~ ' tools' -}}", "{%- set content = '  x ' %}{%- set content = content | trim if true else content %}[{{ content }}]", "{{ messages[1].content.replace('<b>', '**').replace('</b>', '**') }}", "{{ messages[5].content[-1] }}{{ messages[5].content[:-2] | trim }}{{ messages[5].content.split(', ')[1][0] }}",
    "{% set found = namespace(value=none) %}{% for m in messages %}{% if m.role == 'tool' and found.value is none %}{% set found.value = loop.index0 %}{% endif %}{% endfor %}{{ found.value }}", "{{ messages[9].content }}", "{{ messages[9] }}x", "{{ messages.content }}x{{ messages['content'] is defined }}", "{% for m in messages %}{%- generation %}{{ m.role }}{% endgeneration %}\n{% endfor %}",
])


def random_expressions(count):
    """Expressions put together at random from what templates use, the same ones every time.

    All atoms are variables: what jinja2 computes while it compiles fails in other ways than what it runs.
    """
    dice = random.Random(20)
    atoms = ["n", "m", "zero", "x", "y", "t", "f", "none_value", "s", "low", "u", "blank", "empty", "num", "l", "words", "d", "e", "ed", "missing", "one", "two", "minus", "half", "a", "el", "space", "cjk", "pair", "single", "people", "nested.a", "csv", "lines", "range(4)", "pairs"]
    operators = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
    filters = ["upper", "lower", "title", "trim", "length", "first", "last", "list", "join", "join('-')", "default('z')", "default('z', true)", "string", "int", "float", "abs", "round", "round(1)", "tojson", "replace('l', 'x')", "sort", "sort(reverse=true)", "unique | list", "reverse | list", "sum", "min", "max", "items | list", "dictsort", "map('string') | list", "select | list", "reject('none') | list", "capitalize", "wordcount", "indent(1)", "batch(2) | list", "slice(2) | list", "map('length') | list", "truncate(6)", "center(9)", "e", "count"]
    tests = ["defined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "true", "odd", "even", "lower", "upper", "in l", "eq 1", "ne none", "divisibleby 2", "callable", "sameas none"]
    postfixes = ["[0]", "[-1]", "[1:]", "[:2]", "[::-1]", "['a']", ".a", ".name", ".items()", ".keys() | list", ".upper()", ".strip()", ".split()", ".split('l')", ".startswith('H')", ".get('a')", ".count('l')", ".find('o')", ".title()", ".replace('o', '')"]

    def expression(depth):
        kind = dice.random()
        if depth == 0 or kind < 0.15:
            return dice.choice(atoms)
        inner = expression(depth - 1)
        if kind < 0.40:
            return f"({inner} {dice.choice(operators)} {expression(depth - 1)})"
        if kind < 0.65:
            return f"({inner} | {dice.choice(filters)})"
        if kind < 0.80:
            return f"({inner}){dice.choice(postfixes)}"
        if kind < 0.90:
            return f"({inner} is {dice.choice(['', 'not '])}{dice.choice(tests)})"
        if kind < 0.95:
            return f"({inner} if {expression(depth - 1)} else {expression(depth - 1)})"
        return f"(not {inner})"

    found = []
    while len(found) < count:
        text = "{{ " + expression(dice.choice([1, 2, 2, 3])) + " }}"
        if text not in found:
            found.append(text)
    return found


def render(made, template, context):
    try:
        compiled = made.from_string(template)
    except jinja2.TemplateSyntaxError:
        return {"fails": "load"}
    try:
        return {"text": compiled.render(**context)}
    except TemplateWords as words:
        return {"fails": "words", "words": str(words)}
    except Exception:  # whatever Python raises inside of a template
        return {"fails": "render"}


def is_stable(row):
    """Without addresses of objects, and within 64-bit integers."""
    text = row.get("text", "")
    return " at 0x" not in text and len(text) < 5000


def main():
    warnings.simplefilter("ignore")  # of Python code that some expressions compile to
    add("values", random_expressions(1500))
    made = environment()
    cases = []
    for context, templates in SNIPPETS.items():
        for template in dict.fromkeys(templates):
            row = {"template": template, "context": context, **render(made, template, copy.deepcopy(CONTEXTS[context]))}
            if is_stable(row):
                cases.append(row)
    path = pathlib.Path(__file__).resolve().parent.parent / "tests/data/jinja/cases.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"contexts": ' + json.dumps(CONTEXTS, ensure_ascii=False) + ',\n "cases": [\n')
        file.write(",\n".join(json.dumps(row, ensure_ascii=False) for row in cases))
        file.write("\n]}\n")
    print(f"{len(cases)} cases, {sum('fails' in row for row in cases)} of them errors")


if __name__ == "__main__":
    main()
