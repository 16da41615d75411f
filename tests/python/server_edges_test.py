"""Requests at the edge of what is allowed, and past it: server_edges_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import asyncio
import http.client
import json
import math
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from raw_http import ask, events_of, read_head, request_bytes, stream
from server_process import ServerProcess

PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
TINY = SOURCE / "models" / "tiny"
CHATS = [c for c in json.loads((TINY / "expected" / "chats.json").read_text()) if not c["media"]]
VOCABULARY = 2048
HELLO = [{"role": "user", "content": "Hello"}]


class Case(unittest.TestCase):
    """With one server for all tests of a class."""
    arguments = ()
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess(PROGRAM, TINY, "--compute", "f32", *cls.arguments)
        cls.addClassCleanup(cls.server.kill)

    def ask(self, method, path, body=b"", **headers):
        return asyncio.run(ask(self.server.port, method, path, body, **headers))

    def complete(self, **fields):
        reply = self.ask("POST", "/v1/completions", {"temperature": 0, **fields})
        self.assertEqual(reply.status, 200, reply)
        return reply.json()

    def chat(self, **fields):
        reply = self.ask("POST", "/v1/chat/completions", {"temperature": 0, **fields})
        self.assertEqual(reply.status, 200, reply)
        return reply.json()

    def refused(self, path, status=400, says=".", method="POST", body=None, headers=None, **fields):
        """The error of a request that is refused, in OpenAI's shape."""
        reply = self.ask(method, path, fields if body is None else body, **(headers or {}))
        self.assertEqual(reply.status, status, reply)
        error = reply.json()["error"]
        self.assertLessEqual({"message", "type", "param", "code"}, set(error))
        self.assertRegex(error["message"], says)
        return error

    def streamed(self, path, **fields):
        """The events of a stream that ends as it should."""
        async def read():
            reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
            writer.write(request_bytes("POST", path, {"temperature": 0, "stream": True,
                                                      "stream_options": {"include_usage": True}, **fields}))
            reply = await read_head(reader)
            self.assertEqual((reply.status, reply.headers["content-type"].split(";")[0]), (200, "text/event-stream"))
            events = [data async for data in events_of(reader, reply)]
            writer.close()
            return events

        *events, last = asyncio.run(read())
        self.assertEqual(last, "[DONE]")
        return [json.loads(event) for event in events]


class Lengths(Case):
    arguments = ("--max-model-len", 64)

    def test_a_prompt_that_leaves_room_for_one_token_gets_one(self):
        reply = self.complete(prompt=[5] * 63, max_tokens=10, ignore_eos=True)
        self.assertEqual(reply["choices"][0]["finish_reason"], "length")
        self.assertEqual(reply["usage"]["prompt_tokens"], 63)
        self.assertEqual(reply["usage"]["completion_tokens"], 1)

    def test_a_prompt_as_long_as_the_context_or_longer_is_refused(self):
        for tokens in (64, 65, 1000):
            error = self.refused("/v1/completions", says=f"{tokens} tokens.*64", prompt=[5] * tokens)
            self.assertEqual(error["code"], "context_length_exceeded")
        self.refused("/v1/chat/completions", says="64", messages=[{"role": "user", "content": "word " * 200}])
        self.refused("/v1/completions", says="64", prompt="x" * 1_000_000)

    def test_replies_end_at_the_context(self):
        reply = self.complete(prompt=[5] * 60, max_tokens=1000, ignore_eos=True)
        self.assertEqual((reply["usage"]["completion_tokens"], reply["choices"][0]["finish_reason"]), (4, "length"))

    def test_no_tokens_are_allowed_with_echo_alone(self):
        self.refused("/v1/completions", says="max_tokens", prompt="Hi", max_tokens=0)
        self.refused("/v1/chat/completions", says="max_tokens", messages=HELLO, max_tokens=0)
        reply = self.complete(prompt="Hello there", max_tokens=0, echo=True)
        self.assertEqual((reply["choices"][0]["text"], reply["usage"]["completion_tokens"]), ("Hello there", 0))

    def test_one_token_is_one_token(self):
        self.assertEqual(self.complete(prompt="Hi", max_tokens=1)["usage"]["completion_tokens"], 1)
        reply = self.chat(messages=HELLO, max_tokens=1)
        self.assertEqual((reply["usage"]["completion_tokens"], reply["choices"][0]["finish_reason"]), (1, "length"))


class Refusals(Case):
    arguments = ("--max-model-len", 4096)

    def test_messages(self):
        self.refused("/v1/chat/completions", says="messages", messages=[])
        self.refused("/v1/chat/completions", says="messages")
        later = [*HELLO, {"role": "system", "content": "Be brief."}]
        self.refused("/v1/chat/completions", says="system message must come first", messages=later)

    def test_prompts(self):
        for prompt in ([], "", [VOCABULARY], [-1], [1.5], [[5], [10**12]], [[]], {"a": 1}):
            with self.subTest(prompt=prompt):
                self.refused("/v1/completions", says="prompt", prompt=prompt)

    def test_numbers_of_choices(self):
        for n in (0, -1, 1.5, "2", 129, 10**30):
            self.refused("/v1/completions", says="n", prompt="Hi", n=n)
        for n in (1, 8):
            reply = self.complete(prompt="Hi", n=n, max_tokens=3, temperature=1, ignore_eos=True)
            self.assertEqual([c["index"] for c in reply["choices"]], list(range(n)))
            self.assertEqual(reply["usage"]["completion_tokens"], 3 * n)

    def test_methods_and_paths(self):
        for method, path, allowed in (("GET", "/v1/completions", "POST"), ("DELETE", "/v1/chat/completions", "POST"),
                                      ("POST", "/health", "GET, HEAD"), ("PUT", "/v1/models", "GET, HEAD")):
            reply = self.ask(method, path)
            self.assertEqual((reply.status, reply.headers.get("allow")), (405, allowed), path)
        for path in ("/v1/nothing", "/v1", "/v1/completions/", "/../etc/passwd"):
            self.refused(path, 404)
        self.refused("/%00", 400)
        self.assertEqual(self.ask("HEAD", "/health").status, 200)

    def test_models(self):
        error = self.refused("/v1/completions", 404, "gpt-9", model="gpt-9", prompt="Hi")
        self.assertEqual(error["code"], "model_not_found")
        self.refused("/v1/models/gpt-9", 404, "gpt-9", method="GET", body=b"")
        self.assertEqual(self.ask("GET", "/v1/models/tiny").json()["max_model_len"], 4096)

    def test_bodies_that_are_no_json_object(self):
        for body in (b"", b"{", b"[]", b"null", b'"x"', b'{"prompt": "Hi",}', b"\xff\xfe", b'{"prompt": "\xc3"}', b"[" * 5000):
            with self.subTest(body=body[:20]):
                self.refused("/v1/completions", body=body)

    def test_the_content_type_is_not_looked_at(self):
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8"):
            reply = self.ask("POST", "/v1/completions", {"prompt": "Hi", "max_tokens": 1}, Content_Type=content_type)
            self.assertEqual(reply.status, 200, reply)

    def test_request_ids_are_echoed_if_they_are_sound(self):
        self.assertEqual(self.ask("GET", "/health", X_Request_Id="mine-1").headers["x-request-id"], "mine-1")
        self.assertEqual(self.ask("POST", "/v1/completions", b"{", X_Request_Id="mine-2").headers["x-request-id"], "mine-2")
        given = self.ask("GET", "/health").headers["x-request-id"]
        self.assertNotEqual(self.ask("GET", "/health").headers["x-request-id"], given)
        self.assertLess(len(self.ask("GET", "/health", X_Request_Id="x" * 5000).headers["x-request-id"]), 200)


class Queue(Case):
    arguments = ("--max-model-len", 8192, "--max-num-seqs", 1, "--max-queued-requests", 1)

    def test_more_than_the_queue_holds_is_told_to_come_again(self):
        long = {"prompt": [5], "max_tokens": 8000, "ignore_eos": True}

        async def scene():
            began = asyncio.Event()
            running = asyncio.ensure_future(stream(self.server.port, long, on_first=began.set))
            await asyncio.wait_for(began.wait(), 60)
            queued = asyncio.ensure_future(stream(self.server.port, long))
            for _ in range(500):
                metrics = (await ask(self.server.port, "GET", "/metrics")).body
                if b'vllm:num_requests_waiting{model_name="tiny"} 1' in metrics:
                    break
                await asyncio.sleep(0.01)
            refused = await ask(self.server.port, "POST", "/v1/completions", {"prompt": [5]})
            running.cancel()
            queued.cancel()
            await asyncio.gather(running, queued, return_exceptions=True)
            return refused

        refused = asyncio.run(scene())
        self.assertIn(refused.status, (429, 503))
        self.assertGreaterEqual(int(refused.headers["retry-after"]), 1)
        self.assertEqual(refused.json()["error"]["code"], "queue_full")
        idle = b'vllm:num_requests_waiting{model_name="tiny"} 0\n'
        for _ in range(3000):  # the server has to notice that its clients left
            if idle in self.ask("GET", "/metrics").body:
                break
            time.sleep(0.01)
        self.assertEqual(self.complete(prompt=[5], max_tokens=2, ignore_eos=True)["usage"]["completion_tokens"], 2)


class Access(Case):
    arguments = ("--max-model-len", 64, "--api-key", "first", "--api-key", "second", "--allowed-origins", "https://page.example")

    def test_requests_need_one_of_the_keys(self):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "first"}, {"Authorization": "Bearer "},
                        {"x-api-key": "firs"}, {"x-api-key": "first "+"x"}, {"Authorization": "Bearer first second"}):
            with self.subTest(headers=headers):
                self.refused("/v1/completions", 401, "key", prompt="Hi", headers=headers)
        for headers in ({"Authorization": "Bearer first"}, {"Authorization": "bearer second"}, {"x-api-key": "second"}):
            reply = self.ask("POST", "/v1/completions", {"prompt": "Hi", "max_tokens": 1}, **headers)
            self.assertEqual(reply.status, 200, reply)
        self.assertEqual(self.ask("GET", "/v1/models").status, 401)

    def test_probes_need_none(self):
        for path in ("/health", "/ready", "/live", "/version"):
            self.assertEqual(self.ask("GET", path).status, 200, path)

    def test_pages_of_allowed_origins_may_ask(self):
        wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
        reply = self.ask("OPTIONS", "/v1/chat/completions", Origin="https://page.example", **wanted)
        self.assertIn(reply.status, (200, 204))
        self.assertEqual(reply.headers["access-control-allow-origin"], "https://page.example")
        self.assertIn("POST", reply.headers["access-control-allow-methods"])
        self.assertIn("authorization", reply.headers["access-control-allow-headers"].lower())
        other = self.ask("OPTIONS", "/v1/chat/completions", Origin="https://other.example", **wanted)
        self.assertNotIn("access-control-allow-origin", other.headers)
        self.assertEqual(self.ask("GET", "/v1/models", Origin="https://page.example", x_api_key="first").headers
                         ["access-control-allow-origin"], "https://page.example")


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class Tls(unittest.TestCase):
    def test_https_serves_and_streams(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder) / "certificate.pem", Path(folder) / "key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            with ServerProcess(PROGRAM, TINY, "--max-model-len", 512, "--ssl-certfile", certificate, "--ssl-keyfile", key) as server:
                self.assertTrue(server.url.startswith("https://"), server.url)
                connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60,
                                                         context=ssl.create_default_context(cafile=certificate))
                for whole in (False, True, False):
                    body = json.dumps({"prompt": [5], "max_tokens": 100, "ignore_eos": True, "stream": not whole})
                    connection.request("POST", "/v1/completions", body)
                    text = connection.getresponse().read().decode()
                    if whole:
                        self.assertEqual(json.loads(text)["usage"]["completion_tokens"], 100)
                    else:
                        self.assertTrue(text.endswith("data: [DONE]\n\n"), text[-100:])
                connection.close()
                self.assertEqual(server.stop(), 0)


class Replies(Case):
    arguments = ("--max-model-len", 4096)

    def messages_of(self, chat):
        fields = {"messages": chat["messages"], "chat_template_kwargs": {"enable_thinking": chat["enable_thinking"]}}
        return {**fields, "max_tokens": 600, "return_token_ids": True, **({"tools": chat["tools"]} if chat["tools"] else {})}

    def test_chats_answer_with_the_tokens_of_the_reference(self):
        for chat in CHATS:
            with self.subTest(chat["name"]):
                reply = self.chat(**self.messages_of(chat))
                choice = reply["choices"][0]
                self.assertEqual(reply["prompt_token_ids"], chat["prompt_ids"])
                self.assertEqual(choice["token_ids"], chat["output_ids"][:-1])
                self.assertEqual((reply["usage"]["prompt_tokens"], reply["usage"]["completion_tokens"]),
                                 (len(chat["prompt_ids"]), len(chat["output_ids"])))
                self.check_text(choice, chat)

    def check_text(self, choice, chat):
        message, text = choice["message"], chat["output_text"].removesuffix("<|im_end|>")
        reasoning, _, content = text.rpartition("</think>") if chat["enable_thinking"] else ("", "", text)
        self.assertEqual((message.get("reasoning_content") or "").strip(), reasoning.strip())
        if "<tool_call>" in content:
            self.assertEqual(choice["finish_reason"], "tool_calls")
            self.assertIn(f"<function={message['tool_calls'][0]['function']['name']}>", content)
        else:
            self.assertEqual((message["content"].strip(), choice["finish_reason"]), (content.strip(), "stop"))

    def test_streams_of_chats_say_what_whole_replies_say(self):
        for chat in CHATS:
            with self.subTest(chat["name"]):
                whole = self.chat(**self.messages_of(chat))
                message = whole["choices"][0]["message"]
                events = self.streamed("/v1/chat/completions", **self.messages_of(chat))
                deltas = [c["delta"] for event in events for c in event["choices"]]
                for part in ("content", "reasoning_content"):
                    self.assertEqual("".join(d.get(part) or "" for d in deltas), message.get(part) or "", part)
                self.assertEqual(self.calls_of(deltas), [(c["function"]["name"], json.loads(c["function"]["arguments"]))
                                                         for c in message.get("tool_calls") or []])
                (reason,) = {c["finish_reason"] for event in events for c in event["choices"] if c["finish_reason"]}
                self.assertEqual(reason, whole["choices"][0]["finish_reason"])
                self.assertEqual(events[-1]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"])

    def calls_of(self, deltas):
        calls = {}
        for fragment in [f for d in deltas for f in d.get("tool_calls") or []]:
            call = calls.setdefault(fragment["index"], ["", ""])
            call[0] += fragment["function"].get("name") or ""
            call[1] += fragment["function"].get("arguments") or ""
        return [(name, json.loads(arguments)) for _, (name, arguments) in sorted(calls.items())]

    def test_seeds_repeat_all_choices(self):
        wanted = {"prompt": "Once upon a time", "n": 4, "max_tokens": 12, "temperature": 1, "ignore_eos": True}
        texts = [[c["text"] for c in self.complete(**wanted, seed=seed)["choices"]] for seed in (7, 7, 8)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        self.assertGreater(len(set(texts[0])), 1)

    def test_logprobs_are_those_of_a_distribution(self):
        reply = self.chat(messages=HELLO, logprobs=True, top_logprobs=20, max_tokens=8)
        for token in reply["choices"][0]["logprobs"]["content"]:
            top = [t["logprob"] for t in token["top_logprobs"]]
            self.assertEqual(top, sorted(top, reverse=True))
            self.assertEqual(token["logprob"], top[0])  # the best token, as the temperature is 0
            self.assertLess(sum(map(math.exp, top)), 1.0001)
            self.assertGreater(sum(map(math.exp, top)), 0.1)

    def test_logprobs_of_a_reply_are_those_of_the_same_text_as_a_prompt(self):
        reply = self.complete(prompt="Hello", max_tokens=8, logprobs=0, return_token_ids=True, ignore_eos=True)["choices"][0]
        prompt = reply["prompt_token_ids"] + reply["token_ids"]
        echoed = self.complete(prompt=prompt, max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]
        self.assertIsNone(echoed["token_logprobs"][0])
        for ours, theirs in zip(reply["logprobs"]["token_logprobs"], echoed["token_logprobs"][-8:], strict=True):
            self.assertAlmostEqual(ours, theirs, delta=1e-3)

    def test_echo_with_logprobs_covers_prompt_and_reply(self):
        reply = self.complete(prompt="Hello there", max_tokens=5, echo=True, logprobs=2, ignore_eos=True)
        text, logprobs = reply["choices"][0]["text"], reply["choices"][0]["logprobs"]
        self.assertTrue(text.startswith("Hello there"))
        self.assertEqual("".join(logprobs["tokens"]), text)
        self.assertEqual(len(logprobs["tokens"]), reply["usage"]["total_tokens"])
        for offset, token in zip(logprobs["text_offset"], logprobs["tokens"], strict=True):
            self.assertEqual(text[offset:offset + len(token)], token)

    def test_stop_strings_are_found_across_tokens(self):
        whole = self.complete(prompt="Hello", max_tokens=30, logprobs=0, ignore_eos=True)["choices"][0]
        text, tokens = whole["text"], whole["logprobs"]["tokens"]
        place = next(i for i in range(3, len(tokens) - 2) if len(tokens[i]) > 1 and len(tokens[i + 1]) > 1)
        stop = tokens[place][-2:] + tokens[place + 1][:2]
        expected = text[:text.index(stop)]
        wanted = {"prompt": "Hello", "max_tokens": 30, "ignore_eos": True, "stop": ["never in it", stop]}
        choice = self.complete(**wanted)["choices"][0]
        self.assertEqual((choice["text"], choice["finish_reason"]), (expected, "stop"))
        events = self.streamed("/v1/completions", **wanted)
        self.assertEqual("".join(c["text"] for event in events for c in event["choices"]), expected)
        kept = self.complete(**wanted, include_stop_str_in_output=True)["choices"][0]
        self.assertEqual(kept["text"], expected + stop)

    def test_usage_of_several_prompts_is_their_sum(self):
        reply = self.complete(prompt=[[5, 6, 7], [8, 9]], n=2, max_tokens=4, temperature=1, ignore_eos=True)
        self.assertEqual(len(reply["choices"]), 4)
        usage = reply["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]), (5, 16, 21))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
