"use strict";
// The box for a message, with its pictures and buttons.

const MAX_IMAGE_BYTES = 16 * 2 ** 20;
let images = [];  // {url, name, size}, to go out with the next message

const isSendKey = (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229;

function focusPrompt() {
  if (!isTouch()) byId("prompt").focus();
}

function submitPrompt() {
  const prompt = byId("prompt");
  const text = prompt.value.trim();
  if (streams.has(current?.id) || (!text && !images.length)) return;
  const pictures = images.map((image) => image.url);
  prompt.value = "";
  images = [];
  promptChanged();
  showImages();
  if (!current) showConversation(store.create());
  announce("Sent.");
  sendMessage(current, text, pictures);
}

function promptChanged() {
  fitHeight(byId("prompt"));
  try {
    sessionStorage.setItem("sluice.draft", byId("prompt").value);
  } catch {
    // Then a reload loses what was being typed.
  }
  showSending();
}

/** The round button: sends, or stops what is being sent. */
function showSending() {
  const streaming = streams.has(current?.id);
  const button = byId("send");
  const label = streaming ? "Stop" : "Send";
  if (button.title !== label) {
    button.title = label;
    button.setAttribute("aria-label", label);
    button.replaceChildren(icon(streaming ? "stop" : "send"));
    button.classList.toggle("stop", streaming);
  }
  button.disabled = !streaming && !byId("prompt").value.trim() && !images.length;
}

function showImages() {
  byId("attachments").replaceChildren(...images.map((image) => element("div", {class: "chip"},
    element("img", {src: image.url, alt: ""}),
    element("span", {class: "name"}, image.name), element("span", {class: "size"}, formatBytes(image.size)),
    iconButton("close", `Remove ${image.name}`, () => {
      images = images.filter((other) => other !== image);
      showImages();
      focusPrompt();
    }))));
  byId("attachments").hidden = !images.length;
  showSending();
}

function readImage(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

async function addImages(files) {
  for (const file of files) {
    if (!file.type.startsWith("image/")) toast(`${file.name || "This file"} is no picture.`);
    else if (file.size > MAX_IMAGE_BYTES) toast(`${file.name} has ${formatBytes(file.size)}; at most ${formatBytes(MAX_IMAGE_BYTES)} can be sent.`);
    else {
      try {
        images.push({url: await readImage(file), name: file.name || "Picture", size: file.size});
      } catch (error) {
        toast(`${file.name} cannot be read: ${error.message}`);
      }
    }
  }
  showImages();
  focusPrompt();
}

function showThinking() {
  const button = byId("thinking");
  button.setAttribute("aria-pressed", String(store.settings.thinking));
  button.title = store.settings.thinking ? "The model thinks before it answers" : "The model answers at once";
}

function startComposer() {
  const prompt = byId("prompt");
  prompt.addEventListener("input", promptChanged);
  prompt.addEventListener("keydown", (event) => {
    if (!isSendKey(event)) return;
    event.preventDefault();
    submitPrompt();
  });
  byId("composer").addEventListener("click", (event) => {
    if (event.target === event.currentTarget) prompt.focus();
  });
  byId("send").addEventListener("click", () => {
    if (streams.has(current?.id)) stop(current);
    else submitPrompt();
    focusPrompt();
  });
  byId("thinking").addEventListener("click", () => {
    store.settings.thinking = !store.settings.thinking;
    store.saveSettings();
    showThinking();
  });
  byId("attach").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", () => {
    addImages([...byId("file").files]);
    byId("file").value = "";
  });
  prompt.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (!files.length) return;
    event.preventDefault();
    addImages(files);
  });
  startDropping();
  try {
    prompt.value = sessionStorage.getItem("sluice.draft") ?? "";
  } catch {
    // Nothing was kept.
  }
  promptChanged();
  showThinking();
}

function startDropping() {
  let depth = 0;  // dragenter and dragleave come for every element on the way
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  const show = (change) => {
    depth = change === 0 ? 0 : Math.max(0, depth + change);
    byId("drop").hidden = depth === 0;
  };
  document.addEventListener("dragenter", (event) => hasFiles(event) && show(1));
  document.addEventListener("dragleave", (event) => hasFiles(event) && show(-1));
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    show(0);
    if (!hasFiles(event)) return;
    event.preventDefault();
    addImages([...event.dataTransfer.files]);
  });
}
