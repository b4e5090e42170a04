/** Splitting a document's text into the chunks that are indexed and ranked. */

import { createHash } from "node:crypto";

/** Size in UTF-8 bytes up to which a text is one chunk. */
const WHOLE_LIMIT = 131_072;

/** The maximal size, in UTF-8 bytes, of the chunks of a longer text. */
const WINDOW = 8_192;

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** Chunks whose concatenation is `text`; an empty text has none. */
export function chunk(text: string): string[] {
  if (text === "") return [];
  const bytes = Buffer.from(text);
  if (bytes.length <= WHOLE_LIMIT) return [text];
  const chunks: string[] = [];
  let start = 0;
  while (bytes.length - start > WINDOW) {
    const end = chunkEnd(bytes, start);
    chunks.push(bytes.toString("utf8", start, end));
    start = end;
  }
  chunks.push(bytes.toString("utf8", start));
  return chunks;
}

/**
 * The end of the chunk that begins at `start`, at most WINDOW bytes later: after the last blank line
 * in the window, else after its last newline, else before a character that would not fit.
 */
function chunkEnd(bytes: Buffer, start: number): number {
  const limit = start + WINDOW;
  const lastNewline = bytes.lastIndexOf(NEWLINE, limit - 1);
  for (
    let newline = lastNewline;
    newline > start;
    newline = bytes.lastIndexOf(NEWLINE, newline - 1)
  ) {
    if (endsBlankLine(bytes, start, newline)) return newline + 1;
  }
  if (lastNewline >= start) return lastNewline + 1;
  let end = limit;
  while (isContinuation(bytes[end])) end--;
  return end;
}

/** Whether the newline ends a blank line that begins inside the window. */
function endsBlankLine(bytes: Buffer, start: number, newline: number): boolean {
  const before = bytes[newline - 1] === RETURN ? newline - 2 : newline - 1;
  return before >= start && bytes[before] === NEWLINE;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** The first 32 hex digits of the path's SHA-256. */
export function documentIdOf(path: string): string {
  return createHash("sha256").update(path).digest("hex").slice(0, 32);
}
