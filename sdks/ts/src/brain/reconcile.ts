/** Reconciling an index with the files. */

import type { Embedder } from "../embed/embed.js";
import { isHidden, pathFault, sidecarOf } from "../files/path.js";
import { stampOf, type Tree } from "../files/tree.js";
import type { IndexedDocument, Index } from "../index/index.js";
import { Pace } from "../index/pace.js";
import { toIndexedDocument } from "./source.js";
import { ChunkVectors } from "./vectors.js";

/**
 * How many documents, or bytes of them, are indexed before other requests get their turn: some 40 ms
 * for 256 short documents.
 */
const BATCH = 256;
const BATCH_BYTES = 2 ** 20;

type UnembeddedDocument = Omit<IndexedDocument, "vectors">;

interface ChangedFile {
  path: string;
  stamp: string;
}

/**
 * Index the files whose stamp changed and drop the documents whose file is gone.
 *
 * @throws Problem `bad_gateway` or `timeout` if the embedder fails; or the reason of `signal`.
 */
export async function reconcile(
  index: Index,
  documents: Tree,
  sidecars: Tree,
  embedder: Embedder | undefined,
  signal: AbortSignal,
): Promise<void> {
  const pace = new Pace(signal);
  const staleStamps = index.stamps();
  const changed: ChangedFile[] = [];
  let visited = 0;
  for (const [path, entry] of documents.below("")) {
    if (++visited % BATCH === 0) await pace.rest();
    // A file whose name no request could use is ignored; its sidecar's name may be too long.
    if (!entry.isFile() || isHidden(path) || pathFault(path) !== undefined) continue;
    const stamp = stampOf(path, documents, sidecars);
    if (staleStamps.get(path) !== stamp) changed.push({ path, stamp });
    staleStamps.delete(path);
  }
  if (staleStamps.size > 0) index.apply([], staleStamps.keys());
  let batch: UnembeddedDocument[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    const vectors = new ChunkVectors(embedder);
    await vectors.embedMissing(batch, signal);
    index.apply(batch.map((document) => ({ ...document, vectors: vectors.of(document) })));
    batch = [];
    bytes = 0;
    await pace.rest();
  };
  for (const { path, stamp } of changed) {
    const content = documents.read(path);
    if (content === undefined) continue;
    const sidecar = sidecars.read(sidecarOf(path));
    batch.push({ stamp, ...toIndexedDocument(path, content, sidecar) });
    bytes += content.length;
    if (batch.length >= BATCH || bytes >= BATCH_BYTES) await flush();
  }
  if (batch.length > 0) await flush();
}
