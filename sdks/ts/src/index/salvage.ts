/** Keeping what is intact of an index file that is not sealed. */

import { existsSync, renameSync } from "node:fs";

import { nfkc } from "../text/terms.js";
import { createDatabase, removeDatabase } from "./file.js";
import { checksum, type YieldTurn } from "./seal.js";
import { Connection, isSqliteError, toParameter, toText } from "./sqlite.js";
import { Statements } from "./statements.js";

type Bytes = Uint8Array;
/** A row of `documents`. */
type DocumentRow = [
  path: Bytes,
  stamp: Bytes,
  title: Bytes | null,
  sessionId: Bytes | null,
  tags: Bytes,
  metadata: Bytes,
  checksum: Bytes,
];
type ChunkRow = [ordinal: number, text: Bytes, vector: Bytes | null];

/** Limits of what is copied before other requests get their turn. */
const BATCH = 256;
const BATCH_BYTES = 2 ** 20;

interface Intact {
  row: DocumentRow;
  chunks: ChunkRow[];
}

/**
 * Replace the file by a new one with its intact documents: those with the checksum that they were
 * indexed with. The rest is indexed again from the files, as is everything if nothing can be read.
 */
export async function salvage(file: string, embedder: string, yieldTurn: YieldTurn): Promise<void> {
  if (!existsSync(file)) return;
  const fresh = `${file}.new`;
  removeDatabase(fresh);
  const target = createDatabase(fresh, embedder);
  try {
    const statements = new Statements(target);
    let chunks = 0;
    const add = ({ row, chunks: rows }: Intact) => {
      const [path, stamp, title, sessionId, tags, metadata, sum] = row;
      statements.addDocument.run(
        toText(path),
        toText(stamp),
        title,
        sessionId,
        toText(tags),
        toText(metadata),
        toText(sum),
      );
      for (const [ordinal, text, vector] of rows) {
        chunks++;
        statements.addChunk.run(chunks, toText(path), ordinal, text, vector);
        statements.addTerms.run(chunks, toParameter(nfkc(toText(text))));
      }
    };
    for (const batch of batches(intactDocuments(file, embedder))) {
      target.transaction(() => {
        for (const document of batch) add(document);
      });
      await yieldTurn();
    }
  } finally {
    target.close();
  }
  removeDatabase(file);
  renameSync(fresh, file);
}

/** What a document's checksum is computed from. */
export function checksumOf(
  embedder: string,
  row: readonly (string | Bytes | null)[],
  chunks: readonly (readonly [text: string | Bytes, vector: Bytes | null])[],
): string {
  return checksum([embedder, ...row, ...chunks.flat()]);
}

/** Batches that take a few hundredths of a second. */
function* batches(documents: Iterable<Intact>): Generator<Intact[]> {
  let batch: Intact[] = [];
  let bytes = 0;
  for (const document of documents) {
    batch.push(document);
    for (const [, text] of document.chunks) bytes += text.length;
    if (batch.length < BATCH && bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

function* intactDocuments(file: string, embedder: string): Generator<Intact> {
  let source: Connection;
  try {
    source = new Connection(file);
  } catch (error) {
    if (isSqliteError(error)) return;
    throw error;
  }
  try {
    const rowsAfter = source.prepare<[after: Bytes, limit: number], DocumentRow>(
      "SELECT CAST(path AS BLOB), CAST(stamp AS BLOB), CAST(title AS BLOB), CAST(session_id AS BLOB)," +
        " CAST(tags AS BLOB), CAST(metadata AS BLOB), CAST(checksum AS BLOB) FROM documents" +
        " WHERE path > CAST(? AS TEXT) ORDER BY path LIMIT ?",
    );
    const chunksOf = source.prepare<[string], ChunkRow>(
      "SELECT ordinal, CAST(text AS BLOB), CAST(vector AS BLOB) FROM chunks WHERE path = ? ORDER BY ordinal",
    );
    for (const row of inOrder((after) => rowsAfter.all(after, BATCH))) {
      // Damage can make a column null that never is.
      if ([0, 1, 4, 5, 6].some((column) => row[column] === null)) continue;
      const chunks = readable(() => chunksOf.all(toText(row[0])));
      if (!chunks?.every(([ordinal], place) => ordinal === place)) continue;
      const contents = chunks.map(([, text, vector]) => [text, vector] as const);
      if (toText(row[6]) === checksumOf(embedder, row.slice(0, 6), contents)) {
        yield { row, chunks };
      }
    }
  } catch (error) {
    // Damage, which ends the salvage: what follows is indexed again.
    if (!isSqliteError(error)) throw error;
  } finally {
    readable(() => {
      source.close();
    });
  }
}

/**
 * The rows of all pages, as long as their paths ascend, which damage can end. The library's `iterate`
 * crashes the process if its statement is collected meanwhile.
 */
function* inOrder(pageAfter: (path: Bytes) => DocumentRow[]): Generator<DocumentRow> {
  let last: Bytes = Buffer.alloc(0);
  for (let page = pageAfter(last); page.length > 0; page = pageAfter(last)) {
    for (const row of page) {
      const path = row[0] as Bytes | null;
      if (path === null || Buffer.compare(path, last) <= 0) return;
      last = path;
      yield row;
    }
  }
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isSqliteError(error)) return undefined;
    throw error;
  }
}
