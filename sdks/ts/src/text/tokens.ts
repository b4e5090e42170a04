/** The tokens of SQLite's `porter unicode61`, of which the contract counts occurrences. */

import { readFileSync } from "node:fs";

import { stem } from "./porter.js";

const TOKEN = /[a-z0-9\x80-\xff]+/g;

/** What a code point becomes that separates tokens, and one that leaves nothing. */
const SEPARATOR = 0;
const NOTHING = 0xffff_ffff;

const folds = readFolds();

/**
 * Stems of the words that were met: most words of a text are among them, and stemming one anew takes
 * twenty times as long. It begins anew when it has so many.
 */
const stems = new Map<string, string>();
const STEMS_KEPT = 2 ** 16;
/** Longer words are rare, and some are as long as a whole request. */
const LONGEST_KEPT = 64;

/**
 * The tokens of a text in NFKC, in order. Their characters stand for bytes of UTF-8, because the
 * tokenizer counts bytes, and may cut a character.
 */
export function tokens(text: string): string[] {
  const isAscii = /^\p{ASCII}*$/u.test(text);
  const folded = isAscii ? text.toLowerCase() : fold(text.normalize("NFKC"));
  return folded.match(TOKEN)?.map(stemOf) ?? [];
}

function stemOf(word: string): string {
  if (word.length > LONGEST_KEPT) return copyOf(stem(word));
  let known = stems.get(word);
  if (known === undefined) {
    const copy = copyOf(word);
    if (stems.size === STEMS_KEPT) stems.clear();
    stems.set(copy, (known = stem(copy)));
  }
  return known;
}

/** A part of a string keeps the whole string in memory. */
function copyOf(part: string): string {
  return Buffer.from(part, "latin1").toString("latin1");
}

/** The bytes of the text, each code point as the table has it. */
function fold(text: string): string {
  const folded = text.replace(/[A-Z]+|\P{ASCII}+/gu, (run) => {
    let result = "";
    for (const character of run) {
      const point = folds[character.codePointAt(0) ?? 0] ?? SEPARATOR;
      if (point === SEPARATOR) result += " ";
      else if (point !== NOTHING) result += String.fromCodePoint(point);
    }
    return result;
  });
  return Buffer.from(folded).toString("latin1");
}

/** Read the table that scripts/tokenizer.py writes, which says what its lines mean. */
function readFolds(): Uint32Array {
  const table = new Uint32Array(0x11_0000);
  const lines = readFileSync(new URL("unicode61.txt", import.meta.url), "ascii");
  for (const line of lines.trim().split("\n")) {
    const fields = line.split(" ");
    const [from = 0, to = 0, step = 1, change = 0] = fields.map((digits) => parseInt(digits, 16));
    for (let point = from; point <= to; point += fields.length === 4 ? step : 1) {
      table[point] = fields.length === 3 ? NOTHING : point + change;
    }
  }
  return table;
}
