"use strict";
// The settings: what is typed counts at once, if it is sound.

const THEMES = {auto: "System", light: "Light", dark: "Dark"};

function showTheme() {
  const {theme} = store.settings;
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
  const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  const button = byId("theme");
  button.replaceChildren(icon(dark ? "sun" : "moon"));
  button.title = dark ? "Light colours" : "Dark colours";
  button.setAttribute("aria-label", button.title);
  button.onclick = () => setTheme(dark ? "light" : "dark");
  for (const choice of byId("settings").querySelectorAll("input[name=theme]")) choice.checked = choice.value === theme;
}

function setTheme(theme) {
  store.settings.theme = theme;
  store.saveSettings();
  showTheme();
}

/** What is wrong with the text of a field; empty: nothing. */
function fieldFault(input) {
  if (input.name === "tools") return toolsFault(input.value);
  if (input.validity.badInput) return "This is no number.";
  if (input.value === "" || input.type !== "number") return "";
  const value = Number(input.value);
  if (input.min !== "" && value < Number(input.min)) return `At least ${input.min}.`;
  if (input.max !== "" && value > Number(input.max)) return `At most ${input.max}.`;
  if (input.step === "1" && !Number.isInteger(value)) return "A whole number.";
  return "";
}

function toolsFault(text) {
  if (!text.trim()) return "";
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    return `No JSON: ${error.message}`;
  }
  if (!Array.isArray(tools)) return "A list of tools is expected: [ ... ].";
  const wrong = tools.findIndex((tool) => tool?.type !== "function" || typeof tool.function?.name !== "string");
  return wrong === -1 ? "" : `Tool ${wrong + 1} must look like {"type": "function", "function": {"name": ...}}.`;
}

function fieldChanged(input) {
  const fault = fieldFault(input);
  const note = byId(`fault_${input.name}`);
  if (note) note.textContent = fault;
  input.setAttribute("aria-invalid", String(Boolean(fault)));
  if (fault) return;
  store.settings[input.name] = input.type === "checkbox" ? input.checked : input.value;
  store.saveSettings();
  if (input.name === "thinking") showThinking();
  if (input.name === "api_key") server.loadModel();
}

function settingFields() {
  return [...byId("settings").querySelectorAll("input[name], textarea[name]")].filter((input) => input.name !== "theme");
}

function showSettings() {
  for (const input of settingFields()) {
    const value = store.settings[input.name];
    if (input.type === "checkbox") input.checked = value;
    else input.value = value;
    input.setAttribute("aria-invalid", "false");
    const note = byId(`fault_${input.name}`);
    if (note) note.textContent = "";
  }
}

/** focus: the name of the field to begin with. */
function openSettings(focus) {
  showSettings();
  byId("settings").showModal();
  const field = focus && byId("settings").querySelector(`[name=${focus}]`);
  if (field) field.focus();
}

function startSettings() {
  const dialog = byId("settings");
  byId("theme_choices").append(...Object.entries(THEMES).map(([value, label]) => element("label", {},
    element("input", {type: "radio", name: "theme", value, onchange: () => setTheme(value)}), element("span", {}, label))));
  for (const input of settingFields()) input.addEventListener("input", () => fieldChanged(input));
  byId("open_settings").addEventListener("click", () => openSettings());
  byId("close_settings").addEventListener("click", () => dialog.close());
  byId("reset_settings").addEventListener("click", () => {
    const {theme, sidebar} = store.settings;
    store.settings = {...DEFAULTS, theme, sidebar};
    store.saveSettings();
    showSettings();
    showThinking();
    server.loadModel();
  });
  // A click beside the dialog closes it.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
  showTheme();
}
