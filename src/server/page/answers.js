"use strict";
// Answers as they arrive: one stream a conversation, which goes on when another conversation is shown.

const streams = new Map();  // conversation id: {controller, message, asked, firstToken}; times of performance.now()

// A page that is being left loses its streams first: that is no failure of the connection.
let leaving = false;
addEventListener("pagehide", () => (leaving = true));
addEventListener("pageshow", () => (leaving = false));
addEventListener("beforeunload", () => {
  leaving = true;
  setTimeout(() => (leaving = false), 3000);
});

/** Adds what one chunk of the stream says to its message. */
function addChunk(stream, chunk) {
  const message = stream.message;
  if (chunk.model) message.model = chunk.model;
  if (chunk.usage) message.usage = chunk.usage;
  if (chunk.timings) message.timings = chunk.timings;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const delta = choice.delta ?? {};
  const reasoning = delta.reasoning_content ?? delta.reasoning ?? "";
  const now = performance.now();
  if (reasoning || delta.content || delta.tool_calls) {
    stream.firstToken ??= now;
    message.chunks = (message.chunks ?? 0) + 1;
    message.streamMs = now - stream.firstToken;
  }
  if (reasoning) {
    message.reasoning += reasoning;
    message.reasoningMs = now - stream.asked;
  }
  if (delta.content) message.content += delta.content;
  for (const part of delta.tool_calls ?? []) {
    const call = message.toolCalls[part.index ?? 0] ??= {id: "", name: "", arguments: ""};
    if (part.id) call.id = part.id;
    if (part.function?.name) call.name += part.function.name;
    if (part.function?.arguments) call.arguments += part.function.arguments;
  }
  if (choice.finish_reason) message.finishReason = choice.finish_reason;
}

/** Appends an answer to a conversation and fills it from the server. */
async function answer(conversation) {
  const message = {id: newId(), role: "assistant", content: "", reasoning: "", toolCalls: [], state: "streaming"};
  const stream = {message, controller: new AbortController(), asked: performance.now()};
  const chunks = streamAnswer(conversation, stream.controller.signal);
  // The request is made now, of what came before the empty answer.
  let next = chunks.next();
  streams.set(conversation.id, stream);
  conversation.updated = Date.now();
  conversation.messages.push(message);
  store.save(conversation);
  conversationChanged(conversation);
  try {
    for (let step = await next; !step.done; step = await chunks.next()) {
      addChunk(stream, step.value);
      store.saveSoon(conversation);
      messageChanged(conversation, message);
    }
    message.state = "done";
  } catch (error) {
    message.state = stream.controller.signal.aborted ? "stopped" : leaving ? "interrupted" : "failed";
    if (message.state === "failed") message.error = {message: error.message, status: error.status};
  }
  // Half a call is none.
  message.toolCalls = message.state === "done" ? message.toolCalls.filter(Boolean) : [];
  announce({done: "The answer is complete.", stopped: "Stopped."}[message.state] ?? "");
  if (streams.get(conversation.id) === stream) streams.delete(conversation.id);
  store.save(conversation);
  conversationChanged(conversation, message);
}

function stop(conversation) {
  streams.get(conversation?.id)?.controller.abort();
}

/** Ends a conversation's stream and takes its messages from an index on out; offers to bring them back. */
function cutConversation(conversation, index, what) {
  stop(conversation);
  const removed = conversation.messages.splice(index);
  const later = removed.filter((message) => message.role === "user").length;
  if (later > 0 && what) {
    const before = [...conversation.messages, ...removed];
    toast(what, {label: "Undo", run: () => {
      stop(conversation);
      conversation.messages = before;
      store.save(conversation);
      conversationChanged(conversation);
    }});
  }
}

function sendMessage(conversation, content, images) {
  if (!conversation.messages.length) conversation.title = titleOf(content) || "A picture";
  conversation.messages.push({id: newId(), role: "user", content, ...(images.length && {images})});
  return answer(conversation);
}

function titleOf(text) {
  const line = text.trim().split("\n")[0];
  return line.length > 60 ? `${line.slice(0, 57).trimEnd()}…` : line;
}

/** Answers again what came before this answer. */
function regenerate(conversation, message) {
  cutConversation(conversation, conversation.messages.indexOf(message), "The messages after this answer were removed.");
  return answer(conversation);
}

function resend(conversation, message, content, images = message.images) {
  const index = conversation.messages.indexOf(message);
  cutConversation(conversation, index + 1, "The messages after the edited one were removed.");
  conversation.messages[index] = {...message, content, images};
  if (index === 0) conversation.title = titleOf(content) || conversation.title;
  return answer(conversation);
}

/** Sends the same without any picture: for a server that takes none. */
function resendWithoutPictures(conversation, message) {
  cutConversation(conversation, conversation.messages.indexOf(message), null);
  for (const earlier of conversation.messages) delete earlier.images;
  return answer(conversation);
}

/** answers: one text a call of the message. */
function answerTools(conversation, message, answers) {
  cutConversation(conversation, conversation.messages.indexOf(message) + 1, "The messages after this call were removed.");
  message.toolCalls.forEach((call, i) => conversation.messages.push(
    {id: newId(), role: "tool", toolCallId: call.id, name: call.name, content: answers[i]}));
  return answer(conversation);
}
