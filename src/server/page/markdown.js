"use strict";
// Markdown to DOM nodes: headings, lists, quotes, tables, code, emphasis, links. HTML in the text is shown, never parsed.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const TABLE_RULE = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;
const MAX_NESTING = 12;

const isBlank = (line) => /^\s*$/.test(line);
const isTable = (lines, i) => lines[i].includes("|") && i + 1 < lines.length && lines[i + 1].includes("|") && TABLE_RULE.test(lines[i + 1]);
const startsBlock = (lines, i) => FENCE.test(lines[i]) || HEADING.test(lines[i]) || RULE.test(lines[i]) || QUOTE.test(lines[i]) ||
  ITEM.test(lines[i]) || isTable(lines, i);

/** The block that begins at line i: where it ends, and how to build it. */
function nextBlock(lines, i, depth) {
  const line = lines[i];
  const fence = line.match(FENCE);
  if (fence) return codeBlock(lines, i, fence);
  const heading = line.match(HEADING);
  if (heading) return {end: i + 1, build: () => element(`h${heading[1].length}`, {}, inline(heading[2]))};
  if (RULE.test(line)) return {end: i + 1, build: () => element("hr")};
  if (depth < MAX_NESTING && QUOTE.test(line)) return quoteBlock(lines, i, depth);
  if (depth < MAX_NESTING && ITEM.test(line)) return listBlock(lines, i, depth);
  if (isTable(lines, i)) return tableBlock(lines, i);
  let end = i + 1;
  while (end < lines.length && !isBlank(lines[end]) && (depth >= MAX_NESTING || !startsBlock(lines, end))) end++;
  return {end, build: () => element("p", {}, inline(lines.slice(i, end).map((text) => text.trim()).join("\n")))};
}

function codeBlock(lines, i, [, mark, language]) {
  const closing = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
  let end = i + 1;
  while (end < lines.length && !closing.test(lines[end])) end++;
  const text = lines.slice(i + 1, end).join("\n");
  const name = language.trim().split(/\s/)[0];
  return {end: Math.min(end + 1, lines.length), build: () => codeFigure(text, name)};
}

function codeFigure(text, language) {
  const copy = iconButton("copy", "Copy the code", () => copyFrom(copy, text));
  return element("figure", {class: "code"}, element("figcaption", {}, element("span", {}, language || "text"), copy),
    element("pre", {tabindex: "0"}, element("code", {}, highlight(text, language))));
}

function quoteBlock(lines, i, depth) {
  let end = i + 1;
  while (end < lines.length && QUOTE.test(lines[end])) end++;
  const inside = lines.slice(i, end).map((text) => text.replace(QUOTE, ""));
  return {end, build: () => element("blockquote", {}, blocks(inside, depth + 1))};
}

function listBlock(lines, i, depth) {
  const ordered = /\d/.test(lines[i].match(ITEM)[2]);
  const items = [];
  let loose = false, end = i, indent = 0;
  const base = lines[i].match(ITEM)[1].length;
  for (; end < lines.length; end++) {
    const line = lines[end];
    const spaces = line.match(/^ */)[0].length;
    if (isBlank(line)) {
      const next = lines.slice(end + 1, end + 3).find((text) => !isBlank(text));
      const goesOn = next !== undefined && (next.match(/^ */)[0].length >= indent || ITEM.test(next));
      if (!goesOn) break;
      items.at(-1).push("");
      continue;
    }
    const item = line.match(ITEM);
    if (item && spaces < Math.max(indent, base + 2) && !(RULE.test(line) && spaces <= base)) {
      if (/\d/.test(item[2]) !== ordered) break;
      if (items.length && items.at(-1).at(-1) === "") loose = true;
      indent = item[0].length - Math.max(0, item[3].length - 4);
      items.push([line.slice(indent)]);
    } else if (spaces >= indent) {
      items.at(-1).push(line.slice(indent));
    } else if (items.at(-1).at(-1) === "" || startsBlock(lines, end)) {
      break;
    } else {
      items.at(-1).push(line.trim());
    }
  }
  const start = ordered && parseInt(lines[i].match(ITEM)[2], 10);
  return {end, build: () => element(ordered ? "ol" : "ul", {start: ordered && start !== 1 && String(start)},
    items.map((item) => listItem(item, loose, depth)))};
}

function listItem(lines, loose, depth) {
  const task = lines[0].match(/^\[([ xX])\] /);
  if (task) lines = [lines[0].slice(4), ...lines.slice(1)];
  let content = blocks(lines, depth + 1);
  if (!loose) content = content.flatMap((node) => (node.tagName === "P" ? [...node.childNodes] : [node]));
  const box = task && element("input", {type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": "Task"});
  return element("li", {class: task && "task"}, box, content);
}

function tableCells(line) {
  const cells = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/);
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function tableBlock(lines, i) {
  let end = i + 2;
  while (end < lines.length && lines[end].includes("|") && !isBlank(lines[end])) end++;
  const sides = tableCells(lines[i + 1]).map((cell) =>
    cell.startsWith(":") && cell.endsWith(":") ? "middle" : cell.endsWith(":") ? "right" : undefined);
  const row = (line, tag) => element("tr", {}, tableCells(line).slice(0, sides.length).map((cell, column) =>
    element(tag, {class: sides[column], scope: tag === "th" && "col"}, inline(cell))));
  return {end, build: () => element("div", {class: "table", tabindex: "0"}, element("table", {},
    element("thead", {}, row(lines[i], "th")), element("tbody", {}, lines.slice(i + 2, end).map((line) => row(line, "td")))))};
}

/** Nodes of all blocks. */
function blocks(lines, depth) {
  const nodes = [];
  for (let i = 0; i < lines.length;) {
    if (isBlank(lines[i])) {
      i++;
      continue;
    }
    const block = nextBlock(lines, i, depth);
    nodes.push(block.build());
    i = block.end;
  }
  return nodes;
}

const ESCAPE = /\\([!-/:-@[-`{-~])/y;
const LINK = /!?\[((?:[^[\]\\]|\\.|\[[^[\]]{0,200}\]){0,500})\]\(\s*<?((?:[^\s<>()]|\([^\s<>()]{0,500}\)){0,2000})>?(?:\s+["'][^"'\n]{0,300}["'])?\s*\)/y;
const BARE_LINK = /<?(https?:\/\/[^\s<>]{1,2000})>?/y;
const EMPHASIS = [["**", "strong"], ["__", "strong"], ["~~", "s"], ["*", "em"], ["_", "em"]];

const linkTo = (address, content) => element("a", {href: address, target: "_blank", rel: "noopener noreferrer nofollow"}, content);

/** Nodes of running text. */
function inline(text, depth = 0) {
  const nodes = [];
  const hopeless = new Set();  // marks without a partner from here on: not looked for again
  let plain = "", i = 0;
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
  };
  const take = (node, end) => {
    flush();
    nodes.push(node);
    i = end;
  };
  const match = (pattern) => {
    pattern.lastIndex = i;
    return pattern.exec(text);
  };
  while (i < text.length) {
    const sign = text[i];
    let found;
    if (sign === "\n") take(element("br"), i + 1);
    else if (sign === "\\" && (found = match(ESCAPE))) plain += found[1], i += 2;
    else if (sign === "`" && (found = codeSpan(text, i, hopeless))) take(element("code", {}, found.text), found.end);
    else if ((sign === "[" || (sign === "!" && text[i + 1] === "[")) && (found = match(LINK)) && /^https?:\/\//i.test(found[2]))
      take(linkTo(found[2], depth < MAX_NESTING ? inline(found[1], depth + 1) : found[1]), i + found[0].length);
    else if (sign === "<" && (found = text.slice(i, i + 6).match(/^<br ?\/?>/i))) take(element("br"), i + found[0].length);
    else if ((sign === "<" || (sign === "h" && !/\w/.test(text[i - 1] ?? " "))) && (found = match(BARE_LINK))) {
      const address = found[1].replace(/[.,;:!?'"*_~)\]]+$/, (end) => (end.startsWith(")") && found[1].includes("(") ? ")" : ""));
      take(linkTo(address, address), i + (sign === "<" ? found[0].length : address.length));
    } else if ("*_~".includes(sign) && depth < MAX_NESTING && (found = emphasis(text, i, hopeless)))
      take(element(found.tag, {}, inline(found.text, depth + 1)), found.end);
    else if (sign === "`" || sign === "*" || sign === "_") {
      const run = text.slice(i).match(sign === "`" ? /^`+/ : sign === "*" ? /^\*+/ : /^_+/)[0];
      plain += run;
      i += run.length;
    } else plain += sign, i++;
  }
  flush();
  return nodes;
}

function codeSpan(text, start, hopeless) {
  let width = 1;
  while (text[start + width] === "`") width++;
  const mark = "`".repeat(width);
  if (hopeless.has(mark)) return null;
  for (let end = text.indexOf(mark, start + width); end !== -1;) {
    let after = end + width;
    while (text[after] === "`") after++;
    if (after === end + width) return {text: text.slice(start + width, end).replace(/^ (.+) $/s, "$1").replaceAll("\n", " "), end: after};
    end = text.indexOf(mark, after);
  }
  hopeless.add(mark);
  return null;
}

function emphasis(text, start, hopeless) {
  for (const [mark, tag] of EMPHASIS) {
    const first = start + mark.length;
    if (hopeless.has(mark) || !text.startsWith(mark, start) || /\s|^$/.test(text[first] ?? "")) continue;
    if (mark[0] === "_" && /\w/.test(text[start - 1] ?? "")) continue;
    const end = closingMark(text, first, mark, hopeless);
    if (end !== -1) return {tag, text: text.slice(first, end), end: end + mark.length};
    hopeless.add(mark);
  }
  return null;
}

/** Where the text between two marks ends; code spans on the way are passed over. */
function closingMark(text, first, mark, hopeless) {
  for (let i = first; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "`") {
      const span = codeSpan(text, i, hopeless);
      if (span) i = span.end - 1;
    } else if (mark.length === 1 && text[i] === mark && text[i + 1] === mark) {
      const inner = text.indexOf(mark + mark, i + 2);
      i = inner === -1 ? i + 1 : inner + 1;
    } else if (i > first && text.startsWith(mark, i) && !/\s/.test(text[i - 1])) {
      const end = mark.length === 2 && text[i + 2] === mark[0] ? i + 1 : i;
      if (mark[0] !== "_" || !/\w/.test(text[end + mark.length] ?? "")) return end;
    }
  }
  return -1;
}

/** Markdown that grows: only the last block is built again when text is added. */
class MarkdownView {
  constructor(container) {
    this.container = container;
    this.text = "";
    this.lastStart = 0;  // offset of the last block in the text
    this.last = null;    // its node
  }

  update(text) {
    if (text === this.text) return;
    if (!text.startsWith(this.text)) {
      this.container.replaceChildren();
      this.lastStart = 0;
      this.last = null;
    }
    this.text = text;
    this.last?.remove();
    this.last = null;
    const lines = text.slice(this.lastStart).split("\n");
    let offset = this.lastStart;
    for (let i = 0; i < lines.length;) {
      let end = i + 1;
      if (!isBlank(lines[i])) {
        const block = nextBlock(lines, i, 0);
        end = block.end;
        this.last = block.build();
        this.lastStart = offset;
        this.container.append(this.last);
      }
      for (; i < end; i++) offset += lines[i].length + 1;
    }
  }
}
