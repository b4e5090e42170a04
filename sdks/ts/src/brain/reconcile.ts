/** Bringing an index to what the files say. */

import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";

import type { IndexedDocument, SearchIndex } from "../index/searchIndex.js";
import { indexed, readSidecar } from "./document.js";
import type { Places } from "./home.js";
import { isHidden } from "./paths.js";
import { contentOf, stampOf, walk } from "./walk.js";

/** Documents between which other requests get their turn: 256 short ones take some 40 ms. */
const BATCH = 256;

type Embed = (
  documents: Omit<IndexedDocument, "stamp" | "vectors">[],
) => Promise<Omit<IndexedDocument, "stamp">[]>;

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
    if (isHidden(path)) continue;
    const stamp = stampOf(join(places.documents, path), sidecar(path));
    if (vanished.get(path) !== stamp) changed.push({ path, stamp });
    vanished.delete(path);
  }
  if (vanished.size > 0) index.apply([], vanished.keys());
  for (let start = 0; start < changed.length; start += BATCH) {
    await nextTurn(undefined, { signal });
    const batch = changed.slice(start, start + BATCH).flatMap(({ path, stamp }) => {
      const content = contentOf(join(places.documents, path));
      if (content === undefined) return [];
      const given = readSidecar(contentOf(sidecar(path))?.toString() ?? "{}");
      return [{ stamp, ...indexed(path, content, given) }];
    });
    const embedded = await embed(batch);
    index.apply(embedded.map((document, i) => ({ ...document, stamp: batch[i]?.stamp ?? "" })));
  }
}
