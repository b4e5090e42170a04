/** Bringing an index to what the files say. */

import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";

import type { IndexedDocument, SearchIndex } from "../index/searchIndex.js";
import { indexed, readSidecar } from "./document.js";
import type { Places } from "./home.js";
import { isHidden, pathFault } from "./paths.js";
import { contentOf, stampOf, walk } from "./walk.js";

/**
 * So many documents, or bytes of them, are taken in before other requests get their turn: some 40 ms
 * for 256 short ones.
 */
const BATCH = 256;
const BATCH_BYTES = 2 ** 20;

type Embed = (
  documents: Omit<IndexedDocument, "stamp" | "vectors">[],
) => Promise<Omit<IndexedDocument, "stamp">[]>;

type Stamped = Omit<IndexedDocument, "vectors">;

interface Changed {
  path: string;
  stamp: string;
}

export async function reconcile(
  index: SearchIndex,
  places: Places,
  embed: Embed,
  signal: AbortSignal,
): Promise<void> {
  const sidecar = (path: string): string => join(places.sidecars, `${path}.json`);
  const vanished = index.stamps();
  const changed: Changed[] = [];
  let seen = 0;
  for (const path of walk(places.documents)) {
    if (++seen % BATCH === 0) await nextTurn(undefined, { signal });
    // What somebody put there under a name that no request could give has no sidecar's name either.
    if (isHidden(path) || pathFault(path) !== undefined) continue;
    const stamp = stampOf(join(places.documents, path), sidecar(path));
    if (vanished.get(path) !== stamp) changed.push({ path, stamp });
    vanished.delete(path);
  }
  if (vanished.size > 0) index.apply([], vanished.keys());
  let batch: Stamped[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    const stamps = batch.map(({ stamp }) => stamp);
    const embedded = await embed(batch);
    index.apply(embedded.map((document, i) => ({ ...document, stamp: stamps[i] ?? "" })));
    batch = [];
    bytes = 0;
    await nextTurn(undefined, { signal });
  };
  for (const { path, stamp } of changed) {
    const content = contentOf(join(places.documents, path));
    if (content === undefined) continue;
    const given = readSidecar(contentOf(sidecar(path))?.toString() ?? "{}");
    batch.push({ stamp, ...indexed(path, content, given) });
    bytes += content.length;
    if (batch.length >= BATCH || bytes >= BATCH_BYTES) await flush();
  }
  if (batch.length > 0) await flush();
}
