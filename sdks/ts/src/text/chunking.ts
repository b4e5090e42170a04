/** Cutting a document's text into the chunks that are indexed and ranked. */

/** UTF-8 bytes up to which a text stays one chunk. */
const WHOLE_LIMIT = 131_072;

/** UTF-8 bytes within which a longer text is cut. */
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
    const end = cut(bytes, start);
    chunks.push(bytes.toString("utf8", start, end));
    start = end;
  }
  chunks.push(bytes.toString("utf8", start));
  return chunks;
}

/** Where the chunk that begins at `start` ends: at most WINDOW bytes on, and short of the end. */
function cut(bytes: Buffer, start: number): number {
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

/** Whether the newline closes a line with nothing in it, whose opening is in the window too. */
function endsBlankLine(bytes: Buffer, start: number, newline: number): boolean {
  const before = bytes[newline - 1] === RETURN ? newline - 2 : newline - 1;
  return before >= start && bytes[before] === NEWLINE;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
