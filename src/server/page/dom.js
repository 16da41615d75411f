"use strict";
// Helpers on the document. Text becomes text nodes: nothing on this page parses markup.

const byId = (id) => document.getElementById(id);

/** element("button", {class: "quiet", onclick: run, disabled: false}, "Run", node, [nodes], null) */
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

/** One of the <symbol>s of index.html. */
function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

function iconButton(name, label, onclick, extra = {}) {
  return element("button", {type: "button", class: "icon-button", title: label, "aria-label": label, onclick, ...extra}, icon(name));
}

const newId = () => Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
const isTouch = () => matchMedia("(pointer: coarse)").matches;
const isNarrow = () => matchMedia("(max-width: 52rem)").matches;
const formatNumber = (number) => Math.round(number).toLocaleString("en");
const formatBytes = (bytes) => (bytes < 2 ** 20 ? `${Math.max(1, Math.round(bytes / 1024))} KB` : `${(bytes / 2 ** 20).toFixed(1)} MB`);

function formatDuration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}

/** Works without the clipboard interface too, which pages of plain http do not get. */
async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused by the browser: the older way may still be allowed.
    }
  }
  const active = document.activeElement;
  const box = element("textarea", {class: "unseen", "aria-hidden": "true", tabindex: "-1"});
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  active?.focus({preventScroll: true});
  return done;
}

/** Shows on a button that its text was copied. */
async function copyFrom(button, text) {
  const done = await copyText(text);
  const label = button.getAttribute("aria-label");
  button.replaceChildren(icon(done ? "check" : "close"));
  button.setAttribute("aria-label", done ? "Copied" : "Could not be copied");
  setTimeout(() => {
    button.replaceChildren(icon("copy"));
    button.setAttribute("aria-label", label);
  }, 1500);
}

/** A short message at the bottom; action: {label, run}. */
function toast(text, action) {
  const close = () => note.remove();
  const note = element("div", {class: "toast"}, element("span", {}, text),
    action && element("button", {type: "button", class: "link", onclick: () => { close(); action.run(); }}, action.label));
  byId("toasts").replaceChildren(note);
  setTimeout(close, action ? 8000 : 4000);
}

/** What a screen reader says now. */
function announce(text) {
  byId("announcer").textContent = text;
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  element("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A text box that is as high as its text, up to what its style allows. */
function fitHeight(box) {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`;
}
