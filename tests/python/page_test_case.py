"""The chat page of a running server in a browser, for the tests server_page*_test.py PROGRAM SOURCE_FOLDER."""
import json
import shutil
import sys
import time
import unittest
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from server_process import ServerProcess
from slow_proxy import SlowProxy

PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
TINY = SOURCE / "models" / "tiny"
PATIENCE = 60_000  # milliseconds


def setUpModule():
    global server, playwright, browser
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        raise AssertionError("no chromium on this machine: install Debian's package of that name")
    server = ServerProcess(PROGRAM, TINY, "--compute", "f32")
    unittest.addModuleCleanup(server.kill)
    playwright = sync_playwright().start()
    unittest.addModuleCleanup(playwright.stop)
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    unittest.addModuleCleanup(browser.close)


class PageTest(unittest.TestCase):
    """Each test has a browser of its own that has never been here."""

    def open(self, port=None, conversation=None, settings=None, **options):
        """The page, with settings and perhaps one conversation from an earlier visit."""
        proxy = SlowProxy(port or server.port)
        self.addCleanup(proxy.close)
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, "reduced_motion": "reduce", **options})
        self.addCleanup(context.close)
        context.set_default_timeout(PATIENCE)
        kept = {"sluice.settings": json.dumps({"temperature": "0", **(settings or {})})}
        if conversation:
            messages = [{"id": f"m{i}", **message} for i, message in enumerate(conversation)]
            kept["sluice.conversation.c1"] = json.dumps(
                {"id": "c1", "title": "Kept", "created": 1, "updated": 1, "messages": messages})
        context.add_init_script("for (const [key, text] of Object.entries(%s)) if (!localStorage.getItem(key) && !sessionStorage.getItem('seen'))"
                                " localStorage.setItem(key, text); sessionStorage.setItem('seen', '1');" % json.dumps(kept))
        page = context.new_page()
        page.proxy = proxy
        self.faults = []
        page.on("console", lambda message: message.type == "error" and self.faults.append(message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.answer = page.goto(proxy.url)
        if conversation:
            page.get_by_role("button", name="Kept", exact=True).click()
        return page

    def ask(self, page, text):
        page.get_by_label("Message", exact=True).fill(text)
        page.keyboard.press("Enter")

    def wait_for_answer(self, page, text):
        expect(page.locator(".assistant .content").last).to_have_text(text, timeout=PATIENCE)
        self.wait_for_end(page)

    def wait_until(self, page, condition):
        """Playwright's own wait_for_function needs a policy with unsafe-eval."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not page.evaluate(condition):
            self.assertLess(time.monotonic(), deadline, f"never became true: {condition}")
            time.sleep(0.02)

    def wait_for_end(self, page):
        expect(page.locator(".assistant").last).to_have_attribute("aria-busy", "false", timeout=PATIENCE)

    def content(self, page):
        return page.locator(".assistant .content").last.inner_text()
