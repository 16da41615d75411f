"use strict";
// How messages look. A view is made once a message and brought up to date in place.

/** Actions under a message. */
function actionRow(...children) {
  return element("div", {class: "actions"}, children);
}

class UserView {
  constructor(conversation, message) {
    this.conversation = conversation;
    this.message = message;
    this.root = element("article", {class: "message user", "aria-label": "You"});
    this.show();
  }

  show() {
    const {content, images = []} = this.message;
    const copy = iconButton("copy", "Copy", () => copyFrom(copy, content));
    this.root.replaceChildren(
      element("div", {class: "bubble"},
        images.length > 0 && element("div", {class: "pictures"}, images.map((url) => element("img", {src: url, alt: "Picture sent"}))),
        content && element("div", {class: "text"}, content)),
      actionRow(copy, iconButton("edit", "Edit and send again", () => this.edit())));
  }

  edit() {
    const box = element("textarea", {"aria-label": "Edit the message", rows: "1"});
    box.value = this.message.content;
    const cancel = () => {
      this.show();
      focusPrompt();
    };
    const send = () => {
      if (box.value.trim() || this.message.images) resend(this.conversation, this.message, box.value.trim());
    };
    box.addEventListener("input", () => fitHeight(box));
    box.addEventListener("keydown", (event) => {
      if (isSendKey(event)) event.preventDefault(), send();
      else if (event.key === "Escape") event.preventDefault(), event.stopPropagation(), cancel();
    });
    this.root.replaceChildren(element("div", {class: "editor"}, box, element("div", {class: "buttons"},
      element("button", {type: "button", class: "plain", onclick: cancel}, "Cancel"),
      element("button", {type: "button", class: "primary", onclick: send}, "Send"))));
    fitHeight(box);
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
  }

  update() {}
}

class AnswerView {
  constructor(conversation, message) {
    this.conversation = conversation;
    this.message = message;
    this.thinkingTitle = element("span", {});
    const reasoning = element("div", {class: "markdown"});
    this.thinking = element("details", {class: "thinking", hidden: true},
      element("summary", {}, icon("thought"), this.thinkingTitle, icon("chevron")), reasoning);
    this.reasoning = new MarkdownView(reasoning);
    this.waiting = element("div", {class: "waiting", hidden: true}, element("i"), element("i"), element("i"),
      element("span", {class: "unseen"}, "Waiting for the answer"));
    const content = element("div", {class: "markdown content"});
    this.content = new MarkdownView(content);
    this.calls = element("div", {class: "calls"});
    this.ending = element("div", {});
    this.root = element("article", {class: "message assistant", "aria-label": "Answer"}, this.thinking, this.waiting, content,
      this.calls, this.ending);
    // What the reader opened or closed stays so.
    this.thinking.querySelector("summary").addEventListener("click", () => (this.readerChose = true));
    this.update();
  }

  update() {
    const {content, reasoning, state} = this.message;
    const streaming = state === "streaming";
    this.root.setAttribute("aria-busy", String(streaming));
    this.updateThinking(streaming && !content && !this.message.toolCalls.length);
    this.waiting.hidden = !streaming || Boolean(content || reasoning || this.message.toolCalls.length);
    this.content.update(content);
    if (streaming) {
      this.calls.replaceChildren(...this.message.toolCalls.filter(Boolean).map((call) => callCard(call)));
      this.ending.replaceChildren();
    } else {
      this.showCalls();
      this.showEnding();
    }
  }

  updateThinking(active) {
    const {reasoning, reasoningMs} = this.message;
    this.thinking.hidden = !reasoning.trim();
    this.reasoning.update(reasoning.trimStart());
    this.thinking.classList.toggle("active", active);
    const title = active ? `Thinking, ${formatDuration(reasoningMs ?? 0)}` : `Thought for ${formatDuration(reasoningMs ?? 0)}`;
    if (this.thinkingTitle.textContent !== title) this.thinkingTitle.textContent = title;
    if (!this.readerChose && this.thinking.open !== active) this.thinking.open = active;
  }

  /** The calls with their answers, or with boxes to type them. */
  showCalls() {
    const {toolCalls} = this.message;
    if (!toolCalls.length) return this.calls.replaceChildren();
    const {messages} = this.conversation;
    const after = messages.slice(messages.indexOf(this.message) + 1);
    const results = toolCalls.map((call, i) => (after[i]?.role === "tool" ? after[i].content : null));
    if (results[0] !== null || after.length) return this.calls.replaceChildren(...toolCalls.map((call, i) => callCard(call, results[i])));
    const boxes = toolCalls.map((call) => {
      const box = element("textarea", {rows: "1", "aria-label": `Answer of the tool ${call.name}`, placeholder: "What the tool answers",
        oninput: () => fitHeight(box)});
      return box;
    });
    const send = () => {
      const empty = boxes.find((box) => !box.value.trim());
      if (empty) empty.focus();
      else answerTools(this.conversation, this.message, boxes.map((box) => box.value.trim()));
    };
    boxes.forEach((box) => box.addEventListener("keydown", (event) => {
      if (isSendKey(event)) event.preventDefault(), send();
    }));
    this.calls.replaceChildren(...toolCalls.map((call, i) => callCard(call, null, boxes[i])),
      element("div", {class: "buttons"}, element("button", {type: "button", class: "primary", onclick: send},
        toolCalls.length > 1 ? `Send ${toolCalls.length} answers` : "Send the answer")));
  }

  showEnding() {
    const {content, reasoning, toolCalls, state, error, finishReason} = this.message;
    const note = state === "stopped" ? "Stopped." : state === "interrupted" ? "The page was reloaded before this answer was complete." :
      finishReason === "length" ? "The limit of tokens was reached." :
        state === "done" && !content && !toolCalls.length ? "The answer is empty." : null;
    const copy = iconButton("copy", "Copy the answer", () => copyFrom(copy, content || callsText(toolCalls) || reasoning));
    this.ending.replaceChildren(...[
      error && this.errorCard(error),
      note && element("p", {class: "note"}, note),
      state !== "failed" && actionRow(copy, iconButton("again", "Answer again", () => regenerate(this.conversation, this.message)),
        element("span", {class: "figures"}, figures(this.message))),
    ].filter(Boolean));
  }

  errorCard(error) {
    const {messages} = this.conversation;
    const pictures = messages.slice(0, messages.indexOf(this.message)).some((message) => message.images?.length);
    const button = (label, onclick, kind = "plain") => element("button", {type: "button", class: kind, onclick}, label);
    return element("div", {class: "error", role: "alert"}, icon("warning"), element("div", {},
      element("p", {}, error.message),
      element("div", {class: "buttons"},
        button("Try again", () => regenerate(this.conversation, this.message), "primary"),
        pictures && error.status === 400 && button("Send without pictures", () => resendWithoutPictures(this.conversation, this.message)),
        (error.status === 401 || error.status === 403) && button("Enter the API key", () => openSettings("api_key")))));
  }
}

const callsText = (calls) => calls.map((call) => `${call.name} ${prettyJson(call.arguments)}`).join("\n");

function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A tool call; with its result, or a box for it. */
function callCard(call, result = null, box = null) {
  return element("section", {class: "call", "aria-label": `Call of the tool ${call.name}`},
    element("header", {}, icon("tool"), element("code", {}, call.name)),
    element("pre", {tabindex: "0"}, element("code", {}, highlight(prettyJson(call.arguments), "json"))),
    result !== null && element("div", {class: "result"}, element("span", {}, "Answer"), element("pre", {tabindex: "0"}, prettyJson(result))),
    box && element("div", {class: "result"}, box));
}

/** "95 tokens · 182 tokens/s · first after 45 ms · prompt of 19 tokens, 12 cached". Without the server's own figures: what was seen. */
function figures({usage, timings, chunks, streamMs}) {
  const parts = [];
  if (usage) parts.push(`${formatNumber(usage.completion_tokens)} tokens`);
  else if (chunks) parts.push(`about ${formatNumber(chunks)} tokens`);
  const count = usage?.completion_tokens ?? chunks ?? 0;
  const speed = timings?.predicted_per_second ?? (count > 1 && streamMs > 0 ? ((count - 1) * 1000) / streamMs : 0);
  if (speed > 0) parts.push(`${speed < 10 ? speed.toFixed(1) : formatNumber(speed)} tokens/s`);
  if (timings?.prompt_ms > 0) parts.push(`first after ${formatDuration(timings.prompt_ms)}`);
  if (usage) {
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    parts.push(`prompt ${formatNumber(usage.prompt_tokens)}${cached ? `, ${formatNumber(cached)} cached` : ""}`);
  }
  return parts.join(" · ");
}
