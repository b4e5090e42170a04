/** A reader that uses a language model. */

import type { ChatModel, Usage } from "../llm/llm.js";
import { Problem } from "../problem.js";
import { citedNotes } from "../prompt/answer.js";
import { readerPrompt } from "../prompt/prompt.js";
import type { Question, Reader, ReaderEvent } from "./reader.js";

export class LLMReader implements Reader {
  readonly #chat: ChatModel;
  readonly #model: string;

  constructor(chat: ChatModel, model: string) {
    this.#chat = chat;
    this.#model = model;
  }

  async *read(question: Question, signal: AbortSignal): AsyncGenerator<ReaderEvent> {
    const prompt = readerPrompt(question, question.chunks);
    const joiner = new SurrogateJoiner();
    let answer = "";
    let usage: Usage | undefined;
    for await (const piece of this.#chat.stream(question.model ?? this.#model, prompt, signal)) {
      if (piece.type === "usage") {
        usage = piece.usage;
        continue;
      }
      const text = joiner.push(piece.text);
      if (text === "") continue;
      answer += text;
      yield { type: "text", text };
    }
    const rest = joiner.end();
    if (rest !== "") yield { type: "text", text: rest };
    if ((answer + rest).trim() === "")
      throw new Problem("bad_gateway", "the model returned no text");
    const cited = citedNotes(answer, question.chunks);
    yield usage === undefined ? { type: "end", cited } : { type: "end", cited, usage };
  }
}

/** Holds back half a surrogate pair until the other half arrives: models split text at their tokens. */
class SurrogateJoiner {
  #pending = "";

  push(piece: string): string {
    const text = this.#pending + piece;
    const whole = /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
    this.#pending = text.slice(whole.length);
    return whole.toWellFormed();
  }

  end(): string {
    return this.#pending.toWellFormed();
  }
}
