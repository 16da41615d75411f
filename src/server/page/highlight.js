"use strict";
// Colours for code: comments, strings, numbers and the keywords that most languages share.

const KEYWORDS = new Set(("and as assert async await auto begin bool break case catch char class const constexpr continue def default del " +
  "delete do double elif else end enum except explicit export extends extern false False final finally float fn for foreach from func " +
  "function global go if impl implements import in include inline int interface is lambda let long loop match mod module mut namespace " +
  "new nil None not null nullptr of operator or override package pass private protected pub public raise return self short signed " +
  "sizeof static std string struct super switch template then this throw trait true True try type typedef typename union unsigned use " +
  "using val var virtual void volatile when where while with yield").split(" "));
const SQL_KEYWORDS = new Set(("select from where insert into values update set delete create table drop alter join left right inner outer " +
  "on group by order having limit as and or not null primary key distinct union all index view").split(" "));
const HASH_COMMENTS = new Set("python py bash sh shell zsh ruby rb yaml yml toml r perl make makefile dockerfile cmake ini conf nix".split(" "));
const DASH_COMMENTS = new Set("sql lua haskell hs ada".split(" "));
const UNCOLOURED = new Set(["", "text", "txt", "plain", "plaintext", "markdown", "md", "console", "output", "diff"]);
const MAX_COLOURED = 60_000;

const STRING = String.raw`"""[^]*?(?:"""|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'|` + "`(?:[^`\\\\]|\\\\.)*`";
const NUMBER = String.raw`\b(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)\w*`;
const WORD = String.raw`[A-Za-z_$][\w$]*`;

function codePattern(language) {
  const comment = HASH_COMMENTS.has(language) ? String.raw`#[^\n]*` :
    DASH_COMMENTS.has(language) ? String.raw`--[^\n]*` :
      ["html", "xml", "svg"].includes(language) ? String.raw`<!--[^]*?(?:-->|$)` : String.raw`\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)`;
  return new RegExp(`(?<comment>${comment})|(?<string>${STRING})|(?<number>${NUMBER})|(?<word>${WORD})`, "g");
}

/** Nodes of a piece of code. */
function highlight(text, language) {
  language = language.toLowerCase();
  if (UNCOLOURED.has(language) || text.length > MAX_COLOURED) return [text];
  const words = language === "sql" ? SQL_KEYWORDS : KEYWORDS;
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(codePattern(language))) {
    let kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    if (kind === "word") {
      const word = language === "sql" ? found[0].toLowerCase() : found[0];
      kind = words.has(word) ? "keyword" : text[found.index + found[0].length] === "(" ? "call" : null;
    }
    if (!kind) continue;
    nodes.push(text.slice(done, found.index), element("span", {class: `code-${kind}`}, found[0]));
    done = found.index + found[0].length;
  }
  nodes.push(text.slice(done));
  return nodes;
}
