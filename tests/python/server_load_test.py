"""The server under a storm, and told to end in the middle of one: server_load_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from raw_http import ask, metrics_of, request_bytes, read_reply, stream
from server_process import ServerProcess

SANITIZED = "SLUICE_SANITIZED" in os.environ
STREAMS, LEAVERS, BAD = (60, 30, 24) if SANITIZED else (1000, 300, 200)
DRAINED = 10 if SANITIZED else 50
SLOTS = 64
HEADER_TIMEOUT = 2.0
BODY_TIMEOUT = 20  # time for 10 MB on a busy machine; below the patience of outcome()
MEGABYTE = 1 << 20
# Zero when nothing runs; the connection that asks for them is one.
AT_REST = {"vllm:num_requests_running": 0, "vllm:num_requests_waiting": 0, "sluice:state_slots_used": 0,
           "sluice:kv_blocks_used": 0, "sluice:http_connections": 1, "sluice:http_requests_in_progress": 1}


def wanted_tokens(i):
    return 1 + i % 12


def completion(i, tokens):
    return {"prompt": [5 + i % 100, 7, 9, 300 + i % 50], "max_tokens": tokens, "ignore_eos": True, "temperature": 1, "seed": i}


async def timed_health(port):
    """Seconds until /health was answered, on a connection of its own, and how many of them the connection took."""
    start = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connected = time.monotonic()
    try:
        writer.write(request_bytes("GET", "/health"))
        reply = await asyncio.wait_for(read_reply(reader), 30)
    finally:
        writer.close()
    if reply.status != 200:
        raise AssertionError(f"/health: {reply}")
    return time.monotonic() - start, connected - start


class Prober:
    """The probe in a process of its own, so that it measures the server and not the storm's Python."""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, "-B", __file__, "--probe", str(port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def worst(self):
        """Ends it. The longest of its answers, and the part of it that was the connection."""
        output, _ = self.process.communicate("stop\n")
        return tuple(float(word) for word in output.split())


async def probe_until_told(port):
    """Asks for /health every 100 ms."""
    loop, worst = asyncio.get_running_loop(), (0.0, 0.0)
    told = loop.run_in_executor(None, sys.stdin.readline)
    while not told.done():
        taken = await timed_health(port)
        worst = max(worst, taken)
        await asyncio.sleep(max(0.0, 0.1 - taken[0]))
    print(*worst)


async def outcome(port, data, pause=0.0, patience=30.0):
    """Sends bytes, slowly if there is a pause; the status of the answer, or "closed"."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = asyncio.ensure_future(read_reply(reader))
    try:
        for at in range(0, len(data), 1 if pause else len(data)):
            writer.write(data[at:at + 1] if pause else data)
            await writer.drain()
            if pause and (await asyncio.wait([answer], timeout=pause))[0]:
                break
        return (await asyncio.wait_for(answer, patience)).status
    except (ConnectionError, asyncio.IncompleteReadError):
        return "closed"
    finally:
        answer.cancel()
        writer.close()


HEADERS = b"".join(b"X-Header-%d: value\r\n" % i for i in range(10_000))
BAD_CLIENTS = {  # what they send, how slowly, and what may become of it
    "garbage": (os.urandom(4000).replace(b"\n", b" ") + b"\r\n\r\n", 0, {400, 431, "closed"}),
    "half a request": (request_bytes("POST", "/v1/completions", {"prompt": "x" * 500})[:-200], 0, {408, "closed"}),
    "a body of 10 MB": (request_bytes("POST", "/v1/completions", {"prompt": "word " * (2 * MEGABYTE)}), 0, {400, 413, 503, "closed"}),
    "ten thousand headers": (b"GET /health HTTP/1.1\r\n" + HEADERS + b"\r\n", 0, {431, "closed"}),
    "a byte a second": (request_bytes("GET", "/health"), 1.0, {408, "closed"}),
    "nested JSON": (request_bytes("POST", "/v1/chat/completions", b"[" * 100_000), 0, {400}),
}


async def bad_client(port, i):
    kind = list(BAD_CLIENTS)[i % len(BAD_CLIENTS)]
    data, pause, allowed = BAD_CLIENTS[kind]
    came = await outcome(port, data, pause)
    return None if came in allowed else f"{kind}: {came}"


class Storm:
    """Streams, clients that leave and bad clients, all at once."""

    def __init__(self, port, part=1):
        self.part = part
        self.prober = Prober(port)
        try:
            self.streams, self.leavers, self.bad = asyncio.run(self.rage(port))
        finally:
            self.worst_health, self.its_connection = self.prober.worst()

    async def rage(self, port):
        whole = [stream(port, completion(i, wanted_tokens(i))) for i in range(STREAMS // self.part)]
        leaving = [stream(port, completion(i, 2000), leave_after=1 + i % 3) for i in range(LEAVERS // self.part)]
        bad = [bad_client(port, i) for i in range(BAD // self.part)]
        return await asyncio.gather(asyncio.gather(*whole), asyncio.gather(*leaving), asyncio.gather(*bad))


def metrics(port):
    return metrics_of(asyncio.run(ask(port, "GET", "/metrics")).body.decode())


def resident_bytes(pid):
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def settled_bytes(pid, wanted, patience=8.0):
    """Resident memory once it is down to what is wanted, or when the patience is over: an idle server gives back what it
    freed, in a second or two."""
    end = time.monotonic() + patience
    while resident_bytes(pid) > wanted and time.monotonic() < end:
        time.sleep(0.1)
    return resident_bytes(pid)


def descriptors(pid):
    """How many are open; the last connection that asked may take a moment to go."""
    counts = []
    for _ in range(20):
        counts.append(len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(0.05)
    return min(counts)


def rest(port, patience=20.0):
    """Waits until all is at rest; the metrics then, or after the patience is over."""
    end = time.monotonic() + patience
    while True:
        found = {name: value for name, value in metrics(port).items() if name in AT_REST}
        if found == AT_REST or time.monotonic() > end:
            return found
        time.sleep(0.1)


class UnderStorm(unittest.TestCase):
    """Two storms on one server. What it holds after each is compared with what it held when every sequence slot
    had been used, for as many tokens as the storm needs at once (the system gives the memory of caches at their first use),
    and every thread had had something to do."""

    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess(PROGRAM, TINY, "--max-num-seqs", SLOTS, "--max-model-len", 4096, "--header-timeout", HEADER_TIMEOUT,
                                   "--body-timeout", BODY_TIMEOUT, "--disable-log-requests")
        cls.addClassCleanup(cls.server.kill)
        asyncio.run(cls.use_every_slot(cls.server.port))
        Storm(cls.server.port, part=2)
        rest(cls.server.port)
        cls.descriptors = [descriptors(cls.server.pid)]
        cls.start = settled_bytes(cls.server.pid, 0)
        cls.storms, cls.resident, cls.at_rest = [], [], []
        for _ in range(2):
            cls.storms.append(Storm(cls.server.port))
            cls.at_rest.append(rest(cls.server.port))
            cls.resident.append(settled_bytes(cls.server.pid, 1.05 * cls.start))
            cls.descriptors.append(descriptors(cls.server.pid))
        print(f"worst /health: {[round(storm.worst_health, 3) for storm in cls.storms]} s, of which connecting "
              f"{[round(storm.its_connection, 3) for storm in cls.storms]} s; resident at the start "
              f"{cls.start / 1e6:.1f} MB, after each storm: {[round(n / 1e6, 1) for n in cls.resident]} MB; descriptors: {cls.descriptors}", file=sys.stderr)

    @staticmethod
    async def use_every_slot(port):
        await asyncio.gather(*[ask(port, "POST", "/v1/completions", completion(i, 400)) for i in range(SLOTS)])

    def test_every_stream_is_complete_and_has_the_tokens_that_were_asked_for(self):
        for storm in self.storms:
            wrong = [(i, s.status, s.error, s.usage) for i, s in enumerate(storm.streams)
                     if not s.done or s.error or s.usage["completion_tokens"] != wanted_tokens(i)]
            self.assertEqual(wrong[:5], [])

    def test_clients_that_leave_had_been_served(self):
        for storm in self.storms:
            self.assertEqual([(s.status, s.error) for s in storm.leavers if s.status != 200 or not s.events][:5], [])

    def test_bad_clients_are_told_off_or_closed(self):
        for storm in self.storms:
            self.assertEqual([b for b in storm.bad if b][:5], [])

    def test_health_answers_within_a_second_throughout(self):
        for storm in self.storms:
            self.assertLess(storm.worst_health, 10.0 if SANITIZED else 1.0)

    def test_all_counters_return_to_zero(self):
        for found in self.at_rest:
            self.assertEqual(found, AT_REST)

    def test_no_descriptor_is_left(self):
        self.assertEqual(self.descriptors[1:], [self.descriptors[0]] * 2)

    @unittest.skipIf(SANITIZED, "freed memory stays in the sanitizer's quarantine")
    def test_storms_leave_no_more_memory_in_use_than_there_was(self):
        self.assertLess(max(self.resident), 1.05 * self.start)

    def test_the_server_still_answers_and_ends_well(self):
        reply = asyncio.run(ask(self.server.port, "POST", "/v1/completions", completion(3, 7)))
        self.assertEqual((reply.status, reply.json()["usage"]["completion_tokens"]), (200, 7))


class Drain(unittest.TestCase):
    def drain(self, tokens, timeout):
        """SIGTERM when all streams have begun: (streams, replies during the drain, exit code)."""
        server = ServerProcess(PROGRAM, TINY, "--max-num-seqs", DRAINED, "--shutdown-timeout", timeout, "--max-model-len", 8192)
        self.addCleanup(server.kill)

        async def scene():
            begun, all_begun = [], asyncio.Event()

            def one_began():
                begun.append(1)
                if len(begun) == DRAINED:
                    all_begun.set()

            streams = [asyncio.ensure_future(stream(server.port, completion(i, tokens), on_first=one_began)) for i in range(DRAINED)]
            await asyncio.wait_for(all_begun.wait(), 120)
            server.process.send_signal(signal.SIGTERM)
            replies = await self.during(server.port)
            return await asyncio.gather(*streams), replies

        streams, replies = asyncio.run(scene())
        return streams, replies, server.wait()

    async def during(self, port):
        """Asks until the drain shows, then for each of what matters while it lasts."""
        for _ in range(200):
            ready = await ask(port, "GET", "/ready")
            if ready.status != 200:
                break
            await asyncio.sleep(0.01)
        return {"ready": ready, "health": await ask(port, "GET", "/health"), "live": await ask(port, "GET", "/live"),
                "new": await ask(port, "POST", "/v1/completions", completion(0, 1))}

    def test_running_streams_end_properly_while_new_work_is_refused(self):
        tokens = 60 if SANITIZED else 300
        streams, replies, code = self.drain(tokens, 300)
        self.assertEqual([(s.done, s.error, s.usage["completion_tokens"]) for s in streams], [(True, None, tokens)] * DRAINED)
        self.assertEqual({name: reply.status for name, reply in replies.items()},
                         {"ready": 503, "health": 503, "live": 200, "new": 503})
        self.assertEqual(replies["new"].headers.get("connection", "").lower(), "close")
        self.assertEqual(code, 0)

    def test_streams_that_outlast_the_timeout_end_with_an_error_event(self):
        streams, _, code = self.drain(6000, 1.0)
        self.assertEqual([s.error is not None and "message" in s.error for s in streams], [True] * DRAINED)
        self.assertEqual(code, 0)

    def test_a_server_without_work_ends_at_once(self):
        server = ServerProcess(PROGRAM, TINY, "--shutdown-timeout", 60)
        start = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - start, 20 if SANITIZED else 5)


if __name__ == "__main__":
    if sys.argv[1] == "--probe":
        asyncio.run(probe_until_told(int(sys.argv[2])))
        sys.exit()
    PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
    TINY = SOURCE / "models" / "tiny"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384) if hard != resource.RLIM_INFINITY else 16384, hard))
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
