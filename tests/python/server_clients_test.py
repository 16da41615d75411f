"""The clients of OpenAI and Anthropic against a running server: server_clients_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import json
import sys
import unittest
from pathlib import Path

import anthropic
import openai
from pydantic import BaseModel

from server_process import ServerProcess

PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
TINY = SOURCE / "models" / "tiny"
CHATS = {chat["name"]: chat for chat in json.loads((TINY / "expected" / "chats.json").read_text())}
KEY = "a key of the tests"
GREEDY = {"extra_body": {"temperature": 0}}  # of Anthropic's client, which has no argument for it


def expected(name):
    """Reasoning and content of a golden chat."""
    text = CHATS[name]["output_text"].removesuffix("<|im_end|>")
    return text.split("\n</think>\n\n") if "</think>" in text else ("", text)


class Person(BaseModel):
    name: str
    age: int
    city: str


def setUpModule():
    global SERVER, HAS_GRAMMARS
    SERVER = ServerProcess(PROGRAM, TINY, "--compute", "f32", "--api-key", KEY, "--served-model-name", "tiny")
    unittest.addModuleCleanup(SERVER.kill)
    try:
        openai_client().completions.create(model="tiny", prompt="x", max_tokens=1, extra_body={"guided_choice": ["y"]})
        HAS_GRAMMARS = True
    except openai.BadRequestError as error:
        HAS_GRAMMARS = "without xgrammar" not in error.message


def openai_client(key=KEY):
    return openai.OpenAI(base_url=f"{SERVER.url}/v1", api_key=key, max_retries=0, timeout=120)


def anthropic_client(key=KEY):
    return anthropic.Anthropic(base_url=SERVER.url, api_key=key, max_retries=0, timeout=120)


def needs_grammars(test):
    """Structured output is a part of the build that can be left out."""
    def run(self):
        if not HAS_GRAMMARS:
            self.skipTest("this build has no structured output")
        test(self)
    return run


class Case(unittest.TestCase):
    maxDiff = 4000

    def check_usage(self, name, prompt_tokens, output_tokens):
        self.assertEqual(prompt_tokens, len(CHATS[name]["prompt_ids"]))
        self.assertEqual(output_tokens, len(CHATS[name]["output_ids"]))


class OpenAiCase(Case):
    def setUp(self):
        self.client = openai_client()

    def chat(self, name, **more):
        chat = CHATS[name]
        arguments = {"model": "tiny", "temperature": 0, "messages": chat["messages"], **more}
        arguments["extra_body"] = {"chat_template_kwargs": {"enable_thinking": chat["enable_thinking"]}}
        return arguments

    def response(self, name, **more):
        chat = CHATS[name]
        effort = "high" if chat["enable_thinking"] else "none"
        return {"model": "tiny", "temperature": 0, "input": chat["messages"], "reasoning": {"effort": effort}, **more}


class OpenAiModels(OpenAiCase):
    def test_models_are_listed(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["tiny"])

    def test_a_model_tells_its_context(self):
        self.assertEqual(self.client.models.retrieve("tiny").max_model_len, 32768)

    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("gpt-2")
        self.assertEqual(caught.exception.code, "model_not_found")


class OpenAiChat(OpenAiCase):
    def test_reply_is_the_golden_one(self):
        for name in ("capital3", "arith2_nothink", "chat13"):
            with self.subTest(name):
                completion = self.client.chat.completions.create(**self.chat(name))
                message = completion.choices[0].message
                reasoning, content = expected(name)
                self.assertEqual(message.reasoning_content or "", reasoning)
                self.assertEqual(message.content, content)
                self.assertEqual(completion.choices[0].finish_reason, "stop")
                self.check_usage(name, completion.usage.prompt_tokens, completion.usage.completion_tokens)

    def test_stream_joins_to_the_golden_reply(self):
        chunks = list(self.client.chat.completions.create(
            **self.chat("capital3", stream=True, stream_options={"include_usage": True})))
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        reasoning, content = expected("capital3")
        self.assertEqual("".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas), reasoning)
        self.assertEqual("".join(delta.content or "" for delta in deltas), content)
        self.assertGreater(len(deltas), 5)
        self.check_usage("capital3", chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens)

    def test_stream_helper_sees_the_whole_completion(self):
        with self.client.chat.completions.stream(**self.chat("words6_nothink")) as stream:
            for _ in stream:
                pass
            completion = stream.get_final_completion()
        self.assertEqual(completion.choices[0].message.content, expected("words6_nothink")[1])

    @needs_grammars
    def test_reply_is_parsed_by_a_schema(self):
        for name in ("json8", "json8_nothink"):
            with self.subTest(name):
                completion = self.client.chat.completions.parse(**self.chat(name, response_format=Person))
                self.assertEqual(completion.choices[0].message.parsed, Person(name="Rosa", age=42, city="Zagreb"))

    def test_logprobs_are_those_of_each_token(self):
        completion = self.client.chat.completions.create(
            **self.chat("words6_nothink", logprobs=True, top_logprobs=2))
        tokens = completion.choices[0].logprobs.content
        self.assertEqual("".join(token.token for token in tokens), expected("words6_nothink")[1])
        for token in tokens:
            self.assertEqual(len(token.top_logprobs), 2)
            self.assertEqual(token.top_logprobs[0].token, token.token)
            self.assertLessEqual(token.logprob, 0)

    def test_several_choices_are_told_apart(self):
        completion = self.client.chat.completions.create(
            **self.chat("story0_nothink", n=3, max_tokens=4) | {"temperature": 1, "seed": 5})
        self.assertEqual([choice.index for choice in completion.choices], [0, 1, 2])
        self.assertEqual({choice.finish_reason for choice in completion.choices}, {"length"})

    def test_the_field_at_fault_is_named(self):
        for more, param in (({"temperature": 3}, "temperature"), ({"n": 0}, "n"), ({"stop": 5}, "stop"),
                            ({"messages": []}, "messages"), ({"top_logprobs": 2}, "top_logprobs"),
                            ({"messages": [{"role": "user"}]}, "messages[0].content")):
            with self.subTest(param):
                with self.assertRaises(openai.BadRequestError) as caught:
                    self.client.chat.completions.create(**self.chat("capital3") | more)
                self.assertEqual(caught.exception.param, param)
                self.assertEqual(caught.exception.type, "invalid_request_error")

    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(**self.chat("capital3") | {"model": "gpt-2"})

    def test_a_prompt_that_is_too_long_is_told_so(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="tiny", prompt=[1] * 40000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_a_wrong_key_is_refused(self):
        with self.assertRaises(openai.AuthenticationError):
            openai_client("another key").chat.completions.create(**self.chat("capital3"))


class OpenAiCompletions(OpenAiCase):
    def test_text_and_token_ids_go_on_alike(self):
        chat = CHATS["capital3"]
        reasoning, content = expected("capital3")
        for prompt in (chat["rendered"], chat["prompt_ids"]):
            completion = self.client.completions.create(model="tiny", prompt=prompt, max_tokens=100, temperature=0)
            self.assertEqual(completion.choices[0].text, f"{reasoning}\n</think>\n\n{content}")

    def test_stream_joins_to_the_text(self):
        arguments = {"model": "tiny", "prompt": ["Once upon", "One day"], "max_tokens": 12, "temperature": 0}
        whole = self.client.completions.create(**arguments)
        texts = ["", ""]
        for chunk in self.client.completions.create(**arguments, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.text
        self.assertEqual(texts, [choice.text for choice in whole.choices])

    def test_echo_comes_before_the_text(self):
        completion = self.client.completions.create(model="tiny", prompt="Once upon", max_tokens=3, temperature=0,
                                                    echo=True, logprobs=1)
        self.assertTrue(completion.choices[0].text.startswith("Once upon"))
        self.assertIsNone(completion.choices[0].logprobs.token_logprobs[0])


class OpenAiResponses(OpenAiCase):
    def test_reply_is_the_golden_one(self):
        for name in ("capital3", "arith2_nothink"):
            with self.subTest(name):
                response = self.client.responses.create(**self.response(name))
                reasoning, content = expected(name)
                self.assertEqual(response.output_text, content)
                self.assertEqual("".join(part.text for item in response.output if item.type == "reasoning"
                                         for part in item.content), reasoning)
                self.assertEqual(response.status, "completed")
                self.check_usage(name, response.usage.input_tokens, response.usage.output_tokens)

    def test_reasoning_tokens_are_counted_apart(self):
        usage = self.client.responses.create(**self.response("capital3")).usage
        ids = CHATS["capital3"]["output_ids"]
        self.assertEqual(usage.output_tokens_details.reasoning_tokens, ids.index(1676) + 1)

    def test_stream_joins_to_the_response(self):
        with self.client.responses.stream(**self.response("capital3")) as stream:
            events = list(stream)
            final = stream.get_final_response()
        reasoning, content = expected("capital3")
        deltas = {"response.output_text.delta": "", "response.reasoning_text.delta": ""}
        for event in events:
            if event.type in deltas:
                deltas[event.type] += event.delta
        self.assertEqual(deltas["response.output_text.delta"], content)
        self.assertEqual(deltas["response.reasoning_text.delta"], reasoning)
        self.assertEqual(final.output_text, content)
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))

    @needs_grammars
    def test_reply_is_parsed_by_a_schema(self):
        response = self.client.responses.parse(**self.response("json8"), text_format=Person)
        self.assertEqual(response.output_parsed, Person(name="Rosa", age=42, city="Zagreb"))

    @needs_grammars
    def test_stream_is_parsed_by_a_schema(self):
        with self.client.responses.stream(**self.response("json8_nothink"), text_format=Person) as stream:
            self.assertEqual(stream.get_final_response().output_parsed, Person(name="Rosa", age=42, city="Zagreb"))

    def test_output_is_sent_back_as_input(self):
        tools = [{"type": "function", **CHATS["tool_answer"]["tools"][0]["function"], "strict": False}]
        items = [{"role": "user", "content": "What is the weather in Paris?"}]
        first = self.client.responses.create(model="tiny", temperature=0, input=items, tools=tools)
        call = next(item for item in first.output if item.type == "function_call")
        self.assertEqual((call.name, json.loads(call.arguments)), ("get_weather", {"city": "Paris"}))
        items += first.output
        items.append({"type": "function_call_output", "call_id": call.call_id,
                      "output": "{\"temperature\": 21, \"sky\": \"sunny\"}"})
        second = self.client.responses.create(model="tiny", temperature=0, input=items, tools=tools)
        self.assertEqual(second.output_text, "It is 21 degrees and sunny in Paris.")

    def test_a_reply_cut_by_its_length_is_incomplete(self):
        response = self.client.responses.create(**self.response("capital3", max_output_tokens=3))
        self.assertEqual(response.status, "incomplete")
        self.assertEqual(response.incomplete_details.reason, "max_output_tokens")

    def test_logprobs_are_those_of_the_text(self):
        response = self.client.responses.create(
            **self.response("capital3", include=["message.output_text.logprobs"], top_logprobs=1))
        [part] = next(item for item in response.output if item.type == "message").content
        self.assertEqual("".join(token.token for token in part.logprobs).strip(), part.text)

    def test_nothing_is_stored(self):
        response = self.client.responses.create(**self.response("capital3", store=True))
        self.assertIs(response.store, False)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.responses.create(**self.response("capital3", previous_response_id=response.id))
        self.assertEqual(caught.exception.param, "previous_response_id")


class AnthropicCase(Case):
    def setUp(self):
        self.client = anthropic_client()

    def message(self, name, **more):
        chat = CHATS[name]
        messages = [message for message in chat["messages"] if message["role"] != "system"]
        system = [message["content"] for message in chat["messages"] if message["role"] == "system"]
        thinking = {"type": "enabled", "budget_tokens": 1024} if chat["enable_thinking"] else {"type": "disabled"}
        return {"model": "tiny", "max_tokens": 2000, "messages": messages, "thinking": thinking, **GREEDY,
                **({"system": system[0]} if system else {}), **more}


class AnthropicMessages(AnthropicCase):
    def test_reply_is_the_golden_one(self):
        for name in ("capital3", "words6_nothink"):
            with self.subTest(name):
                message = self.client.messages.create(**self.message(name))
                reasoning, content = expected(name)
                texts = {block.type: getattr(block, block.type) for block in message.content}
                self.assertEqual(texts, {"thinking": reasoning, "text": content} if reasoning else {"text": content})
                self.assertEqual(message.stop_reason, "end_turn")
                self.check_usage(name, message.usage.input_tokens + message.usage.cache_read_input_tokens,
                                 message.usage.output_tokens)

    def test_stream_joins_to_the_message(self):
        with self.client.messages.stream(**self.message("capital3")) as stream:
            text = "".join(stream.text_stream)
            message = stream.get_final_message()
        reasoning, content = expected("capital3")
        self.assertEqual(text, content)
        self.assertEqual([block.type for block in message.content], ["thinking", "text"])
        self.assertEqual(message.content[0].thinking, reasoning)
        self.assertEqual(message.stop_reason, "end_turn")
        self.assertEqual(message.usage.output_tokens, len(CHATS["capital3"]["output_ids"]))

    def test_results_of_tools_are_answered(self):
        for thinking in ({"type": "adaptive"}, {"type": "disabled"}):
            with self.subTest(thinking):
                self.loop(thinking)

    def loop(self, thinking):
        function = CHATS["tool_answer"]["tools"][0]["function"]
        tools = [{"name": function["name"], "description": function["description"],
                  "input_schema": function["parameters"]}]
        messages = [{"role": "user", "content": "What is the weather in Paris?"}]
        arguments = {"model": "tiny", "max_tokens": 200, "tools": tools, "thinking": thinking, **GREEDY}
        with self.client.messages.stream(messages=messages, **arguments) as stream:
            first = stream.get_final_message()
        whole = self.client.messages.create(messages=messages, **arguments)
        self.assertEqual(first.stop_reason, "tool_use")
        for message in (first, whole):
            use = message.content[-1]
            self.assertEqual((use.type, use.name, use.input), ("tool_use", "get_weather", {"city": "Paris"}))
        messages += [{"role": "assistant", "content": first.content},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": first.content[-1].id,
                                                   "content": "{\"temperature\": 21, \"sky\": \"sunny\"}"}]}]
        second = self.client.messages.create(messages=messages, **arguments)
        self.assertEqual(second.content[-1].text, "It is 21 degrees and sunny in Paris.")

    def test_a_stop_sequence_ends_the_reply(self):
        message = self.client.messages.create(**self.message("words6_nothink", stop_sequences=["word"]))
        self.assertEqual(message.content[0].text, "The first ")
        self.assertEqual((message.stop_reason, message.stop_sequence), ("stop_sequence", "word"))

    def test_a_reply_is_cut_by_its_length(self):
        message = self.client.messages.create(**self.message("capital3", max_tokens=3))
        self.assertEqual(message.stop_reason, "max_tokens")

    def test_a_begun_reply_is_gone_on_with(self):
        request = self.message("words6_nothink")
        request["messages"] = [*request["messages"], {"role": "assistant", "content": "The first"}]
        self.assertEqual(self.client.messages.create(**request).content[0].text, " word is rabbit.")

    @needs_grammars
    def test_reply_is_parsed_by_a_schema(self):
        message = self.client.messages.parse(**self.message("json8_nothink"), output_format=Person)
        self.assertEqual(message.parsed_output, Person(name="Rosa", age=42, city="Zagreb"))

    def test_tokens_are_counted(self):
        request = self.message("needle4_nothink")
        counted = self.client.messages.count_tokens(
            **{key: request[key] for key in ("model", "messages", "system", "thinking")})
        self.assertEqual(counted.input_tokens, len(CHATS["needle4_nothink"]["prompt_ids"]))

    def test_the_field_at_fault_is_named(self):
        for more, param in (({"extra_body": {"temperature": 1.5}}, "temperature"), ({"max_tokens": -1}, "max_tokens"),
                            ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role")):
            with self.subTest(param):
                with self.assertRaises(anthropic.BadRequestError) as caught:
                    self.client.messages.create(**self.message("capital3") | more)
                self.assertEqual(caught.exception.type, "invalid_request_error")
                self.assertEqual(caught.exception.body["error"]["param"], param)

    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.client.messages.create(**self.message("capital3") | {"model": "claude"})
        self.assertEqual(caught.exception.type, "not_found_error")

    def test_a_wrong_key_is_refused(self):
        with self.assertRaises(anthropic.AuthenticationError) as caught:
            anthropic_client("another key").messages.create(**self.message("capital3"))
        self.assertEqual(caught.exception.type, "authentication_error")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
