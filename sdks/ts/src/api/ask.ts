/** The route of ask, and the events of an answer. */

import { Readable } from "node:stream";

import type { FastifyInstance, FastifyRequest } from "fastify";

import type { Usage } from "../llm/llm.js";
import { Problem } from "../problem.js";
import type { Reader } from "../reader/reader.js";
import type { Chunk } from "../retrieve/chunk.js";
import type { RetrievalResult } from "../retrieve/retrieve.js";
import { stringifyExactly } from "../wire/exactJson.js";
import { ASK, type Ask } from "./bodies.js";
import { parseBody } from "./decode.js";
import { problemOf } from "./respond.js";
import { BRAIN, type BrainRoute, type Services } from "./services.js";

export function addAskRoute(
  app: FastifyInstance,
  { store, retriever, reader, pending }: Services,
): void {
  app.post<BrainRoute>(`${BRAIN}/ask`, async (request, reply) => {
    const target = await store.get(request.params.brainId);
    const ask = parseBody(ASK, request.body);
    if (reader === undefined) {
      throw new Problem("bad_gateway", "no reader: start the daemon with JB_LLM_PROVIDER set");
    }
    const signal = pending.signalOf(reply);
    const retrieval = await retriever.retrieve(target, { ...ask, query: ask.question }, signal);
    return reply
      .header("Content-Type", "text/event-stream")
      .header("Cache-Control", "no-store")
      .send(Readable.from(answerStream(reader, ask, retrieval, signal, request)));
  });
}

/** The event stream of one answer. A failure becomes an `error` event; nothing is thrown. */
async function* answerStream(
  reader: Reader,
  ask: Ask,
  { chunks, trace }: RetrievalResult,
  signal: AbortSignal,
  request: FastifyRequest<BrainRoute>,
): AsyncGenerator<string> {
  yield event("retrieve", { chunks, topK: ask.topK, mode: trace.effectiveMode, trace });
  const { question: text, questionDate: date, readerMode, model } = ask;
  let answer = "";
  let cited: readonly Chunk[] = [];
  let usage: Usage | undefined;
  try {
    for await (const part of reader.read({ text, date, readerMode, model, chunks }, signal)) {
      if (part.type === "end") {
        ({ cited, usage } = part);
      } else {
        answer += part.text;
        yield event("answer_delta", { text: part.text });
      }
    }
  } catch (error) {
    const { code, detail: message } = problemOf(error, request);
    yield event("error", { code, message });
    yield event("done", { ok: false });
    return;
  }
  for (const { chunkId, path, title, score } of cited) {
    yield event("citation", {
      chunkId,
      path,
      title: title === undefined || title === "" ? path : title,
      score,
    });
  }
  yield event("done", { ok: true, answer, usage });
}

/** One server-sent event. JSON escapes line ends, so the data is one line. */
function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${stringifyExactly(data)}\n\n`;
}
