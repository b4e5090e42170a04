/** OpenAI's embeddings API, and services with the same. */

import { createHash } from "node:crypto";

import type OpenAI from "openai";
import { z } from "zod";

import { connect } from "../upstream/openai.js";
import type { Connection, Upstream } from "../upstream/upstream.js";
import { type Embedder, normalize } from "./embed.js";

/** Texts per embeddings call. */
const EMBED_BATCH = 64;

const EMBEDDINGS = z.object({
  data: z.array(z.object({ index: z.int().optional(), embedding: z.array(z.number()).min(1) })),
});

export class OpenAIEmbedder implements Embedder {
  readonly name: string;
  readonly #client: OpenAI;
  readonly #upstream: Upstream;

  constructor(
    connection: Connection,
    readonly model: string,
  ) {
    // Everything that the vectors depend on; the address as a digest, because it may hold a password.
    const address = createHash("sha256")
      .update(connection.baseURL ?? "")
      .digest("hex");
    this.name = `${connection.name}/${model}@${address.slice(0, 12)}`;
    [this.#client, this.#upstream] = connect(connection);
  }

  async embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
    const vectors: Float32Array[] = [];
    for (let start = 0; start < texts.length; start += EMBED_BATCH) {
      vectors.push(...(await this.#embedBatch(texts.slice(start, start + EMBED_BATCH), signal)));
    }
    return vectors;
  }

  async #embedBatch(input: string[], signal: AbortSignal): Promise<Float32Array[]> {
    const raw = await this.#upstream.call(signal, (callSignal) =>
      this.#client.embeddings.create(
        { model: this.model, input, encoding_format: "float" },
        { signal: callSignal },
      ),
    );
    const { data } = this.#upstream.parse(EMBEDDINGS, raw, "the embeddings are malformed");
    const values = data.map(({ index, embedding }, place) => [index ?? place, embedding] as const);
    const vectors = this.#upstream
      .inOrder(values, input.length, "embedding", "text")
      .map((embedding) => normalize(embedding));
    if (vectors.some(({ length }) => length !== vectors[0]?.length)) {
      throw this.#upstream.failure("the embeddings have different dimensions");
    }
    return vectors;
  }
}
