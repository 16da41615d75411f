"""What one does on the chat page, in a browser: server_page_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import base64
import json
import re
import struct
import sys
import unittest
import zlib
from pathlib import Path

from playwright.sync_api import expect

from page_test_case import PATIENCE, PROGRAM, TINY, PageTest, setUpModule
from server_process import ServerProcess

TRICKLE = 4000  # bytes a second: some twenty chunks of a stream
SUM, SUM_ANSWER = "Compute 120 plus 721.", "120 + 721 = 841"
CAPITAL, CAPITAL_ANSWER = "Oslo is the capital of which country?", "Oslo is the capital of Norway."
STORY = "Please tell a story about a happy frog."
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


RED_DOT = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) +
           chunk(b"IDAT", zlib.compress(b"".join(b"\0" + b"\xd0\x20\x20" * 8 for _ in range(8)))) + chunk(b"IEND", b""))


class Conversation(PageTest):
    def test_a_question_is_answered_with_its_figures(self):
        page = self.open()
        self.ask(page, SUM)
        self.wait_for_answer(page, SUM_ANSWER)
        expect(page.locator(".user .text")).to_have_text(SUM)
        self.assertRegex(page.locator(".figures").inner_text(), r"^55 tokens · [\d,.]+ tokens/s · .*prompt 21")
        self.assertRegex(page.locator("#context").inner_text(), r"^76 of [\d,]+ tokens$")
        self.assertEqual(self.faults, [])

    def test_the_answer_appears_piece_by_piece(self):
        page = self.open(settings={"thinking": False})
        page.proxy.rate = TRICKLE
        self.ask(page, STORY)
        self.wait_until(page, "document.querySelector('.content')?.innerText.length > 20")
        early = self.content(page)
        self.assertEqual(page.locator(".assistant").get_attribute("aria-busy"), "true")
        page.proxy.rate = None
        self.wait_for_end(page)
        self.assertTrue(self.content(page).startswith(early[:20]))
        self.assertGreater(len(self.content(page)), len(early))

    def test_thinking_is_open_while_it_lasts_and_folded_after(self):
        page = self.open()
        page.proxy.rate = TRICKLE
        self.ask(page, SUM)
        thinking = page.locator(".thinking")
        expect(thinking).to_have_attribute("open", "", timeout=PATIENCE)
        expect(thinking.locator("summary")).to_contain_text("Thinking")
        page.proxy.rate = None
        self.wait_for_answer(page, SUM_ANSWER)
        expect(thinking).not_to_have_attribute("open", "")
        thinking.locator("summary").click()
        expect(thinking.locator(".markdown")).to_be_visible()
        expect(thinking.locator(".markdown")).to_contain_text("So 841.")
        expect(thinking.locator("summary")).to_contain_text("Thought for")

    def test_without_thinking_there_is_none(self):
        page = self.open()
        page.get_by_role("button", name="Thinking").click()
        self.ask(page, CAPITAL)
        self.wait_for_end(page)
        expect(page.locator(".thinking")).to_be_hidden()

    def test_escape_stops_the_answer_and_keeps_what_came(self):
        page = self.open(settings={"thinking": False})
        page.proxy.rate = TRICKLE
        self.ask(page, STORY)
        self.wait_until(page, "document.querySelector('.content')?.innerText.length > 10")
        page.keyboard.press("Escape")
        expect(page.locator(".note")).to_have_text("Stopped.")
        stopped = self.content(page)
        self.assertTrue(stopped)
        page.proxy.rate = None
        self.ask(page, SUM)
        self.wait_for_end(page)
        self.assertEqual(page.locator(".assistant .content").first.inner_text(), stopped)

    def test_the_stop_button_stops(self):
        page = self.open()
        page.proxy.rate = TRICKLE
        self.ask(page, STORY)
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".note")).to_have_text("Stopped.")
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()

    def test_an_answer_can_be_asked_for_again(self):
        page = self.open()
        self.ask(page, SUM)
        self.wait_for_answer(page, SUM_ANSWER)
        page.proxy.rate = TRICKLE
        page.get_by_role("button", name="Answer again").click()
        expect(page.locator(".assistant")).to_have_attribute("aria-busy", "true")
        page.proxy.rate = None
        self.wait_for_answer(page, SUM_ANSWER)
        expect(page.locator(".message")).to_have_count(2)

    def test_an_edited_message_replaces_what_followed_until_undone(self):
        page = self.open()
        self.ask(page, SUM)
        self.wait_for_answer(page, SUM_ANSWER)
        self.ask(page, STORY)
        self.wait_for_end(page)
        first = page.locator(".user").first
        first.hover()
        first.get_by_role("button", name="Edit and send again").click()
        page.get_by_label("Edit the message").fill(CAPITAL)
        page.keyboard.press("Enter")
        expect(page.locator(".message")).to_have_count(2)
        self.wait_for_answer(page, CAPITAL_ANSWER)
        page.get_by_role("button", name="Undo").click()
        expect(page.locator(".message")).to_have_count(4)
        expect(page.locator(".user .text").first).to_have_text(SUM)

    def test_shift_and_enter_break_the_line(self):
        page = self.open()
        box = page.get_by_label("Message", exact=True)
        box.press_sequentially("one")
        page.keyboard.press("Shift+Enter")
        box.press_sequentially("two")
        expect(box).to_have_value("one\ntwo")
        expect(page.locator(".message")).to_have_count(0)

    def test_the_reader_who_scrolled_up_is_left_there(self):
        page = self.open(conversation=[{"role": "user", "content": "line\n" * 80}, {"role": "assistant", "content": "well", "reasoning": "",
                                                                                      "toolCalls": [], "state": "done"}])
        area = page.locator("#scroll")
        self.wait_until(page, "byId('scroll').scrollTop > 500")
        page.proxy.rate = TRICKLE
        self.ask(page, STORY)
        self.wait_until(page, "document.querySelectorAll('.assistant')[1]?.innerText.length > 10")
        area.hover()
        page.mouse.wheel(0, -400)
        expect(page.get_by_role("button", name="Go to the end")).to_be_visible()
        here = area.evaluate("area => area.scrollTop")
        page.proxy.rate = None
        self.wait_for_end(page)
        self.assertAlmostEqual(area.evaluate("area => area.scrollTop"), here, delta=2)
        page.get_by_role("button", name="Go to the end").click()
        self.wait_until(page, "byId('scroll').scrollHeight - byId('scroll').scrollTop - byId('scroll').clientHeight < 5")


class Memory(PageTest):
    def test_a_reload_keeps_the_conversation(self):
        page = self.open()
        self.ask(page, SUM)
        self.wait_for_answer(page, SUM_ANSWER)
        page.reload()
        expect(page.locator(".assistant .content")).to_have_text(SUM_ANSWER)
        expect(page.locator(".figures")).to_contain_text("55 tokens")

    def test_a_reload_in_the_middle_keeps_what_had_arrived(self):
        page = self.open(settings={"thinking": False})
        page.proxy.rate = TRICKLE
        self.ask(page, STORY)
        self.wait_until(page, "document.querySelector('.content')?.innerText.length > 20")
        early = self.content(page)
        page.reload()
        expect(page.locator(".note")).to_contain_text("reloaded")
        self.assertTrue(self.content(page).startswith(early))

    def test_conversations_are_listed_renamed_deleted_and_brought_back(self):
        page = self.open()
        for question in (SUM, CAPITAL):
            page.get_by_role("button", name="New conversation").first.click()
            self.ask(page, question)
            self.wait_for_end(page)
        listed = page.locator("#conversations .open")
        expect(listed).to_have_text([CAPITAL, SUM])
        listed.nth(1).click()
        expect(page.locator(".assistant .content")).to_have_text(SUM_ANSWER)
        listed.nth(1).hover()
        page.get_by_role("button", name=f"Rename {SUM}").click()
        page.get_by_label("Name of the conversation").fill("Adding up")
        page.keyboard.press("Enter")
        expect(listed).to_have_text([CAPITAL, "Adding up"])
        listed.nth(1).hover()
        page.get_by_role("button", name="Delete Adding up").click()
        expect(listed).to_have_text([CAPITAL])
        expect(page.locator(".message")).to_have_count(0)
        page.get_by_role("button", name="Undo").click()
        page.reload()
        expect(listed).to_have_text([CAPITAL, "Adding up"])

    def test_an_answer_goes_on_while_another_conversation_is_read(self):
        page = self.open(conversation=[{"role": "user", "content": "before"}])
        page.get_by_role("button", name="New conversation").first.click()
        page.proxy.rate = TRICKLE
        self.ask(page, SUM)
        page.get_by_role("button", name="Kept", exact=True).click()
        expect(page.locator(".running")).to_be_visible()
        page.proxy.rate = None
        expect(page.locator(".running")).to_have_count(0, timeout=PATIENCE)
        page.get_by_role("button", name=SUM, exact=True).click()
        expect(page.locator(".assistant .content")).to_have_text(SUM_ANSWER)

    def test_a_conversation_is_exported_without_the_key(self):
        page = self.open(settings={"api_key": "secret-key", "system": "Answer politely."})
        self.ask(page, SUM)
        self.wait_for_end(page)
        with page.expect_download() as download:
            page.get_by_role("button", name="Save the conversation").click()
        text = Path(download.value.path()).read_text()
        self.assertNotIn("secret-key", text)
        self.assertEqual([(m["role"], m["content"]) for m in json.loads(text)["messages"]][:2],
                         [("system", "Answer politely."), ("user", SUM)])


class Settings(PageTest):
    def request_of(self, page, text):
        with page.expect_request("**/v1/chat/completions") as request:
            self.ask(page, text)
        self.wait_for_end(page)
        return request.value.post_data_json

    def test_they_persist_and_are_sent(self):
        page = self.open()
        page.get_by_role("button", name="Settings").click()
        page.get_by_label("System prompt").fill("You are a tiny model. Be brief.")
        for label, value in (("Temperature", "0.5"), ("Top p", "0.9"), ("Top k", "20"), ("Min p", "0.05"), ("Max tokens", "7"), ("Seed", "3")):
            page.get_by_label(label).fill(value)
        page.get_by_label("Think before answering").uncheck()
        page.reload()
        body = self.request_of(page, STORY)
        self.assertEqual(body["messages"][0], {"role": "system", "content": "You are a tiny model. Be brief."})
        for name, value in {"temperature": 0.5, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "max_tokens": 7, "seed": 3,
                            "chat_template_kwargs": {"enable_thinking": False}}.items():
            self.assertEqual(body[name], value)
        expect(page.locator(".note")).to_have_text("The limit of tokens was reached.")

    def test_what_is_wrong_is_said_beside_the_field_and_not_taken(self):
        page = self.open()
        page.get_by_role("button", name="Settings").click()
        page.get_by_label("Top p").fill("1.5")
        expect(page.locator("#fault_top_p")).to_have_text("At most 1.")
        page.get_by_label("Tools").fill("[{]")
        expect(page.locator("#fault_tools")).to_contain_text("No JSON")
        page.keyboard.press("Escape")
        body = self.request_of(page, SUM)
        self.assertNotIn("top_p", body)
        self.assertNotIn("tools", body)

    def test_the_theme_follows_the_system_until_chosen(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        page = self.open(color_scheme="light")
        light = page.evaluate(ground)
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate(ground)
        self.assertNotEqual(light, dark)
        page.get_by_role("button", name="Light colours").click()
        self.assertEqual(page.evaluate(ground), light)
        page.reload()
        self.assertEqual(page.evaluate(ground), light)


class ToolsAndPictures(PageTest):
    def test_a_tool_call_is_shown_and_answered(self):
        page = self.open(settings={"tools": json.dumps([WEATHER])})
        self.ask(page, "What is the weather in Paris?")
        self.wait_for_end(page)
        call = page.get_by_role("region", name="Call of the tool get_weather")
        expect(call.locator("header")).to_have_text("get_weather")
        self.assertEqual(json.loads(call.locator("pre").inner_text()), {"city": "Paris"})
        page.get_by_label("Answer of the tool get_weather").fill('{"temperature": 21, "sky": "sunny"}')
        page.get_by_role("button", name="Send the answer").click()
        self.wait_for_answer(page, "It is 21 degrees and sunny in Paris.")
        expect(call.locator(".result pre")).to_contain_text('"sky": "sunny"')
        page.reload()
        expect(call.locator(".result pre")).to_contain_text('"sky": "sunny"')

    def add_picture(self, page, how):
        page.evaluate("""([base64, how]) => {
          const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
          const data = new DataTransfer();
          data.items.add(new File([bytes], "dot.png", {type: "image/png"}));
          const event = how === "paste" ? new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true})
            : new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
          document.getElementById("prompt").dispatchEvent(event);
        }""", [base64.b64encode(RED_DOT).decode(), how])

    def test_a_picture_comes_by_paste_by_drop_and_by_file_and_can_be_taken_out(self):
        page = self.open()
        self.add_picture(page, "paste")
        self.add_picture(page, "drop")
        page.locator("#file").set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": RED_DOT})
        expect(page.locator(".chip")).to_have_count(3)
        page.get_by_role("button", name="Remove dot.png").first.click()
        expect(page.locator(".chip")).to_have_count(2)

    def test_a_refused_picture_shows_the_server_s_words_and_a_way_on(self):
        page = self.open()
        self.add_picture(page, "paste")
        with page.expect_response("**/v1/chat/completions") as response:
            self.ask(page, SUM)
        self.assertEqual(response.value.status, 400)
        part = response.value.request.post_data_json["messages"][-1]["content"][0]
        self.assertEqual(part["image_url"]["url"], "data:image/png;base64," + base64.b64encode(RED_DOT).decode())
        expect(page.get_by_role("alert").locator("p")).to_have_text(response.value.json()["error"]["message"])
        expect(page.locator(".pictures img")).to_have_count(1)
        page.get_by_role("button", name="Send without pictures").click()
        self.wait_for_answer(page, SUM_ANSWER)


class Failures(PageTest):
    def test_a_wrong_key_is_reported_where_it_happened_and_can_be_mended(self):
        guarded = ServerProcess(PROGRAM, TINY, "--compute", "f32", "--api-key", "right")
        self.addCleanup(guarded.kill)
        page = self.open(port=guarded.port, settings={"api_key": "wrong"})
        with page.expect_response("**/v1/chat/completions") as response:
            self.ask(page, SUM)
        self.assertEqual(response.value.status, 401)
        expect(page.locator(".assistant .error p")).to_have_text(response.value.json()["error"]["message"])
        page.get_by_role("button", name="Enter the API key").click()
        page.get_by_label("API key").fill("right")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Try again").click()
        self.wait_for_answer(page, SUM_ANSWER)

    def test_a_lost_connection_is_noticed_and_its_return_too(self):
        page = self.open()
        expect(page.locator("#server")).to_have_text("Connected")
        page.proxy.open = False
        self.ask(page, SUM)
        expect(page.locator(".assistant .error p")).to_have_text("The connection to the server was lost.")
        expect(page.locator("#banner")).to_contain_text("No connection")
        page.proxy.open = True
        expect(page.locator("#banner")).to_be_hidden(timeout=PATIENCE)
        page.get_by_role("button", name="Try again").click()
        self.wait_for_answer(page, SUM_ANSWER)

    def test_a_stream_that_breaks_off_keeps_what_came(self):
        page = self.open(settings={"thinking": False})
        page.proxy.rate = TRICKLE
        self.ask(page, STORY)
        self.wait_until(page, "document.querySelector('.content')?.innerText.length > 10")
        page.proxy.open = False
        expect(page.locator(".assistant .error p")).to_have_text(re.compile("connection to the server was lost|before it was complete"))
        self.assertTrue(self.content(page))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
