/** The routes of the contract's core and ask profiles. */

import { Readable } from "node:stream";

import type { FastifyInstance, FastifyReply } from "fastify";

import type { Brain, Stored } from "../brain/brain.js";
import type { NewDocument } from "../brain/document.js";
import type { BrainStore } from "../brain/store.js";
import { Problem } from "../problem.js";
import { documentIdOf } from "../ranking/chunk.js";
import type { Retriever } from "../ranking/retrieval.js";
import type { Reader } from "../reading/reader.js";
import { elapsedMs } from "../time.js";
import { answerStream } from "./answering.js";
import { parseBody } from "./body.js";
import type { PendingRequests } from "./requests.js";
import { ASK, CREATE_BRAIN, INGEST_BATCH, INGEST_FILE, SEARCH } from "./schemas.js";

/** Bytes of content that one ingest request may carry. */
const DECODED_LIMIT = 8 * 2 ** 20;

export interface Services {
  store: BrainStore;
  retriever: Retriever;
  reader: Reader | undefined;
  pending: PendingRequests;
  version: { name: string; version: string; contract: string; runId: string | undefined };
}

interface OfBrain {
  Params: { brainId: string };
}

export function addRoutes(app: FastifyInstance, services: Services): void {
  const { store, retriever, reader, pending, version } = services;
  const brain = "/v1/brains/:brainId";

  app.get("/healthz", (_, reply) => json(reply, { ok: true }));

  app.get("/version", (_, reply) => json(reply, version));

  app.get("/v1/brains", (_, reply) =>
    json(reply, { items: store.ids().map((brainId) => ({ brainId })) }),
  );

  app.post("/v1/brains", async (request, reply) => {
    const { brainId, description } = parseBody(CREATE_BRAIN, request.body);
    const created = await store.create(brainId, description);
    return json(reply.code(201), describedBrain(created));
  });

  app.get<OfBrain>(brain, async (request, reply) =>
    json(reply, describedBrain(await store.get(request.params.brainId))),
  );

  app.delete<OfBrain>(brain, async (request, reply) => {
    const { id } = await store.get(request.params.brainId);
    if (request.headers["x-confirm-delete"] !== "yes") {
      throw new Problem("confirmation_required", "deleting a brain wants X-Confirm-Delete: yes");
    }
    await store.delete(id);
    return reply.code(204).send();
  });

  app.post<OfBrain>(`${brain}/ingest/file`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const document = parseBody(INGEST_FILE, request.body);
    const [stored] = await ingest(target, [document], pending.signalOf(reply));
    return json(reply, { ...stored, tookMs: elapsedMs(started) });
  });

  app.post<OfBrain>(`${brain}/ingest/batch`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const { documents } = parseBody(INGEST_BATCH, request.body);
    const items = await ingest(target, documents, pending.signalOf(reply));
    const tookMs = elapsedMs(started);
    // A batch is stored at once; each of its documents gets an equal share of the time.
    const share = Math.round((tookMs / items.length) * 1000) / 1000;
    return json(reply, { items: items.map((item) => ({ ...item, tookMs: share })), tookMs });
  });

  app.post<OfBrain>(`${brain}/search`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const search = parseBody(SEARCH, request.body);
    const { chunks, trace } = await retriever.retrieve(target, search, pending.signalOf(reply));
    return json(reply, { chunks, tookMs: elapsedMs(started), trace });
  });

  app.post<OfBrain>(`${brain}/ask`, async (request, reply) => {
    const target = await store.get(request.params.brainId);
    const ask = parseBody(ASK, request.body);
    if (reader === undefined) {
      throw new Problem("bad_gateway", "no reader: start the daemon with JB_LLM_PROVIDER set");
    }
    const signal = pending.signalOf(reply);
    const found = await retriever.retrieve(target, { ...ask, query: ask.question }, signal);
    return reply
      .header("Content-Type", "text/event-stream")
      .header("Cache-Control", "no-store")
      .send(Readable.from(answerStream(reader, ask, found, signal, request.log)));
  });
}

function json(reply: FastifyReply, body: object): FastifyReply {
  // To a string, Fastify would add a charset, which JSON has none of.
  return reply.header("Content-Type", "application/json").send(Buffer.from(JSON.stringify(body)));
}

function describedBrain(brain: Brain): object {
  // Every ingest is indexed before it is acknowledged.
  return { brainId: brain.id, description: brain.description, ...brain.counts(), pending: 0 };
}

async function ingest(
  brain: Brain,
  documents: NewDocument[],
  signal: AbortSignal,
): Promise<object[]> {
  const size = documents.reduce((sum, { content }) => sum + content.length, 0);
  if (size > DECODED_LIMIT) {
    throw new Problem("payload_too_large", `more than ${DECODED_LIMIT} bytes of content`);
  }
  return (await brain.ingest(documents, signal)).map(described);
}

function described({ path, chunks, bytes }: Stored): object {
  return { documentId: documentIdOf(path), path, chunkCount: chunks, bytes };
}
