"""The chat on a terminal: chat_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import json
import os
import pty
import re
import select
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
TINY = SOURCE / "models" / "tiny"
PATIENCE = 120  # seconds


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *arguments, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_") and k != "NO_COLOR"}
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, ["sluice", "run", str(TINY), "--temperature", "0", *arguments],
                      {**environment, "TERM": "xterm", **variables})
        self.output = ""
        self.seen = 0

    def type(self, text):
        os.write(self.file, text.encode())

    def read_more(self, seconds):
        if not select.select([self.file], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.file, 65536)
        except OSError:
            return False
        self.output += data.decode("utf-8", "replace")
        return bool(data)

    def wait_for(self, text):
        """What came up to and with the text, from where the last wait ended."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.output[self.seen :]:
            if time.monotonic() > deadline or not self.read_more(1):
                raise AssertionError(f"{text!r} did not come; the terminal shows {self.output!r}")
        end = self.output.index(text, self.seen) + len(text)
        part, self.seen = self.output[self.seen : end], end
        return part

    def exit_code(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            alive = self.read_more(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG if alive else 0)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it does not end; the terminal shows {self.output!r}")

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.file)


class Chat(unittest.TestCase):
    def open(self, *arguments, **variables):
        terminal = Terminal(*arguments, **variables)
        self.addCleanup(terminal.close)
        terminal.wait_for("> ")
        return terminal

    def ask(self, terminal, keys, answer):
        terminal.type(keys)
        return terminal.wait_for(answer)

    def test_a_typed_line_is_answered_and_exit_leaves(self):
        terminal = self.open()
        shown = self.ask(terminal, "What is the capital of Peru?\r", "Lima.")
        self.assertIn("\x1b[2m", shown)  # its thinking is dimmed
        terminal.wait_for("> ")
        self.ask(terminal, "/stats\r", "tokens/s")
        self.ask(terminal, "/help\r", "Ctrl-C stops a reply")
        terminal.type("/exit\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_without_color_nothing_is_dimmed(self):
        terminal = self.open(NO_COLOR="1")
        self.assertNotIn("\x1b[2m", self.ask(terminal, "What is the capital of Peru?\r", "Lima."))

    def test_editing_keys_change_the_line(self):
        terminal = self.open("--thinking", "off")
        # "xWhat is the capital of " and a wrong word, put right with Ctrl-A, delete, Ctrl-E and Ctrl-W.
        self.ask(terminal, "xWhat is the capital of Norway?\x01\x1b[3~\x05\x17Peru?\r", "Lima.")
        terminal.wait_for("> ")
        self.ask(terminal, "\x1b[A\r", "Lima.")  # the same again, from the history

    def test_lines_that_go_on_are_one_message(self):
        with tempfile.TemporaryDirectory() as folder:
            terminal = self.open("--max-tokens", "2")
            self.ask(terminal, "one\\\rtwo\r", "> ")
            self.ask(terminal, '"""\rthree\rfour"""\r', "cut off")
            self.ask(terminal, "\x1b[200~five\rsix\x1b[201~\r", "cut off")
            self.ask(terminal, f"/save {folder}/chat.json\r", "saved to")
            messages = json.loads(Path(folder, "chat.json").read_text())
        self.assertEqual([m["content"] for m in messages if m["role"] == "user"], ["one\ntwo", "three\nfour", "five\nsix"])

    def test_ctrl_c_stops_a_reply_and_the_chat_goes_on(self):
        terminal = self.open("--ignore-eos", "--thinking", "off")
        terminal.type("Please tell a story about a happy frog.\r")
        terminal.wait_for("frog")
        time.sleep(0.3)
        self.ask(terminal, "\x03", "(stopped)")
        terminal.wait_for("> ")
        self.ask(terminal, "/help\r", "/clear")
        terminal.type("/exit\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_ctrl_c_twice_and_ctrl_d_leave(self):
        terminal = self.open()
        self.ask(terminal, "\x03", "Ctrl-C again")
        terminal.wait_for("> ")
        terminal.type("\x03")
        self.assertEqual(terminal.exit_code(), 0)
        terminal = self.open()
        terminal.type("\x04")
        self.assertEqual(terminal.exit_code(), 0)

    def test_commands_change_the_conversation(self):
        with tempfile.TemporaryDirectory() as folder:
            terminal = self.open("--max-tokens", "4")
            self.ask(terminal, "/system Be brief.\r", "> ")
            self.ask(terminal, "Hello\r", "cut off")
            self.ask(terminal, "/image x.png\r", "not in this build")
            self.ask(terminal, "/think maybe\r", "on or off")
            self.ask(terminal, "/nonsense\r", "unknown command /nonsense")
            self.ask(terminal, f"/save {folder}/chat.json\r", "saved to")
            roles = [m["role"] for m in json.loads(Path(folder, "chat.json").read_text())]
            self.assertEqual(roles, ["system", "user", "assistant"])
            self.ask(terminal, "/clear\r", "forgotten")
            self.ask(terminal, f"/save {folder}/chat.json\r", "saved to")
            self.assertEqual([m["role"] for m in json.loads(Path(folder, "chat.json").read_text())], ["system"])

    def test_think_off_leaves_out_the_thinking(self):
        terminal = self.open()
        self.ask(terminal, "/think off\r", "> ")
        shown = self.ask(terminal, "What is the capital of Peru?\r", "Lima.")
        self.assertNotIn("\x1b[2m", shown)

    def test_a_dumb_terminal_gets_no_escape_sequences(self):
        terminal = self.open(TERM="dumb")
        self.ask(terminal, "What is the capital of Peru?\n", "Lima.")
        self.assertIsNone(re.search("\x1b", terminal.output))


if __name__ == "__main__":
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        print(f"skipped: no terminal to be had ({error}); is /dev/pts mounted?")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
