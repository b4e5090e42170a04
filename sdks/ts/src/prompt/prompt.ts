/** Prompts for language models. */

import type { Prompt } from "../llm/llm.js";
import type { Question, ReaderMode } from "../reader/reader.js";
import type { Chunk } from "../retrieve/chunk.js";

const BASIC =
  "You answer questions from notes. Use only what the notes say, in as few words as possible. " +
  "After each fact, cite its note, as [1]. If the notes do not say, answer exactly: " +
  "No information available.";

const SYSTEM: Record<ReaderMode, string> = {
  basic: BASIC,
  augmented:
    `${BASIC} The notes may describe different times and contradict each other: order them by date, ` +
    "relative to the question's date, and trust the latest.",
};

const RERANK_SYSTEM =
  "You judge how well each note answers a question. Reply with nothing but a JSON object " +
  '{"scores": [...]}, one number from 0 to 10 for each note, in the order of the notes.';

/** The fields of a chunk that a note shows. */
export type Note = Pick<Chunk, "path" | "text" | "title" | "metadata">;

export function readerPrompt(
  question: Pick<Question, "text" | "date" | "readerMode">,
  chunks: readonly Note[],
): Prompt {
  return {
    system: SYSTEM[question.readerMode],
    user: userMessage(question.text, question.date, question.readerMode, chunks),
  };
}

export function rerankPrompt(query: string, chunks: readonly Note[]): Prompt {
  return { system: RERANK_SYSTEM, user: userMessage(query, undefined, "basic", chunks) };
}

function userMessage(
  question: string,
  date: string | undefined,
  readerMode: ReaderMode,
  chunks: readonly Note[],
): string {
  const notes = chunks.map((chunk, index) => {
    const details = readerMode === "augmented" ? detailsOf(chunk) : "";
    return `\n\n[${index + 1}] ${chunk.path}${details}\n${chunk.text}`;
  });
  const dateLine = date === undefined ? "" : `Date of the question: ${date}\n`;
  return `Notes:${notes.join("") || " none"}\n\n${dateLine}Question: ${question}`;
}

function detailsOf({ title, metadata }: Note): string {
  const details = [title, metadata?.date].filter((detail) => typeof detail === "string" && detail);
  return details.length === 0 ? "" : ` (${details.join(", ")})`;
}
