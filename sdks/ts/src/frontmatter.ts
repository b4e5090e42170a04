/** Front matter: `key: string` and `key: [a, b]` lines between two `---` lines. */

import { trimCharacters } from "./text/trim.js";

export type FrontMatterValue = string | string[];

export interface FrontMatter {
  /** The text after the front matter; the whole content if there is none. */
  text: string;
  metadata: Record<string, FrontMatterValue>;
}

const LINE = /^([A-Za-z0-9_.-]+):([^]*)$/;
const BLANKS = " \t";

/** Split off the front matter; if it is malformed, all of `content` is ordinary text. */
export function parseFrontMatter(content: string): FrontMatter {
  const plain = { text: content, metadata: {} };
  if (!content.startsWith("---\n") && !content.startsWith("---\r\n")) return plain;
  // Entries, because assigning to `__proto__` would not create a key.
  const entries: [string, FrontMatterValue][] = [];
  let start = content.indexOf("\n") + 1;
  while (start < content.length) {
    const newline = content.indexOf("\n", start);
    const end = newline < 0 ? content.length : newline;
    const line = content.slice(start, end).replace(/\r$/, "");
    start = end + 1;
    if (line === "---") {
      return { text: content.slice(start), metadata: Object.fromEntries(entries) };
    }
    const [, key, raw] = LINE.exec(line) ?? [];
    if (key === undefined || raw === undefined) return plain;
    entries.push([key, value(trimCharacters(raw, BLANKS))]);
  }
  return plain;
}

function value(raw: string): FrontMatterValue {
  if (!raw.startsWith("[") || !raw.endsWith("]")) return unquote(raw);
  const inner = trimCharacters(raw.slice(1, -1), BLANKS);
  return inner === "" ? [] : items(inner);
}

/** Split at commas, except at those inside a quoted item. */
function items(inner: string): string[] {
  const found: string[] = [];
  for (let start = 0; start <= inner.length;) {
    const end = endOfQuoted(inner, start) ?? endBefore(inner, ",", start);
    found.push(unquote(trimCharacters(inner.slice(start, end), BLANKS)));
    start = end + 1;
  }
  return found;
}

/** The end of the item at `start`, if it is quoted: the position of the next comma, or the end. */
function endOfQuoted(inner: string, start: number): number | undefined {
  const open = skipBlanks(inner, start);
  const quote = inner.charAt(open);
  if (quote !== '"' && quote !== "'") return undefined;
  const close = inner.indexOf(quote, open + 1);
  if (close < 0) return undefined;
  const end = skipBlanks(inner, close + 1);
  return end === inner.length || inner.charAt(end) === "," ? end : undefined;
}

function skipBlanks(text: string, start: number): number {
  let end = start;
  while (end < text.length && BLANKS.includes(text.charAt(end))) end++;
  return end;
}

function endBefore(text: string, character: string, start: number): number {
  const found = text.indexOf(character, start);
  return found < 0 ? text.length : found;
}

/** `raw` without the pair of quotes around it; there are no escapes, so no such quote is inside. */
function unquote(raw: string): string {
  return /^(?:"[^"]*"|'[^']*')$/.test(raw) ? raw.slice(1, -1) : raw;
}
