/** Anthropic's Messages API. */

import Anthropic from "@anthropic-ai/sdk";
import { z } from "zod";

import { type Connection, RETRIES, Upstream } from "../upstream/upstream.js";
import type { ChatModel, ChatPiece, Prompt } from "./llm.js";

const MAX_TOKENS = 1024;

/** The known events of a stream; keys besides these are ignored. */
const EVENT = z.union([
  z.object({
    type: z.literal("message_start"),
    message: z.object({ usage: z.object({ input_tokens: z.int() }).nullish().catch(undefined) }),
  }),
  z.object({
    type: z.literal("content_block_delta"),
    delta: z.union([
      z.object({ type: z.literal("text_delta"), text: z.string() }),
      z.object({ type: z.string().refine((type) => type !== "text_delta") }),
    ]),
  }),
  z.object({
    type: z.literal("message_delta"),
    usage: z.object({ output_tokens: z.int() }).nullish().catch(undefined),
  }),
  z.object({ type: z.enum(["message_stop", "content_block_start", "content_block_stop"]) }),
]);

const ANSWER = z.object({
  content: z.array(
    z.union([
      z.object({ type: z.literal("text"), text: z.string() }),
      z.object({ type: z.string().refine((type) => type !== "text") }),
    ]),
  ),
});

export class AnthropicChat implements ChatModel {
  readonly #client: Anthropic;
  readonly #upstream: Upstream;

  constructor({ name, apiKey, baseURL, seconds }: Connection) {
    this.#client = new Anthropic({
      apiKey: apiKey ?? null,
      authToken: null,
      baseURL: baseURL ?? null,
      maxRetries: RETRIES,
      // As for OpenAI: the watchdog must fire first.
      timeout: 2000 * seconds,
      logLevel: "off",
    });
    this.#upstream = new Upstream(name, seconds, apiKey);
  }

  async *stream(model: string, prompt: Prompt, signal: AbortSignal): AsyncGenerator<ChatPiece> {
    let inputTokens: number | undefined;
    const events = this.#upstream.stream(signal, (callSignal) =>
      this.#client.messages.create(
        { ...body(model, prompt), stream: true },
        { signal: callSignal },
      ),
    );
    for await (const raw of events) {
      const event = this.#upstream.parse(EVENT, raw, "an event of the answer is malformed");
      if (event.type === "message_start") {
        inputTokens = event.message.usage?.input_tokens;
      } else if (event.type === "content_block_delta") {
        if ("text" in event.delta && event.delta.text !== "") {
          yield { type: "text", text: event.delta.text };
        }
      } else if (event.type === "message_delta") {
        const outputTokens = event.usage?.output_tokens;
        if (inputTokens !== undefined && outputTokens !== undefined) {
          yield { type: "usage", usage: { inputTokens, outputTokens } };
        }
      } else if (event.type === "message_stop") {
        return;
      }
    }
    throw this.#upstream.failure("the answer ended early");
  }

  async complete(model: string, prompt: Prompt, signal: AbortSignal): Promise<string> {
    const raw = await this.#upstream.call(signal, (callSignal) =>
      this.#client.messages.create(body(model, prompt), { signal: callSignal }),
    );
    const { content } = this.#upstream.parse(ANSWER, raw, "the answer is malformed");
    return content.map((block) => ("text" in block ? block.text : "")).join("");
  }
}

function body(model: string, { system, user }: Prompt): Anthropic.MessageCreateParamsNonStreaming {
  return { model, max_tokens: MAX_TOKENS, system, messages: [{ role: "user", content: user }] };
}
