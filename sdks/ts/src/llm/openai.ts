/** Services with the OpenAI API: OpenAI and Ollama. */

import { createHash } from "node:crypto";

import OpenAI from "openai";
import { z } from "zod";

import { type Embedder, normalize } from "../embed/embed.js";
import type { ChatModel, ChatPiece, Prompt } from "./llm.js";
import { RETRIES, Upstream } from "../upstream/upstream.js";

/** Texts per embeddings call. */
const EMBED_BATCH = 64;

const CHAT_PIECE = z.object({
  choices: z.array(
    z.object({
      delta: z.object({ content: z.string().nullish() }).nullish(),
      finish_reason: z.string().nullish(),
    }),
  ),
  usage: z
    .object({ prompt_tokens: z.int(), completion_tokens: z.int() })
    .nullish()
    .catch(undefined),
});

const CHAT_ANSWER = z.object({
  choices: z.tuple([z.object({ message: z.object({ content: z.string() }) })], z.unknown()),
});

const EMBEDDINGS = z.object({
  data: z.array(z.object({ index: z.int().optional(), embedding: z.array(z.number()).min(1) })),
});

export interface Connection {
  name: string;
  apiKey: string;
  /** Undefined for the client's default. */
  baseURL: string | undefined;
  /** How long the service may be silent. */
  seconds: number;
}

/** OpenAI's client, configured for this daemon, and the wrapper for its calls. */
export function connect({ name, apiKey, baseURL, seconds }: Connection): [OpenAI, Upstream] {
  const client = new OpenAI({
    apiKey,
    baseURL: baseURL ?? null,
    organization: null,
    project: null,
    maxRetries: RETRIES,
    // The watchdog limits all attempts together; the client's timeout for one of them must be longer.
    timeout: 2000 * seconds,
    logLevel: "off",
  });
  return [client, new Upstream(name, seconds, apiKey)];
}

export class OpenAIChat implements ChatModel {
  readonly #client: OpenAI;
  readonly #upstream: Upstream;

  constructor(connection: Connection) {
    [this.#client, this.#upstream] = connect(connection);
  }

  async *stream(model: string, prompt: Prompt, signal: AbortSignal): AsyncGenerator<ChatPiece> {
    let finished = false;
    const pieces = this.#upstream.stream(signal, (callSignal) =>
      this.#client.chat.completions.create(
        {
          model,
          messages: messages(prompt),
          stream: true,
          stream_options: { include_usage: true },
        },
        { signal: callSignal },
      ),
    );
    for await (const raw of pieces) {
      const piece = CHAT_PIECE.safeParse(raw);
      if (!piece.success) throw this.#upstream.failure("a piece of the answer is malformed");
      const { choices, usage } = piece.data;
      const text = choices[0]?.delta?.content;
      if (text) yield { type: "text", text };
      if (choices[0]?.finish_reason) finished = true;
      if (usage) {
        const { prompt_tokens: inputTokens, completion_tokens: outputTokens } = usage;
        yield { type: "usage", usage: { inputTokens, outputTokens } };
        // Some services keep the connection open after the end.
        if (finished) return;
      }
    }
    if (!finished) throw this.#upstream.failure("the answer ended early");
  }

  async complete(model: string, prompt: Prompt, signal: AbortSignal): Promise<string> {
    const raw = await this.#upstream.call(signal, (callSignal) =>
      this.#client.chat.completions.create(
        { model, messages: messages(prompt) },
        { signal: callSignal },
      ),
    );
    const answer = CHAT_ANSWER.safeParse(raw);
    if (!answer.success) throw this.#upstream.failure("the answer is malformed");
    return answer.data.choices[0].message.content;
  }
}

export class OpenAIEmbedder implements Embedder {
  readonly name: string;
  readonly #client: OpenAI;
  readonly #upstream: Upstream;
  readonly #model: string;

  constructor(connection: Connection, model: string) {
    // Everything that the vectors depend on; the address as a digest, because it may hold a password.
    const address = createHash("sha256")
      .update(connection.baseURL ?? "")
      .digest("hex");
    this.name = `${connection.name}/${model}@${address.slice(0, 12)}`;
    this.#model = model;
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
        { model: this.#model, input, encoding_format: "float" },
        { signal: callSignal },
      ),
    );
    const answer = EMBEDDINGS.safeParse(raw);
    if (!answer.success) throw this.#upstream.failure("the embeddings are malformed");
    const byIndex = new Map(
      answer.data.data.map(({ index, embedding }, place) => [index ?? place, embedding]),
    );
    if (answer.data.data.length !== input.length) {
      throw this.#upstream.failure(
        `${answer.data.data.length} embeddings for ${input.length} texts`,
      );
    }
    const vectors = input.map((_, index) => {
      const embedding = byIndex.get(index);
      if (embedding === undefined) throw this.#upstream.failure(`no embedding for text ${index}`);
      return normalize(embedding);
    });
    if (vectors.some(({ length }) => length !== vectors[0]?.length)) {
      throw this.#upstream.failure("the embeddings have different dimensions");
    }
    return vectors;
  }
}

function messages({ system, user }: Prompt): OpenAI.ChatCompletionMessageParam[] {
  return [
    { role: "system", content: system },
    { role: "user", content: user },
  ];
}
