"""A running `sluice serve` for the tests of its interface: its own port, its log, its end."""
import os
import re
import signal
import subprocess
import threading
import time

PATIENCE = 120  # seconds for the start and the end, on a busy machine and under sanitizers
LISTENING = re.compile(r"listening on (https?)://[^\s:]+:(\d+)")


class ServerProcess:
    """ServerProcess(program, model, "--api-key", "secret"): listening when it has been made. A context manager, too."""

    def __init__(self, program, model, *arguments, port=0, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_") or k == "SLUICE_SANITIZED"}
        self.log = ""
        self.ready = threading.Event()
        self.process = subprocess.Popen([program, "serve", model, "--port", str(port), *map(str, arguments)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env={**environment, **variables})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if not self.ready.wait(PATIENCE) or not self.url:
            self.kill()
            raise AssertionError(f"the server does not listen; it printed:\n{self.log}")

    def _read(self):
        """Collects what the server prints; a full pipe would stop it."""
        self.url, self.port = None, None
        for line in self.process.stdout:
            self.log += line.decode("utf-8", "replace")
            match = LISTENING.search(self.log) if self.port is None else None
            if match:
                self.port = int(match[2])
                self.url = f"{match[1]}://127.0.0.1:{self.port}"
                self.ready.set()
        self.ready.set()

    @property
    def pid(self):
        return self.process.pid

    def wait(self, seconds=PATIENCE):
        """The exit code."""
        code = self.process.wait(seconds)
        self.reader.join(10)
        self.process.stdout.close()
        return code

    def wait_for_log(self, text, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while text not in self.log:
            if time.monotonic() > deadline or self.process.poll() is not None and not self.reader.is_alive():
                raise AssertionError(f"{text!r} did not come; the server printed:\n{self.log}")
            time.sleep(0.02)

    def stop(self):
        """Ends it as an operator does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server does not end; it printed:\n{self.log}") from None

    def kill(self):
        self.process.kill()
        return self.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
