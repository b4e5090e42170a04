/** OpenAI's chat API, and services with the same. */

import type OpenAI from "openai";
import { z } from "zod";

import { connect } from "../upstream/openai.js";
import type { Connection, Upstream } from "../upstream/upstream.js";
import type { ChatModel, ChatPiece, Prompt } from "./llm.js";

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
      const fault = "a piece of the answer is malformed";
      const { choices, usage } = this.#upstream.parse(CHAT_PIECE, raw, fault);
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
    const { choices } = this.#upstream.parse(CHAT_ANSWER, raw, "the answer is malformed");
    return choices[0].message.content;
  }
}

function messages({ system, user }: Prompt): OpenAI.ChatCompletionMessageParam[] {
  return [
    { role: "system", content: system },
    { role: "user", content: user },
  ];
}
