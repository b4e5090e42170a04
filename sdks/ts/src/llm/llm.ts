/** A language model served over HTTP. */

export interface Prompt {
  system: string;
  user: string;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
}

export type ChatPiece = { type: "text"; text: string } | { type: "usage"; usage: Usage };

export interface ChatModel {
  /**
   * The answer, streamed.
   *
   * @throws Problem `bad_gateway` or `timeout` if the service fails or the answer ends early; or the
   *   reason of `signal`.
   */
  stream(model: string, prompt: Prompt, signal: AbortSignal): AsyncIterable<ChatPiece>;

  /** The whole answer; throws as `stream` does. */
  complete(model: string, prompt: Prompt, signal: AbortSignal): Promise<string>;
}
