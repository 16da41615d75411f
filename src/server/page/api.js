"use strict";
// The server: its requests, its event stream, whether it is there.

class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const server = {
  model: "",
  maxModelLength: 0,
  state: "unknown",  // "ready", "waiting" (it answers, but is not ready), "lost"
  detail: "",
  listeners: [],
  timer: 0,

  headers() {
    const key = store.settings.api_key.trim();
    return key ? {Authorization: `Bearer ${key}`} : {};
  },

  setState(state, detail = "") {
    const changed = state !== this.state || detail !== this.detail;
    const returned = state === "ready" && this.state !== "ready";
    [this.state, this.detail] = [state, detail];
    if (returned) this.loadModel();
    if (changed) this.listeners.forEach((listener) => listener());
  },

  /** Asks for its health, now and from then on: seldom while all is well, often while it is away. */
  async watch() {
    clearTimeout(this.timer);
    try {
      const response = await fetch("health", {cache: "no-store", signal: AbortSignal.timeout(5000)});
      if (response.ok) this.setState("ready");
      else this.setState("waiting", errorMessage(await response.text(), response.status));
    } catch {
      this.setState("lost");
    }
    clearTimeout(this.timer);
    if (!document.hidden) this.timer = setTimeout(() => this.watch(), this.state === "ready" ? 10_000 : 2000);
  },

  async loadModel() {
    try {
      const response = await fetch("v1/models", {headers: this.headers(), cache: "no-store"});
      const model = response.ok && (await response.json()).data?.[0];
      this.model = model ? model.id : "";
      this.maxModelLength = (model && model.max_model_len) || 0;
    } catch {
      // watch() notices that the server is gone.
    }
    this.listeners.forEach((listener) => listener());
  },
};

/** The words of an error's body. */
function errorMessage(body, status) {
  try {
    const {error, message, detail} = JSON.parse(body);
    const text = (typeof error === "string" ? error : error?.message) ?? message ?? detail;
    if (typeof text === "string" && text) return text;
  } catch {
    // No JSON: a gateway's own page, perhaps.
  }
  return `The server answered with status ${status}.`;
}

/** Messages as the interface takes them. Answers that never began are left out. */
function requestMessages(conversation) {
  const messages = [];
  if (store.settings.system.trim()) messages.push({role: "system", content: store.settings.system});
  for (const message of conversation.messages) {
    if (message.role === "user") {
      const images = (message.images ?? []).map((url) => ({type: "image_url", image_url: {url}}));
      messages.push({role: "user", content: images.length ? [...images, {type: "text", text: message.content}] : message.content});
    } else if (message.role === "tool") {
      messages.push({role: "tool", tool_call_id: message.toolCallId, content: message.content});
    } else if (message.content || message.toolCalls?.length) {
      const {content, reasoning, toolCalls} = message;
      messages.push({role: "assistant", content, ...(reasoning && {reasoning_content: reasoning}), ...(toolCalls?.length && {
        tool_calls: toolCalls.map((call) => ({id: call.id, type: "function", function: {name: call.name, arguments: call.arguments}}))})});
    }
  }
  return messages;
}

function requestBody(conversation) {
  const {thinking, tools} = store.settings;
  const body = {messages: requestMessages(conversation), stream: true, stream_options: {include_usage: true},
    chat_template_kwargs: {enable_thinking: thinking}};
  if (server.model) body.model = server.model;
  for (const name of ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"])
    if (store.settings[name] !== "") body[name] = Number(store.settings[name]);
  if (tools.trim()) body.tools = JSON.parse(tools);
  return body;
}

/** The data of each event of a stream, without the "[DONE]" that ends it; throws if the stream ends before that. */
async function* serverEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) throw new ServerError("The server ended the answer before it was complete.");
      text += value;
      const lines = text.split("\n");
      text = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        yield JSON.parse(data);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Asks for the next answer of a conversation; yields the chunks of the stream. */
async function* streamAnswer(conversation, signal) {
  const body = JSON.stringify(requestBody(conversation));
  const headers = {"Content-Type": "application/json", ...server.headers()};
  let response;
  try {
    response = await fetch("v1/chat/completions", {method: "POST", headers, body, signal});
  } catch (error) {
    throw signal.aborted ? error : connectionError();
  }
  if (!response.ok) throw new ServerError(errorMessage(await response.text(), response.status), response.status);
  try {
    for await (const chunk of serverEvents(response)) {
      if (chunk.error) throw new ServerError(errorMessage(JSON.stringify(chunk), chunk.error.code), chunk.error.code);
      yield chunk;
    }
  } catch (error) {
    throw signal.aborted || error instanceof ServerError ? error : connectionError();
  }
}

function connectionError() {
  server.watch();
  return new ServerError("The connection to the server was lost.");
}
