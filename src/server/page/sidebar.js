"use strict";
// The list of conversations, and the state of the server below it.

/** "Today", "Yesterday", "This week" or "Earlier". */
function dayOf(time) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.ceil((midnight - time) / 86_400_000);
  return days <= 0 ? "Today" : days === 1 ? "Yesterday" : days < 7 ? "This week" : "Earlier";
}

function showList() {
  const groups = [];
  for (const conversation of store.list()) {
    const day = dayOf(conversation.updated);
    if (groups.at(-1)?.day !== day) groups.push({day, items: []});
    groups.at(-1).items.push(listEntry(conversation));
  }
  byId("conversations").replaceChildren(...groups.flatMap(({day, items}) => [
    element("h2", {}, day), element("ul", {}, items)]));
}

function listEntry(conversation) {
  const shown = conversation === current;
  const open = element("button", {type: "button", class: "open", "aria-current": shown && "page", title: conversation.title, onclick: () => {
    showConversation(conversation);
    closeDrawer();
    focusPrompt();
  }}, element("span", {}, conversation.title), streams.has(conversation.id) && element("i", {class: "running", title: "Being answered"}));
  return element("li", {class: shown && "shown"}, open,
    iconButton("edit", `Rename ${conversation.title}`, (event) => rename(conversation, event.currentTarget.parentElement)),
    iconButton("delete", `Delete ${conversation.title}`, () => remove(conversation)));
}

function rename(conversation, entry) {
  const box = element("input", {type: "text", "aria-label": "Name of the conversation", maxlength: "100"});
  box.value = conversation.title;
  let over = false;
  const finish = (keep) => {
    if (over) return;
    over = true;
    if (keep && box.value.trim()) conversation.title = box.value.trim();
    store.save(conversation);
    showList();
    showHead();
  };
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") finish(true);
    else if (event.key === "Escape") event.stopPropagation(), finish(false);
  });
  box.addEventListener("blur", () => finish(true));
  entry.replaceChildren(box);
  box.focus();
  box.select();
}

function remove(conversation) {
  stop(conversation);
  store.remove(conversation);
  if (conversation === current) showConversation(null);
  else showList();
  toast("The conversation was deleted.", {label: "Undo", run: () => {
    store.restore(conversation);
    showConversation(conversation);
  }});
}

function newConversation() {
  showConversation(null);
  closeDrawer();
  focusPrompt();
}

/** On narrow screens the list lies over the conversation. */
function openDrawer() {
  document.body.classList.add("drawer");
  byId("sidebar").inert = false;
  byId("close_sidebar").focus();
}

function closeDrawer() {
  document.body.classList.remove("drawer");
  showSidebar();
}

function showSidebar() {
  const {sidebar} = store.settings;
  document.body.classList.toggle("wide", !sidebar);
  const open = isNarrow() ? document.body.classList.contains("drawer") : sidebar;
  byId("sidebar").inert = !open;
  byId("open_sidebar").setAttribute("aria-expanded", String(open));
}

function toggleSidebar() {
  if (isNarrow()) return document.body.classList.contains("drawer") ? closeDrawer() : openDrawer();
  store.settings.sidebar = !store.settings.sidebar;
  store.saveSettings();
  showSidebar();
}

function showServer() {
  const words = {unknown: "Connecting…", ready: "Connected", waiting: "Not ready", lost: "No connection"}[server.state];
  byId("server").className = server.state;
  byId("server").querySelector("span").textContent = words;
  const banner = byId("banner");
  banner.hidden = server.state === "ready" || server.state === "unknown";
  const text = server.state === "lost" ? "No connection to the server. Trying again…" : `The server is not ready: ${server.detail}`;
  if (!banner.hidden && banner.textContent !== text) banner.textContent = text;
  if (!banner.hidden) return;
  banner.textContent = "";
}

function startSidebar() {
  byId("new_conversation").addEventListener("click", newConversation);
  byId("new_short").addEventListener("click", newConversation);
  byId("open_sidebar").addEventListener("click", toggleSidebar);
  byId("close_sidebar").addEventListener("click", toggleSidebar);
  byId("shade").addEventListener("click", closeDrawer);
  addEventListener("resize", showSidebar);
  showSidebar();
}
