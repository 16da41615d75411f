"""A server that speaks enough of OpenAI's API to be measured: it counts words, and says "word " as often as it is asked to."""
import asyncio
import json
import threading


class FakeServer:
    """Runs in a thread of its own: `with FakeServer(...) as server: ... server.url`."""

    def __init__(self, tls=None, key=None, delay=0.0, stops_after=None, tokenizes=True, breaks=None, spaced=False):
        self.tls, self.key, self.delay, self.stops_after = tls, key, delay, stops_after
        self.tokenizes, self.spaced = tokenizes, spaced
        self.breaks = breaks or (lambda index: None)  # of completion number index: None, "429", "drop", "error" or "hang"
        self.completions, self.connections, self.running, self.most_running = [], 0, 0, 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self):
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(self.start(), self.loop).result()
        scheme = "https" if self.tls else "http"
        self.url = f"{scheme}://localhost:{self.server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.server.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def start(self):
        return await asyncio.start_server(self.connection, "127.0.0.1", 0, ssl=self.tls, backlog=1000)

    async def connection(self, reader, writer):
        self.connections += 1
        try:
            while await self.request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        writer.close()

    async def request(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split("\r\n", 1)[0].split(" ")
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if self.key and headers.get("authorization") != f"bearer {self.key}".lower():
            return self.answer(writer, 401, {"error": {"message": "the API key is wrong"}})
        if (method, path) == ("GET", "/v1/models"):
            return self.answer(writer, 200, {"data": [{"id": "fake", "vocab_size": 4000}]})
        if (method, path) == ("POST", "/tokenize") and self.tokenizes:
            return self.answer(writer, 200, {"tokens": [7] + [1] * len(json.loads(body)["prompt"].split())})
        if method == "POST" and path in ("/v1/completions", "/v1/chat/completions"):
            return await self.complete(writer, json.loads(body), path.endswith("chat/completions"))
        return self.answer(writer, 404, {"error": {"message": f"there is no {path}"}})

    def answer(self, writer, status, value):
        body = json.dumps(value).encode()
        writer.write(b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        return True

    async def complete(self, writer, request, chat):
        index = len(self.completions)
        self.completions.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            return await self.reply(writer, request, chat, self.breaks(index))
        finally:
            self.running -= 1

    def prompt_tokens(self, request, chat):
        if chat:
            return 9 + sum(len(m["content"].split()) for m in request["messages"])
        return len(request["prompt"]) if isinstance(request["prompt"], list) else 1 + len(request["prompt"].split())

    async def reply(self, writer, request, chat, breaks):
        if breaks == "429":
            return self.answer(writer, 429, {"error": {"message": "the queue is full"}})
        count = min(request["max_tokens"], self.stops_after or request["max_tokens"])
        prompt = self.prompt_tokens(request, chat)
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        if not request["stream"]:
            await asyncio.sleep(self.delay * count)
            return self.answer(writer, 200, {"choices": [{"text": "word " * count}], "usage": usage})
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        if chat:
            self.event(writer, {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}], "usage": None})
        for i in range(count):
            await asyncio.sleep(self.delay)
            if breaks == "drop" and i == count // 2:
                writer.transport.abort()
                return False
            if breaks == "hang":
                await asyncio.sleep(3600)
            text = {"delta": {"content": "word "}} if chat else {"text": "word "}
            self.event(writer, {"choices": [{"index": 0, **text, "finish_reason": None}], "usage": None})
        if breaks == "error":
            self.event(writer, {"error": {"message": "the device failed"}})
        elif request.get("stream_options", {}).get("include_usage"):
            self.event(writer, {"choices": [], "usage": usage})
        self.chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def event(self, writer, value):
        text = json.dumps(value) if self.spaced else json.dumps(value, separators=(",", ":"))
        self.chunk(writer, b": a comment\n\ndata: " + text.encode() + b"\n\n")

    def chunk(self, writer, data):
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


if __name__ == "__main__":
    import sys
    import time

    with FakeServer(delay=float(sys.argv[1]) if len(sys.argv) > 1 else 0.0) as server:
        print(server.url, flush=True)
        while True:
            time.sleep(1)
