/** Front matter: `key: value` lines between two `---` lines, strings and lists of strings only. */

import { trimCharacters } from "./trim.js";

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
  if (!raw.startsWith("[") || !raw.endsWith("]")) return scalar(raw);
  const inner = trimCharacters(raw.slice(1, -1), BLANKS);
  return inner === "" ? [] : inner.split(",").map((item) => scalar(trimCharacters(item, BLANKS)));
}

function scalar(raw: string): string {
  return /^(["'])[^]*\1$/.test(raw) ? raw.slice(1, -1) : raw;
}
