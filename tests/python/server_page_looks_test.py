"""How the chat page looks, in a browser: server_page_looks_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import sys
import unittest

from playwright.sync_api import expect

from page_test_case import PageTest, setUpModule

WIDE = "wide " * 3 + "\n\n```python\n" + "x" * 300 + "\n```\n\n|" + " a long heading |" * 9 + "\n|" + "---|" * 9 + "\n|" + " cell |" * 9 + "\n\n" + "w" * 200

# Texts whose contrast with what lies behind them is below 4.5.
FAINT_TEXTS = """() => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const channels = (colour) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); return [...pen.getImageData(0, 0, 1, 1).data]; };
  const light = (colour) => colour.slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => { for (; node; node = node.parentElement) { const c = channels(getComputedStyle(node).backgroundColor); if (c[3] === 255) return c; } };
  const faint = [];
  for (const node of document.querySelectorAll("body *")) {
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) || !node.checkVisibility({opacityProperty: true})) continue;
    if (node.closest(":disabled, noscript, .unseen, svg")) continue;
    const [a, b] = [light(channels(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(`${node.tagName}.${node.className}: ${node.textContent.slice(0, 30)} ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return faint;
}"""


class Looks(PageTest):
    def test_nothing_is_loaded_from_elsewhere_and_the_policy_says_so(self):
        requests = []
        page = self.open()
        page.on("request", lambda request: requests.append(request.url))
        page.reload()
        expect(page.locator("#server")).to_have_text("Connected")
        self.assertEqual([url for url in requests if not url.startswith((page.proxy.url, "data:"))], [])
        policy = self.answer.headers["content-security-policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(self.faults, [])

    def test_markdown_becomes_elements_and_markup_stays_text(self):
        text = ("# Head\n\nA **bold** *word*, `code`, [link](https://example.org/a_(b)) and [bad](javascript:alert(1)).\n\n- one\n  - two\n\n"
                "3. three\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```python\nprint(1 < 2)\n```\n\n<img src=x onerror=alert(1)><script>alert(1)</script>")
        page = self.open(conversation=[{"role": "user", "content": "<b>hello</b>"}, {"role": "assistant", "content": text, "reasoning": "",
                                                                                       "toolCalls": [], "state": "done"}])
        content = page.locator(".content")
        expect(content.locator("h1")).to_have_text("Head")
        expect(content.locator("strong")).to_have_text("bold")
        expect(content.locator("em")).to_have_text("word")
        expect(content.locator("a")).to_have_count(1)
        expect(content.locator("a")).to_have_attribute("href", "https://example.org/a_(b)")
        expect(content.locator("ul ul li")).to_have_text("two")
        expect(content.locator("ol")).to_have_attribute("start", "3")
        expect(content.locator("td.right")).to_have_text("2")
        expect(content.locator("pre code")).to_have_text("print(1 < 2)")
        expect(content.locator("img, script")).to_have_count(0)
        expect(content).to_contain_text("<img src=x onerror=alert(1)><script>alert(1)</script>")
        expect(page.locator(".user .text")).to_have_text("<b>hello</b>")

    def test_growing_markdown_looks_like_the_whole(self):
        page = self.open()
        text = "Intro *a*\n\n1. one\n2. two\n   - deep\n\n```js\nlet x = 1;\n```\n> quote\n\n| a |\n|---|\n| 1 |\nend **b**\n---\nlast"
        grown, whole = page.evaluate("""(text) => {
          const [a, b] = [element("div"), element("div")];
          const view = new MarkdownView(a);
          for (let i = 1; i <= text.length; i++) view.update(text.slice(0, i));
          new MarkdownView(b).update(text);
          return [a.innerHTML, b.innerHTML];
        }""", text)
        self.assertEqual(grown, whole)
        self.assertIn("<table>", whole)

    def test_hostile_markdown_is_quick(self):
        page = self.open()
        for piece in ("*a ", "[", "`" * 3 + " ` ", "**_", "> ", "- " * 20 + "\n", "|", "<http://", "![](", "\\"):
            milliseconds = page.evaluate("""(text) => {
              const start = performance.now();
              new MarkdownView(element("div")).update(text);
              return performance.now() - start;
            }""", piece * (50_000 // len(piece)))
            self.assertLess(milliseconds, 5000, piece)

    def test_a_telephone_shows_everything_without_sideways_scrolling(self):
        page = self.open(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
        wide = page.evaluate("document.documentElement.scrollWidth")
        self.assertEqual(wide, 360)
        page.evaluate("""(text) => {
          const conversation = store.create();
          conversation.messages.push({id: "u", role: "user", content: "w".repeat(300)},
            {id: "a", role: "assistant", content: text, reasoning: "r".repeat(300), toolCalls: [], state: "done", usage: {prompt_tokens: 12345,
              completion_tokens: 12345}, timings: {prompt_ms: 1234, predicted_per_second: 123}});
          showConversation(conversation);
        }""", WIDE)
        for selector in (".message", "#composer", "#head", ".bubble", ".code", ".table", ".figures", "#send", "#open_sidebar"):
            for box in page.locator(selector).evaluate_all("nodes => nodes.map((node) => node.getBoundingClientRect()).map(({left, right}) => [left, right])"):
                self.assertGreaterEqual(box[0], 0, selector)
                self.assertLessEqual(box[1], 360, selector)
        self.assertLessEqual(page.evaluate("Math.max(document.documentElement.scrollWidth, byId('scroll').scrollWidth)"), 360)
        page.get_by_role("button", name="Conversations", exact=True).click()
        page.get_by_role("button", name="Settings").click()
        self.assertLessEqual(page.locator("dialog .fields").evaluate("node => node.scrollWidth"), 360)

    def test_every_control_has_a_name_and_text_stands_out(self):
        for scheme in ("light", "dark"):
            page = self.open(color_scheme=scheme, conversation=[
                {"role": "user", "content": "hi"}, {"role": "assistant", "content": "`a` [b](https://c.d)\n\n```js\nlet x = 1; // y\n```\n> q", "reasoning": "r",
                                                    "toolCalls": [], "state": "stopped", "error": {"message": "e", "status": 500}}])
            page.get_by_role("button", name="Settings").click()
            nameless = page.evaluate("""() => [...document.querySelectorAll("button, input:not([type=file]), textarea, [role=region]")].filter((node) =>
              !(node.getAttribute("aria-label") || node.textContent.trim() || node.labels?.[0]?.textContent.trim())).map((node) => node.outerHTML)""")
            self.assertEqual(nameless, [])
            self.assertEqual(page.evaluate(FAINT_TEXTS), [], scheme)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
