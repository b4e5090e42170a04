/** Keeping what is intact of an index file that is not sealed. */

import { existsSync, renameSync } from "node:fs";

import { nfkc } from "../text/terms.js";
import { createDatabase, removeDatabase } from "./file.js";
import { checksum } from "./seal.js";
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

interface Intact {
  row: DocumentRow;
  chunks: ChunkRow[];
}

/**
 * Replace the file by a new one with its intact documents: those with the checksum that they were
 * indexed with. The rest is indexed again from the files, as is everything if nothing can be read.
 */
export function salvage(file: string, embedder: string): void {
  if (!existsSync(file)) return;
  const fresh = `${file}.new`;
  removeDatabase(fresh);
  const target = createDatabase(fresh, embedder);
  try {
    const statements = new Statements(target);
    target.transaction(() => {
      let chunks = 0;
      for (const { row, chunks: rows } of intactDocuments(file, embedder)) {
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
      }
    });
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

function* intactDocuments(file: string, embedder: string): Generator<Intact> {
  let source: Connection;
  try {
    source = new Connection(file);
  } catch (error) {
    if (isSqliteError(error)) return;
    throw error;
  }
  try {
    const rows = source.prepare<[], DocumentRow>(
      "SELECT CAST(path AS BLOB), CAST(stamp AS BLOB), CAST(title AS BLOB), CAST(session_id AS BLOB)," +
        " CAST(tags AS BLOB), CAST(metadata AS BLOB), CAST(checksum AS BLOB) FROM documents",
    );
    const chunksOf = source.prepare<[string], ChunkRow>(
      "SELECT ordinal, CAST(text AS BLOB), CAST(vector AS BLOB) FROM chunks WHERE path = ? ORDER BY ordinal",
    );
    for (const row of rows.iterate()) {
      // Damage can make a column null that never is.
      if ([0, 1, 4, 5, 6].some((column) => row[column] === null)) continue;
      const chunks = readable(() => chunksOf.all(toText(row[0])));
      const inOrder = chunks?.every(([ordinal], place) => ordinal === place) ?? false;
      if (chunks === undefined || !inOrder) continue;
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

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isSqliteError(error)) return undefined;
    throw error;
  }
}
