import type { Chunk } from "../ranking/chunk.js";
import type { Usage } from "../upstream/chatModel.js";

export type ReaderMode = "basic" | "augmented";

export interface Question {
  text: string;
  date: string | undefined;
  readerMode: ReaderMode;
  /** Asked for instead of the configured one. */
  model: string | undefined;
  chunks: readonly Chunk[];
}

/** Pieces of the answer, and at the end the chunks that it rests on. */
export type ReaderEvent =
  { type: "text"; text: string } | { type: "end"; cited: readonly Chunk[]; usage?: Usage };

export interface Reader {
  /** @throws Problem `bad_gateway` or `timeout` where a service fails, also amid the answer. */
  read(question: Question, signal: AbortSignal): AsyncIterable<ReaderEvent>;
}
