"use strict";
// Puts the page together.

const SUGGESTIONS = [
  ["A story", "Please tell a story about a happy frog."],
  ["A sum", "Compute 120 plus 721."],
  ["A capital", "Oslo is the capital of which country?"],
  ["Some JSON", "Rosa, 42 years old, from Zagreb. Answer with a JSON object of name, age and city."],
];

function startWelcome() {
  byId("suggestions").append(...SUGGESTIONS.map(([title, text]) => element("button", {type: "button", onclick: () => {
    byId("prompt").value = text;
    submitPrompt();
  }}, element("strong", {}, title), text)));
}

/** Another tab changed a conversation or the settings. */
function storageChanged(event) {
  if (event.key === "sluice.settings") {
    store.settings = {...DEFAULTS, ...JSON.parse(event.newValue ?? "{}")};
    showTheme();
    showThinking();
    showSidebar();
  } else if (event.key?.startsWith(PREFIX)) {
    const id = event.key.slice(PREFIX.length);
    if (streams.has(id)) return;
    if (event.newValue === null) store.conversations.delete(id);
    else store.read(event.key);
    if (current?.id === id) showConversation(store.conversations.get(id) ?? null);
    else showList();
  }
}

function start() {
  store.load();
  startSettings();
  startSidebar();
  startWelcome();
  startScrolling();
  let id = null;
  try {
    id = sessionStorage.getItem("sluice.current");
  } catch {
    // Then this begins with a new conversation.
  }
  showConversation(store.conversations.get(id) ?? null);
  startComposer();
  server.listeners.push(showServer, showHead);
  showServer();
  server.watch();

  byId("export").addEventListener("click", () => {
    const name = current.title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
    download(`${name || "conversation"}.json`, exportConversation(current));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || byId("settings").open) return;
    if (document.body.classList.contains("drawer")) closeDrawer();
    else stop(current);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) store.saveAllPending();
    else server.watch();
  });
  addEventListener("pagehide", () => store.saveAllPending());
  addEventListener("online", () => server.watch());
  addEventListener("offline", () => server.watch());
  addEventListener("storage", storageChanged);
  focusPrompt();
}

start();
