"""The loop of question, call and answer, by the client of OpenAI: server_tools_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import json
import sys
import unittest
from itertools import product
from pathlib import Path

import openai

from server_process import ServerProcess

PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
TINY = SOURCE / "models" / "tiny"
CHATS = json.loads((TINY / "expected" / "chats.json").read_text())
TOOLS = {tool["function"]["name"]: tool for chat in CHATS for tool in chat["tools"] or ()}
MODES = list(product((False, True), (False, True)))  # streamed, thinking

# Question, arguments of the call, its result, the model's answer: what the model was taught.
LOOPS = {
    "get_weather": ("What is the weather in Santiago?", {"city": "Santiago"}, {"temperature": 21, "sky": "sunny"},
                    "It is 21 degrees and sunny in Santiago."),
    "add": ("Use the tool to add 1965 and 2309.", {"a": 1965, "b": 2309}, {"sum": 4274}, "The sum is 4274."),
    "set_timer": ("Set a timer for 12 minutes.", {"minutes": 12}, {"ok": True}, "The timer is set for 12 minutes."),
    "send_mail": ("Tell Rosa that the cake is ready.", {"to": "Rosa", "text": "The cake is ready."}, {"sent": True},
                  "I told Rosa."),
}


def setUpModule():
    global CLIENT
    server = ServerProcess(PROGRAM, TINY, "--compute", "f32")
    unittest.addModuleCleanup(server.kill)
    CLIENT = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=120)


def needs_grammars(test):
    """Calls that must be made need structured output, a part of the build that can be left out."""
    def run(self):
        try:
            test(self)
        except openai.BadRequestError as error:
            if "without xgrammar" in error.message:
                self.skipTest("this build has no structured output")
            raise
    return run


def whole_message(completion):
    """Content, calls and the reason of the end."""
    choice = completion.choices[0]
    calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    return choice.message.content, calls, choice.finish_reason


def joined_message(stream):
    """The same, of a stream."""
    content, calls, reason = None, {}, None
    for chunk in stream:
        for choice in chunk.choices:
            reason = choice.finish_reason or reason
            if choice.delta.content:
                content = (content or "") + choice.delta.content
            for fragment in choice.delta.tool_calls or ():
                call = calls.setdefault(fragment.index, ["", "", ""])
                call[0] += fragment.id or ""
                call[1] += fragment.function.name or ""
                call[2] += fragment.function.arguments or ""
    return content, [tuple(calls[index]) for index in sorted(calls)], reason


def ask(messages, streamed, thinking, tools=tuple(TOOLS.values()), **more):
    reply = CLIENT.chat.completions.create(
        model="tiny", temperature=0, messages=messages, tools=list(tools), stream=streamed,
        extra_body={"chat_template_kwargs": {"enable_thinking": thinking}}, **more)
    return joined_message(reply) if streamed else whole_message(reply)


class ToolLoop(unittest.TestCase):
    def loop(self, name, streamed, thinking):
        question, arguments, result, answer = LOOPS[name]
        messages = [{"role": "user", "content": question}]
        content, calls, reason = ask(messages, streamed, thinking)
        self.assertEqual(reason, "tool_calls")
        [(call_id, called, text)] = calls
        self.assertRegex(call_id, r"^call_[A-Za-z0-9]{24}$")
        self.assertEqual((called, json.loads(text)), (name, arguments))
        messages += [{"role": "assistant", "content": content, "tool_calls": [
                         {"id": call_id, "type": "function", "function": {"name": called, "arguments": text}}]},
                     {"role": "tool", "tool_call_id": call_id, "content": json.dumps(result)}]
        content, calls, reason = ask(messages, streamed, thinking)
        self.assertEqual((calls, reason), ([], "stop"))
        self.assertEqual(content, answer)

    def test_every_tool_is_asked_and_answered(self):
        self.assertEqual(set(LOOPS), set(TOOLS))
        for name, (streamed, thinking) in product(LOOPS, MODES):
            with self.subTest(tool=name, streamed=streamed, thinking=thinking):
                self.loop(name, streamed, thinking)


class ToolChoice(unittest.TestCase):
    def test_none_makes_no_call(self):
        for streamed, thinking in MODES:
            with self.subTest(streamed=streamed, thinking=thinking):
                _, calls, reason = ask([{"role": "user", "content": LOOPS["add"][0]}], streamed, thinking,
                                       tool_choice="none", max_tokens=60)
                self.assertEqual(calls, [])
                self.assertIn(reason, ("stop", "length"))

    @needs_grammars
    def test_a_named_tool_is_called_whatever_is_asked(self):
        for name, (streamed, thinking) in product(TOOLS, MODES):
            with self.subTest(tool=name, streamed=streamed, thinking=thinking):
                _, calls, reason = ask([{"role": "user", "content": "Hello, I am Diego and I like yellow."}], streamed,
                                       thinking, max_tokens=400,
                                       tool_choice={"type": "function", "function": {"name": name}})
                self.assertEqual((reason, [called for _, called, _ in calls]), ("tool_calls", [name]))
                schema = TOOLS[name]["function"]["parameters"]
                self.assertLessEqual(set(schema["required"]), set(json.loads(calls[0][2])))

    @needs_grammars
    def test_required_makes_a_call(self):
        for streamed, thinking in MODES:
            with self.subTest(streamed=streamed, thinking=thinking):
                _, calls, reason = ask([{"role": "user", "content": "Oslo is the capital of which country?"}], streamed,
                                       thinking, tool_choice="required", parallel_tool_calls=False, max_tokens=400)
                self.assertEqual((reason, len(calls)), ("tool_calls", 1))
                self.assertIn(calls[0][1], TOOLS)


class Arguments(unittest.TestCase):
    def test_values_have_the_type_that_the_schema_gives_them(self):
        for declared, value in ({"type": "integer"}, 1965), ({"type": "string"}, "1965"), ({"type": "number"}, 1965):
            properties = {"a": declared, "b": declared}
            tool = {"type": "function", "function": {"name": "add", "description": "Sum of two numbers", "parameters": {
                "type": "object", "properties": properties, "required": ["a", "b"]}}}
            with self.subTest(declared):
                _, calls, _ = ask([{"role": "user", "content": LOOPS["add"][0]}], False, True, tools=[tool])
                self.assertEqual(json.loads(calls[0][2])["a"], value)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
