import type { Embedder } from "../embed/embed.js";

interface ChunkedDocument {
  path: string;
  chunks: string[];
}

/** The vectors of chunks; each chunk is embedded once. */
export class ChunkVectors {
  readonly #embedder: Embedder | undefined;
  readonly #vectors = new Map<string, Float32Array>();

  constructor(embedder: Embedder | undefined) {
    this.#embedder = embedder;
  }

  /**
   * Embed all chunks that have no vector yet, in one call.
   *
   * @throws Problem `bad_gateway` or `timeout` if the embedder fails.
   */
  async embedMissing(documents: readonly ChunkedDocument[], signal: AbortSignal): Promise<void> {
    if (this.#embedder === undefined) return;
    const chunks = documents
      .flatMap(({ path, chunks }) => chunks.map((text) => ({ text, key: keyOf(path, text) })))
      .filter(({ key }) => !this.#vectors.has(key));
    if (chunks.length === 0) return;
    const texts = chunks.map(({ text }) => text);
    for (const [i, vector] of (await this.#embedder.embed(texts, signal)).entries()) {
      this.#vectors.set(chunks[i]?.key ?? "", vector);
    }
  }

  /** One vector per chunk; none without an embedder. */
  of({ path, chunks }: ChunkedDocument): Float32Array[] {
    return chunks.flatMap((text) => this.#vectors.get(keyOf(path, text)) ?? []);
  }
}

/** Unambiguous, because no path contains a NUL. */
function keyOf(path: string, text: string): string {
  return `${path}\0${text}`;
}
