/** The reader `fake`: answers with the retrieved sentence that shares most terms with the question. */

import type { Chunk } from "../retrieve/chunk.js";
import { withoutStopWords } from "../text/stopWords.js";
import { terms } from "../text/terms.js";
import { trimCharacters } from "../text/trim.js";
import type { Question, Reader, ReaderEvent } from "./reader.js";

const NO_ANSWER = "No information available.";

const SENTENCE = /[^.!?\n]*[.!?\n]|[^.!?\n]+/g;
const WORD = /[^ ]+ */g;
const BLANKS = " \t\r\n\f\v";

export class FakeReader implements Reader {
  // eslint-disable-next-line @typescript-eslint/require-await -- readers that call services await
  async *read(question: Question): AsyncGenerator<ReaderEvent> {
    const { sentence, source } = bestSentence(question.text, question.chunks);
    for (const text of sentence.match(WORD) ?? []) yield { type: "text", text };
    yield { type: "end", cited: source === undefined ? [] : [source] };
  }
}

/** The sentence with most distinct question terms, stop words excluded; the first one in rank order. */
function bestSentence(
  question: string,
  chunks: readonly Chunk[],
): { sentence: string; source?: Chunk } {
  const questionTerms = new Set(withoutStopWords(terms(question)));
  let best: { sentence: string; source?: Chunk } = { sentence: NO_ANSWER };
  let bestScore = 0;
  for (const chunk of chunks) {
    for (const sentence of sentences(chunk.text)) {
      const score = new Set(terms(sentence).filter((term) => questionTerms.has(term))).size;
      if (score > bestScore) {
        best = { sentence, source: chunk };
        bestScore = score;
      }
    }
  }
  return best;
}

function sentences(text: string): string[] {
  return (text.match(SENTENCE) ?? [])
    .map((sentence) => trimCharacters(sentence, BLANKS))
    .filter(Boolean);
}
