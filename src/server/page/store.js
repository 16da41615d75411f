"use strict";
// Conversations and settings, kept in the browser: one entry of localStorage a conversation, so that tabs do not overwrite
// each other's.
//
// conversation: {id, title, created, updated, messages}
// message: {id, role: "user" | "assistant" | "tool", content, ...}
//   user: images [data URL]
//   assistant: reasoning, reasoningMs, toolCalls [{id, name, arguments}], state, finishReason, error {message, status}, usage,
//     timings, model. state: "streaming", "done", "stopped", "interrupted" (by a reload) or "failed".
//   tool: toolCallId, name

const PREFIX = "sluice.conversation.";
const DEFAULTS = {
  system: "", temperature: "", top_p: "", top_k: "", min_p: "", max_tokens: "", seed: "",
  thinking: true, api_key: "", tools: "", theme: "auto", sidebar: true,
};

const store = {
  conversations: new Map(),
  settings: {...DEFAULTS},
  pending: new Map(),  // conversation id: timer of a save to come

  load() {
    try {
      this.settings = {...DEFAULTS, ...JSON.parse(localStorage.getItem("sluice.settings") ?? "{}")};
      for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) this.read(key, true);
    } catch (error) {
      toast(`This browser does not let the page keep anything: ${error.message}`);
    }
  },

  /** Reads one conversation; what cannot be read is left out. A stream does not outlive its page. */
  read(key, ofEarlierPage) {
    try {
      const conversation = JSON.parse(localStorage.getItem(key));
      if (!conversation || !Array.isArray(conversation.messages)) return;
      for (const message of conversation.messages)
        if (ofEarlierPage && message.state === "streaming") Object.assign(message, {state: "interrupted", toolCalls: []});
      this.conversations.set(conversation.id, conversation);
    } catch {
      // Not ours, or damaged.
    }
  },

  /** Newest first. */
  list() {
    return [...this.conversations.values()].sort((a, b) => b.updated - a.updated);
  },

  create() {
    const conversation = {id: newId(), title: "New conversation", created: Date.now(), updated: Date.now(), messages: []};
    this.conversations.set(conversation.id, conversation);
    return conversation;
  },

  /** Soon: many changes of a stream become one write. */
  saveSoon(conversation) {
    if (!this.pending.has(conversation.id)) this.pending.set(conversation.id, setTimeout(() => this.save(conversation), 400));
  },

  save(conversation) {
    clearTimeout(this.pending.get(conversation.id));
    this.pending.delete(conversation.id);
    if (!this.conversations.has(conversation.id)) return;
    if (write(PREFIX + conversation.id, JSON.stringify(conversation))) return;
    const withoutImages = JSON.stringify(conversation, (key, value) => (key === "images" ? undefined : value));
    toast(write(PREFIX + conversation.id, withoutImages) ?
      "The pictures are too large for this browser's storage; a reload will lose them." :
      "This browser's storage is full; delete old conversations, or a reload will lose this one.");
  },

  saveAllPending() {
    for (const id of [...this.pending.keys()]) if (this.conversations.has(id)) this.save(this.conversations.get(id));
  },

  remove(conversation) {
    clearTimeout(this.pending.get(conversation.id));
    this.pending.delete(conversation.id);
    this.conversations.delete(conversation.id);
    localStorage.removeItem(PREFIX + conversation.id);
  },

  /** Puts a removed or earlier version back. */
  restore(conversation) {
    this.conversations.set(conversation.id, conversation);
    this.save(conversation);
  },

  saveSettings() {
    write("sluice.settings", JSON.stringify(this.settings));
  },
};

/** False if the browser has no room. */
function write(key, text) {
  try {
    localStorage.setItem(key, text);
    return true;
  } catch {
    return false;
  }
}

/** What goes out as a file: messages in the interface's own form, and how they came about. The API key stays here. */
function exportConversation(conversation) {
  const {api_key, theme, sidebar, ...settings} = store.settings;
  return JSON.stringify({
    title: conversation.title,
    created: new Date(conversation.created).toISOString(),
    model: server.model,
    settings,
    messages: requestMessages(conversation),
    answers: conversation.messages.filter((message) => message.role === "assistant").map(
      ({model, state, finishReason, usage, timings, error}) => ({model, state, finish_reason: finishReason, usage, timings, error})),
  }, null, 2);
}
