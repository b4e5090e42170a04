import { FeatureHash } from "../embed/featureHash.js";
import { Index, type IndexedDocument } from "../index/index.js";

const embedder = new FeatureHash();

export function openIndex(file?: string): Promise<Index> {
  return Index.open(file, embedder.name);
}

/** A document as the index takes it, with the vectors of a feature hash. */
export async function indexed(path: string, ...chunks: string[]): Promise<IndexedDocument> {
  const vectors = await embedder.embed(chunks);
  return { path, stamp: "s", title: undefined, tags: [], metadata: {}, chunks, vectors };
}

/** The paths of a keyword search. */
export function found(index: Index, query: string): string[] {
  return index.keyword(query, undefined, 1000).map(({ slot }) => index.chunk(slot).path);
}

/** The path of the best chunk by its vector. */
export async function best(index: Index, query: string): Promise<string | undefined> {
  const [vector = Float32Array.of()] = await embedder.embed([query]);
  const [hit] = index.semantic(vector, undefined, 1, "cosine");
  return hit && index.chunk(hit.slot).path;
}
