/** Front matter: `key: value` lines between two `---` lines, strings and lists of strings only. */

import { trimmed } from "./trim.js";

export type FrontMatterValue = string | string[];

export interface Parsed {
  /** What follows the front matter; where there is none, the whole content. */
  text: string;
  metadata: Record<string, FrontMatterValue>;
}

const LINE = /^([A-Za-z0-9_.-]+):([^]*)$/;
const BLANKS = " \t";

/** Splits off the front matter; where it is malformed, all of `content` is ordinary text. */
export function parseFrontMatter(content: string): Parsed {
  const plain = { text: content, metadata: {} };
  if (!content.startsWith("---\n") && !content.startsWith("---\r\n")) return plain;
  // Entries, for an assignment to `__proto__` would make no key.
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
    entries.push([key, value(trimmed(raw, BLANKS))]);
  }
  return plain;
}

function value(raw: string): FrontMatterValue {
  if (!raw.startsWith("[") || !raw.endsWith("]")) return scalar(raw);
  const inner = trimmed(raw.slice(1, -1), BLANKS);
  return inner === "" ? [] : inner.split(",").map((item) => scalar(trimmed(item, BLANKS)));
}

function scalar(raw: string): string {
  return /^(["'])[^]*\1$/.test(raw) ? raw.slice(1, -1) : raw;
}
