/**
 * Noticing damage anywhere in an index file. SQLite has no checksums: it notices a page that makes no
 * sense, and not a letter that changed. So a file that was closed properly has a seal, the digest of all
 * of its bytes. One without its seal, or with another digest, is not trusted: see `salvage`.
 */

import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";

/** Lets other requests have their turn; throws if the index is not to be opened any more. */
export type YieldTurn = () => Promise<void>;

const CHUNK_BYTES = 1 << 20;

/** Seal a file that was closed properly. Without it, the file is only slower to open. */
export function seal(file: string): void {
  // It was removed with its brain.
  if (!existsSync(file)) return;
  try {
    writeFileSync(sealOf(file), digestOf(file));
  } catch {
    // A full disk must not prevent a brain from being closed. What was written of the seal is invalid.
    rmSync(sealOf(file), { force: true });
  }
}

/** Whether the file is as it was when it was sealed. It may be written from now on. */
export async function breakSeal(file: string, yieldTurn: YieldTurn): Promise<boolean> {
  if (!existsSync(sealOf(file))) return false;
  const expected = readFileSync(sealOf(file));
  rmSync(sealOf(file));
  if (existsSync(`${file}-wal`) || !existsSync(file)) return false;
  return expected.equals(Buffer.from(await slowDigestOf(file, yieldTurn)));
}

/** The digest of what a document is indexed with; null differs from empty. */
export function checksum(values: readonly (string | Uint8Array | null)[]): string {
  const hash = createHash("sha256");
  for (const value of values) {
    if (value === null) {
      hash.update("-");
      continue;
    }
    const bytes = typeof value === "string" ? Buffer.from(value) : value;
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest("hex");
}

function sealOf(file: string): string {
  return `${file}.seal`;
}

function digestOf(file: string): string {
  const hash = createHash("sha256");
  for (const piece of piecesOf(file)) hash.update(piece);
  return hash.digest("hex");
}

/** As `digestOf`, while other requests are served. */
async function slowDigestOf(file: string, yieldTurn: YieldTurn): Promise<string> {
  const hash = createHash("sha256");
  for (const piece of piecesOf(file)) {
    hash.update(piece);
    await yieldTurn();
  }
  return hash.digest("hex");
}

/** The content of a file; each piece is valid until the next one. */
function* piecesOf(file: string): Generator<Buffer> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  const descriptor = openSync(file, "r");
  try {
    for (;;) {
      const length = readSync(descriptor, buffer);
      if (length === 0) return;
      yield buffer.subarray(0, length);
    }
  } finally {
    closeSync(descriptor);
  }
}
