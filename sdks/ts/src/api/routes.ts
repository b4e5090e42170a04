/** The routes of the contract's core and ask profiles. */

import { Readable } from "node:stream";

import type { FastifyInstance } from "fastify";

import type { Brain } from "../brain/brain.js";
import type { NewDocument } from "../brain/source.js";
import { batchIngestEdit, ingestEdit } from "../brain/operation.js";
import { Problem } from "../problem.js";
import { documentIdOf } from "../retrieve/chunk.js";
import { elapsedMs } from "../retrieve/time.js";
import { answerStream } from "./ask.js";
import { parseBody, requireContentLimit } from "./decode.js";
import { json } from "./json.js";
import { ASK, CREATE_BRAIN, INGEST_BATCH, INGEST_FILE, SEARCH } from "./bodies.js";
import { BRAIN, type BrainRoute, type Services } from "./services.js";

export function addRoutes(app: FastifyInstance, services: Services): void {
  const { store, retriever, reader, pending, version } = services;

  app.get("/healthz", (_, reply) => json(reply, { ok: true }));

  app.get("/version", (_, reply) => json(reply, version));

  app.get("/v1/brains", (_, reply) =>
    json(reply, { items: store.ids().map((brainId) => ({ brainId })) }),
  );

  app.post("/v1/brains", async (request, reply) => {
    const { brainId, description } = parseBody(CREATE_BRAIN, request.body);
    const created = await store.create(brainId, description);
    return json(reply.code(201), brainInfo(created));
  });

  app.get<BrainRoute>(BRAIN, async (request, reply) =>
    json(reply, brainInfo(await store.get(request.params.brainId))),
  );

  app.delete<BrainRoute>(BRAIN, async (request, reply) => {
    const { brainId } = request.params;
    store.requireBrain(brainId);
    if (request.headers["x-confirm-delete"] !== "yes") {
      throw new Problem(
        "confirmation_required",
        "deleting a brain requires the header X-Confirm-Delete: yes",
      );
    }
    await store.delete(brainId);
    return reply.code(204).send();
  });

  app.post<BrainRoute>(`${BRAIN}/ingest/file`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const document = parseBody(INGEST_FILE, request.body);
    requireContentLimit([document.content]);
    const chunks = await target.edit(ingestEdit(document), pending.signalOf(reply));
    return json(reply, { ...ingestResult(document, chunks), tookMs: elapsedMs(started) });
  });

  app.post<BrainRoute>(`${BRAIN}/ingest/batch`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const { documents } = parseBody(INGEST_BATCH, request.body);
    requireContentLimit(documents.map(({ content }) => content));
    const chunks = await target.edit(batchIngestEdit(documents), pending.signalOf(reply));
    const totalMs = elapsedMs(started);
    // A batch is stored as a whole, so each document reports an equal share of the time.
    const tookMs = Math.round((totalMs / documents.length) * 1000) / 1000;
    const items = documents.map((document) => ({ ...ingestResult(document, chunks), tookMs }));
    return json(reply, { items, tookMs: totalMs });
  });

  app.post<BrainRoute>(`${BRAIN}/search`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const search = parseBody(SEARCH, request.body);
    const { chunks, trace } = await retriever.retrieve(target, search, pending.signalOf(reply));
    return json(reply, { chunks, tookMs: elapsedMs(started), trace });
  });

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
      .send(Readable.from(answerStream(reader, ask, retrieval, signal, request.log)));
  });
}

function brainInfo(brain: Brain): object {
  // Nothing is ever pending: an ingest is indexed before it is acknowledged.
  return { brainId: brain.id, description: brain.description, ...brain.counts(), pending: 0 };
}

function ingestResult({ path, content }: NewDocument, chunks: ReadonlyMap<string, number>): object {
  const chunkCount = chunks.get(path) ?? 0;
  return { documentId: documentIdOf(path), path, chunkCount, bytes: content.length };
}
