/** A language model behind a service. */

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
   * The answer as it comes.
   *
   * @throws Problem `bad_gateway` or `timeout`, also where the answer ends before its own end.
   */
  stream(model: string, prompt: Prompt, signal: AbortSignal): AsyncIterable<ChatPiece>;

  /** The whole answer; throws as `stream` does. */
  complete(model: string, prompt: Prompt, signal: AbortSignal): Promise<string>;
}
