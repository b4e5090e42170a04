import type { Embedder } from "../embedding/embedder.js";

interface Chunked {
  path: string;
  chunks: string[];
}

/** The vectors of chunks, each asked for once. */
export class Vectors {
  readonly #embedder: Embedder | undefined;
  readonly #known = new Map<string, Float32Array>();

  constructor(embedder: Embedder | undefined) {
    this.#embedder = embedder;
  }

  /** All chunks that are not known yet go to the embedder in one call. */
  async learn(documents: readonly Chunked[], signal: AbortSignal): Promise<void> {
    if (this.#embedder === undefined) return;
    const chunks = documents
      .flatMap(({ path, chunks }) => chunks.map((text) => ({ text, key: keyOf(path, text) })))
      .filter(({ key }) => !this.#known.has(key));
    if (chunks.length === 0) return;
    const texts = chunks.map(({ text }) => text);
    for (const [i, vector] of (await this.#embedder.embed(texts, signal)).entries()) {
      this.#known.set(chunks[i]?.key ?? "", vector);
    }
  }

  /** One a chunk, or none where there is no embedder. */
  of({ path, chunks }: Chunked): Float32Array[] {
    return chunks.flatMap((text) => this.#known.get(keyOf(path, text)) ?? []);
  }
}

/** No path holds a NUL. */
function keyOf(path: string, text: string): string {
  return `${path}\0${text}`;
}
