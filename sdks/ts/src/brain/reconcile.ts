/** Bringing an index to what the files say. */

import { setImmediate as nextTurn } from "node:timers/promises";

import type { Embedder } from "../embedding/embedder.js";
import type { IndexedDocument, SearchIndex } from "../index/searchIndex.js";
import { indexed, readSidecar } from "./document.js";
import { isHidden, pathFault, sidecarOf } from "./paths.js";
import { stampOf, type Tree } from "./tree.js";
import { Vectors } from "./vectors.js";

/**
 * So many documents, or bytes of them, are taken in before other requests get their turn: some 40 ms
 * for 256 short ones.
 */
const BATCH = 256;
const BATCH_BYTES = 2 ** 20;

type Prepared = Omit<IndexedDocument, "vectors">;

interface Changed {
  path: string;
  stamp: string;
}

export async function reconcile(
  index: SearchIndex,
  documents: Tree,
  sidecars: Tree,
  embedder: Embedder | undefined,
  signal: AbortSignal,
): Promise<void> {
  const vanished = index.stamps();
  const changed: Changed[] = [];
  let seen = 0;
  for (const [path, entry] of documents.below("")) {
    if (++seen % BATCH === 0) await nextTurn(undefined, { signal });
    // What somebody put there under a name that no request could give has no sidecar's name either.
    if (!entry.isFile() || isHidden(path) || pathFault(path) !== undefined) continue;
    const stamp = stampOf(documents.at(path), sidecars.at(sidecarOf(path)));
    if (vanished.get(path) !== stamp) changed.push({ path, stamp });
    vanished.delete(path);
  }
  if (vanished.size > 0) index.apply([], vanished.keys());
  let batch: Prepared[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    const vectors = new Vectors(embedder);
    await vectors.learn(batch, signal);
    index.apply(batch.map((document) => ({ ...document, vectors: vectors.of(document) })));
    batch = [];
    bytes = 0;
    await nextTurn(undefined, { signal });
  };
  for (const { path, stamp } of changed) {
    const content = documents.read(path);
    if (content === undefined) continue;
    const sidecar = sidecars.read(sidecarOf(path));
    batch.push({ stamp, ...indexed(path, content, readSidecar(sidecar)) });
    bytes += content.length;
    if (batch.length >= BATCH || bytes >= BATCH_BYTES) await flush();
  }
  if (batch.length > 0) await flush();
}
