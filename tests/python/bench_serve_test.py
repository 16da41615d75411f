"""`sluice bench --serve` against servers of known behaviour: bench_serve_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import json
import os
import pty
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from fake_openai_server import FakeServer

PROGRAM = Path(sys.argv[1]).resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}


def bench(server, *arguments, **variables):
    return subprocess.run([PROGRAM, "bench", "--serve", server.url, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, env={**CLEAN, **variables})


def lines_of(text):
    """{label: number} of the report."""
    return {label: float(value) for label, value in re.findall(r"^(.+?):\s+([\d.]+)\s*$", text, re.M)}


class BenchServe(unittest.TestCase):
    def figures(self, server, *arguments, code=0, **variables):
        done = bench(server, *arguments, **variables)
        self.assertEqual(done.returncode, code, done.stderr)
        return lines_of(done.stdout), done.stderr

    def measured(self, server):
        """The requests of the load itself, without those that find lengths out."""
        return [c for c in server.completions if c["max_tokens"] > 1]

    def test_counts_are_exact_and_times_are_those_of_the_server(self):
        with FakeServer(delay=0.01) as server:
            found, errors = self.figures(server, "--concurrency", 4, "--requests", 12, "--input-tokens", 30, "--output-tokens", 20)
        self.assertEqual(errors, "")
        self.assertEqual([found[name] for name in ("Successful requests", "Failed requests", "Total input tokens",
                                                   "Total generated tokens")], [12, 0, 360, 240])
        self.assertGreaterEqual(found["Median TPOT (ms)"], 10)
        self.assertGreaterEqual(found["Median ITL (ms)"], 10)
        self.assertGreaterEqual(found["Median E2EL (ms)"], 200)
        self.assertLess(found["Median TTFT (ms)"], found["Median E2EL (ms)"] / 2)
        self.assertAlmostEqual(found["Output token throughput (tok/s)"], 240 / found["Benchmark duration (s)"], delta=10)
        self.assertEqual(server.most_running, 4)
        self.assertTrue(all(c["ignore_eos"] and c["max_tokens"] == 20 for c in self.measured(server)))

    def test_connections_are_kept(self):
        with FakeServer(tokenizes=False) as server:
            self.figures(server, "--concurrency", 2, "--requests", 50, "--prompt-ids", "--output-tokens", 2)
        self.assertLessEqual(server.connections, 4)

    def test_each_prompt_is_another_and_the_seed_repeats_them(self):
        prompts = []
        for seed in (1, 1, 2):
            with FakeServer() as server:
                self.figures(server, "--prompt-ids", "--requests", 6, "--input-tokens", 9, "--output-tokens", 2, "--seed", seed)
            prompts.append([c["prompt"] for c in self.measured(server)])
        self.assertEqual([len(p) for p in prompts[0]], [9] * 6)
        self.assertLess(max(map(max, prompts[0])), 4000)
        self.assertEqual(len(set(map(tuple, prompts[0]))), 6)
        self.assertEqual(prompts[0], prompts[1])
        self.assertNotEqual(prompts[0], prompts[2])

    def test_chats_have_the_wanted_length_with_their_template(self):
        for spaced in (False, True):
            with FakeServer(spaced=spaced) as server:
                found, _ = self.figures(server, "--endpoint", "chat", "--requests", 3, "--input-tokens", 40, "--output-tokens", 5)
            self.assertEqual((found["Total input tokens"], found["Total generated tokens"]), (120, 15))

    def test_whole_replies_have_no_times_of_tokens(self):
        with FakeServer() as server:
            found, _ = self.figures(server, "--no-stream", "--requests", 3, "--output-tokens", 5)
        self.assertEqual(found["Total generated tokens"], 15)
        self.assertIn("Mean E2EL (ms)", found)
        self.assertNotIn("Mean TTFT (ms)", found)

    def test_short_replies_are_counted_as_they_are_and_noticed(self):
        with FakeServer(stops_after=3) as server:
            found, errors = self.figures(server, "--requests", 4, "--output-tokens", 10)
        self.assertEqual(found["Total generated tokens"], 12)
        self.assertIn("does not follow ignore_eos", errors)

    def test_failures_are_counted_by_what_the_server_said(self):
        kinds = {5: "429", 6: "429", 7: "drop", 8: "error"}
        with FakeServer(breaks=kinds.get, tokenizes=False) as server:
            found, errors = self.figures(server, "--requests", 10, "--output-tokens", 6, "--prompt-ids")
        self.assertEqual((found["Successful requests"], found["Failed requests"], found["Total generated tokens"]), (6, 4, 36))
        self.assertRegex(errors, "2 requests failed: status 429: the queue is full\n")
        self.assertRegex(errors, "1 requests failed: an error in the stream: the device failed\n")
        self.assertRegex(errors, "1 requests failed: .*(closed the connection before the response was complete|reset)")

    def test_a_server_that_hangs_fails_after_the_time_allowed(self):
        with FakeServer(breaks=lambda i: "hang" if i > 2 else None, tokenizes=False) as server:
            start = time.monotonic()
            found, errors = self.figures(server, "--requests", 4, "--concurrency", 4, "--prompt-ids", "--request-timeout", 1)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual((found["Successful requests"], found["Failed requests"]), (2, 2))
        self.assertIn("no whole answer within 1 s", errors)

    def test_arrivals_come_at_the_rate_asked_for(self):
        with FakeServer() as server:
            found, _ = self.figures(server, "--request-rate", 50, "--concurrency", 100, "--requests", 50, "--output-tokens", 2)
        self.assertEqual(found["Request rate configured (RPS)"], 50)
        self.assertGreater(found["Benchmark duration (s)"], 0.5)  # 1 s is expected, with a deviation of 0.14

    def test_goodput_counts_what_meets_the_bounds(self):
        with FakeServer(delay=0.02) as server:
            arguments = ["--requests", 4, "--concurrency", 4, "--output-tokens", 4]
            good, _ = self.figures(server, *arguments, "--goodput", "ttft:100000,tpot:100000")
            bad, _ = self.figures(server, *arguments, "--goodput", "tpot:10")
        self.assertEqual(good["Request goodput (req/s)"], good["Request throughput (req/s)"])
        self.assertEqual(bad["Request goodput (req/s)"], 0)

    def test_records_are_of_the_format_of_the_other_benches(self):
        with FakeServer(key="secret") as server:
            done = bench(server, "--json", "--concurrency", "1,2", "--requests", 2, "--input-tokens", 8, "--output-tokens", 4,
                         "--api-key", "secret")
            self.assertEqual(done.returncode, 0, done.stderr)
            records = {r["case"]: r for r in json.loads(done.stdout)}
            from_environment, _ = self.figures(server, "--requests", 1, SLUICE_API_KEY="secret")
            refused = bench(server, "--requests", 1)
        record = records["serve.fake.c2.in8.out4.output_throughput"]
        self.assertEqual(record["unit"], "tok/s")
        self.assertLessEqual({"value", "device", "date", "commit", "command"}, set(record))
        self.assertNotIn("secret", done.stdout)
        self.assertEqual(records["serve.fake.c1.in8.out4.generated_tokens"]["value"], 8)
        self.assertEqual(from_environment["Successful requests"], 1)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("status 401: the API key is wrong", refused.stderr)

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_https_checks_the_certificate_unless_told_not_to(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder) / "certificate.pem", Path(folder) / "key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            with FakeServer(tls=context) as server:
                arguments = ["--requests", 6, "--concurrency", 3, "--input-tokens", 8, "--output-tokens", 4]
                distrusted = bench(server, *arguments)
                insecure, _ = self.figures(server, *arguments, "--insecure")
                trusted, _ = self.figures(server, *arguments, SSL_CERT_FILE=str(certificate))
        self.assertEqual(distrusted.returncode, 1)
        self.assertIn("no TLS connection", distrusted.stderr)
        self.assertEqual((insecure["Total generated tokens"], trusted["Total generated tokens"]), (24, 24))

    def test_an_interrupt_prints_what_was_measured_so_far(self):
        with FakeServer(delay=0.02, tokenizes=False) as server:
            process = subprocess.Popen([PROGRAM, "bench", "--serve", server.url, "--requests", "100000", "--output-tokens", "4", "--prompt-ids"],
                                       stdout=subprocess.PIPE, text=True, env=CLEAN)
            while len(server.completions) < 6:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertGreater(lines_of(output)["Successful requests"], 2)

    def test_progress_shows_on_a_terminal_only(self):
        with FakeServer(delay=0.002) as server:
            self.assertEqual(bench(server, "--requests", 20, "--output-tokens", 10).stderr, "")
            ours, theirs = pty.openpty()
            process = subprocess.Popen([PROGRAM, "bench", "--serve", server.url, "--requests", "20", "--output-tokens", "10"],
                                       stdout=subprocess.DEVNULL, stderr=theirs, env=CLEAN)
            os.close(theirs)
            shown = b""
            try:
                while piece := os.read(ours, 1000):
                    shown += piece
            except OSError:  # the end of a terminal
                pass
            os.close(ours)
            self.assertEqual(process.wait(), 0)
        self.assertIn(b"of 20 requests", shown)

    def test_what_cannot_be_measured_is_one_clear_error(self):
        def fails(code, pattern, *arguments):
            done = subprocess.run([PROGRAM, "bench", *arguments], capture_output=True, text=True, timeout=60, env=CLEAN)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
            self.assertRegex(done.stderr, pattern)

        fails(1, "http://127.0.0.1:1: cannot connect: Connection refused", "--serve", "http://127.0.0.1:1")
        fails(1, "the host is not known", "--serve", "http://nothing.invalid")
        fails(2, "unknown scheme", "--serve", "ftp://localhost")
        fails(2, "--prompt-ids: a chat is text", "--serve", "http://localhost", "--prompt-ids", "--endpoint", "chat")
        fails(2, "--request-rate", "--serve", "http://localhost", "--request-rate", "0")
        fails(2, "--goodput", "--serve", "http://localhost", "--goodput", "itl:5")
        fails(2, "either --serve or --shape", "--serve", "http://localhost", "--shape", "qwen3.5-0.8b")
        with FakeServer(breaks=lambda i: "429" if i > 0 else None, tokenizes=False) as server:
            done = bench(server, "--requests", 2, "--prompt-ids")
            self.assertEqual(done.returncode, 1)
            self.assertIn("no request succeeded", done.stderr)
            fails(1, "does not serve it, but fake", "--serve", server.url, "--model", "other")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
