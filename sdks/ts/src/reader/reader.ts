import type { Usage } from "../llm/llm.js";
import type { Chunk } from "../retrieve/chunk.js";

export type ReaderMode = "basic" | "augmented";

export interface Question {
  text: string;
  date: string | undefined;
  readerMode: ReaderMode;
  /** Overrides the configured model. */
  model: string | undefined;
  chunks: readonly Chunk[];
}

/** Pieces of the answer, then the chunks that it cites. */
export type ReaderEvent =
  { type: "text"; text: string } | { type: "end"; cited: readonly Chunk[]; usage?: Usage };

export interface Reader {
  /** @throws Problem `bad_gateway` or `timeout` if the service fails, even in mid-answer. */
  read(question: Question, signal: AbortSignal): AsyncIterable<ReaderEvent>;
}
