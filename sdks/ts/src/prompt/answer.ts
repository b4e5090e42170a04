/** Parsing the replies of language models. */

import { z } from "zod";

const CITATION = /\[([0-9]+(?: *, *[0-9]+)*)\]/g;

const SCORES = z.object({ scores: z.array(z.number()) });

/** The notes that an answer cites, in order of first citation. */
export function citedNotes<T>(answer: string, notes: readonly T[]): T[] {
  const citations = Array.from(answer.matchAll(CITATION), ([, numbers = ""]) => numbers.split(","));
  const indices = new Set(citations.flat().map((number) => Number(number) - 1));
  return Array.from(indices, (index) => notes[index]).filter((note) => note !== undefined);
}

/** The scores in a reranker's reply; undefined unless there is one finite number per document. */
export function scoresIn(reply: string, documents: number): number[] | undefined {
  const object = reply.slice(reply.indexOf("{"), reply.lastIndexOf("}") + 1);
  try {
    const parsed = SCORES.safeParse(JSON.parse(object));
    return parsed.data?.scores.length === documents ? parsed.data.scores : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
