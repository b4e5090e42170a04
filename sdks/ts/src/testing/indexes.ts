import type { TestContext } from "node:test";

import type { Logger } from "pino";

import { FeatureHash } from "../embed/featureHash.js";
import { Index, type IndexedDocument } from "../index/index.js";

const embedder = new FeatureHash();

/** A generator of numbers that are the same in each run. */
export function numbersBelow(): (limit: number) => number {
  let state = 1;
  return (limit) => {
    state = (state * 48_271) % 0x7fff_ffff;
    return state % limit;
  };
}

export function openIndex(file?: string, logger?: Logger): Promise<Index> {
  return Index.open(file, embedder.name, undefined, logger);
}

/** A document as the index takes it, with the vectors of a feature hash. */
export async function indexed(path: string, ...chunks: string[]): Promise<IndexedDocument> {
  const vectors = await embedder.embed(chunks);
  return { path, stamp: "s", title: undefined, tags: [], metadata: {}, chunks, vectors };
}

/** The paths of a keyword search. */
export async function found(index: Index, query: string): Promise<string[]> {
  const search = index.search(query);
  return (await search.keyword(1000)).map(({ slot }) => search.chunk(slot).path);
}

/** The path of the best chunk by its vector. */
export async function best(index: Index, query: string): Promise<string | undefined> {
  const [vector = Float32Array.of()] = await embedder.embed([query]);
  const search = index.search(query);
  const [hit] = await search.semantic(vector, 1, "cosine");
  return hit && search.chunk(hit.slot).path;
}

/** Let every piece of work take a second, so that others get their turn after it. */
export function slowDown(t: TestContext): void {
  let now = 0;
  t.mock.method(performance, "now", () => (now += 1000));
}
