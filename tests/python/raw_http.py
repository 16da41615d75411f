"""HTTP on bare sockets for the tests of the server, as rude or as patient as a test wants to be. Standard library only."""
import asyncio
import json


class Reply:
    """Status, headers (lower case names) and body of a response, without its chunks."""

    def __init__(self, status, headers, body=b""):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:300]!r}"


def request_bytes(method, path, body=b"", **headers):
    """A whole request; keywords are headers, with underscores for hyphens."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body:
        lines += ["Content-Type: application/json"] * ("Content_Type" not in headers) + [f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def read_head(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    return Reply(int(head[0].split(" ")[1]), {name.lower(): value for name, value in headers.items()})


async def read_pieces(reader, reply):
    """The pieces of a body as they come."""
    if reply.headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            yield (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        yield await reader.readexactly(int(reply.headers.get("content-length", 0)))


async def read_reply(reader, has_body=True):
    reply = await read_head(reader)
    if has_body:
        reply.body = b"".join([piece async for piece in read_pieces(reader, reply)])
    return reply


async def ask(port, method, path, body=b"", **headers):
    """One request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request_bytes(method, path, body, **headers))
        return await read_reply(reader, method != "HEAD")
    finally:
        writer.close()


async def events_of(reader, reply):
    """The data of server-sent events."""
    rest = b""
    async for piece in read_pieces(reader, reply):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield line[6:].decode()


class Streamed:
    """What came of a stream: its text, the usage of its last event, an error, and whether it ended as it should."""

    def __init__(self):
        self.status, self.text, self.usage, self.error, self.done, self.events = None, "", None, None, False, 0

    def take(self, data):
        if data == "[DONE]":
            self.done = True
            return
        event = json.loads(data)
        self.events += 1
        self.error = event.get("error") or self.error
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices", []):
            self.text += choice.get("text") or choice.get("delta", {}).get("content") or ""


async def stream(port, body, path="/v1/completions", leave_after=None, on_first=None):
    """Reads a stream to its end, or leaves it after so many events without a word."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    streamed = Streamed()
    try:
        writer.write(request_bytes("POST", path, {"stream": True, "stream_options": {"include_usage": True}, **body}))
        reply = await read_head(reader)
        streamed.status = reply.status
        if reply.status != 200:
            streamed.error = b"".join([piece async for piece in read_pieces(reader, reply)]).decode()
            return streamed
        async for data in events_of(reader, reply):
            streamed.take(data)
            if on_first:
                on_first()
                on_first = None
            if leave_after and streamed.events >= leave_after:
                writer.transport.abort()
                return streamed
        return streamed
    finally:
        writer.close()


def metrics_of(text):
    """The samples of an exposition: {name: sum over its labels}."""
    values = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            name = name.split("{", 1)[0]
            values[name] = values.get(name, 0.0) + float(value)
    return values
