"use strict";
// The conversation that is shown: its messages, the scrolling, the head line.

let current = null;       // the conversation shown; null: a new one, which exists once something is sent
const views = new Map();  // message id: view
let frame = 0;            // the animation frame asked for
const changed = new Set();  // messages to bring up to date in it
let following = true;     // the reader is at the end, and stays there

function showConversation(conversation) {
  current = conversation;
  views.clear();
  byId("messages").replaceChildren();
  try {
    sessionStorage.setItem("sluice.current", conversation?.id ?? "");
  } catch {
    // Then a reload begins with a new conversation.
  }
  following = true;
  showMessages();
  showHead();
  showList();
  scrollToEnd();
}

/** Makes the views of messages that have none, and takes out those whose message is gone. */
function showMessages() {
  const messages = current?.messages ?? [];
  const wanted = new Set(messages.map((message) => message.id));
  for (const [id, view] of views) {
    if (wanted.has(id) && messages.includes(view.message)) continue;
    view.root.remove();
    views.delete(id);
  }
  for (const message of messages) {
    if (message.role === "tool" || views.has(message.id)) continue;
    const view = message.role === "user" ? new UserView(current, message) : new AnswerView(current, message);
    views.set(message.id, view);
    const next = messages.slice(messages.indexOf(message) + 1).find((later) => views.has(later.id));
    byId("messages").insertBefore(view.root, next ? views.get(next.id).root : null);
  }
  byId("welcome").hidden = messages.length > 0;
}

/** Messages came, went or ended. */
function conversationChanged(conversation, message) {
  showList();
  if (conversation !== current) return;
  showMessages();
  if (message) views.get(message.id)?.update();
  // The answer of a tool shows in the card of its call.
  else for (const view of views.values()) if (view.message.toolCalls?.length && view.message.state !== "streaming") view.update();
  if (!message) following = true;
  showHead();
  showSending();
  scrollIfFollowing();
}

/** A message grew: shown with the next frame. */
function messageChanged(conversation, message) {
  if (conversation !== current) return;
  changed.add(message);
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    for (const one of changed) views.get(one.id)?.update();
    changed.clear();
    scrollIfFollowing();
  });
}

function showHead() {
  byId("title").textContent = current?.title ?? "New conversation";
  document.title = current ? `${current.title} - Sluice` : "Sluice";
  const usage = current?.messages.findLast((message) => message.usage)?.usage;
  const limit = server.maxModelLength;
  byId("model").textContent = server.model || "No model";
  byId("context").textContent = usage && limit ? `${formatNumber(usage.prompt_tokens + usage.completion_tokens)} of ${formatNumber(limit)} tokens` :
    limit ? `${formatNumber(limit)} tokens of context` : "";
  byId("export").disabled = !current?.messages.length;
}

function scrollIfFollowing() {
  if (following) scrollToEnd();
  showScrollButton();
}

function scrollToEnd() {
  const area = byId("scroll");
  area.scrollTop = area.scrollHeight;
}

function atEnd() {
  const area = byId("scroll");
  return area.scrollHeight - area.scrollTop - area.clientHeight < 5;
}

function showScrollButton() {
  byId("to_end").hidden = following || atEnd();
}

function startScrolling() {
  const area = byId("scroll");
  let top = 0;
  area.addEventListener("scroll", () => {
    // Scrolling up lets go, growing text does not; back at the end it takes hold again.
    if (area.scrollTop < top - 1 && !atEnd()) following = false;
    else if (atEnd()) following = true;
    top = area.scrollTop;
    showScrollButton();
  }, {passive: true});
  byId("to_end").addEventListener("click", () => {
    following = true;
    area.scrollTo({top: area.scrollHeight, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
  });
  // Pictures, fonts and a growing message box change heights without a scroll.
  const observer = new ResizeObserver(scrollIfFollowing);
  observer.observe(area);
  observer.observe(byId("messages"));
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) scrollIfFollowing();
  });
}
