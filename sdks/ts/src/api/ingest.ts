/** The routes that ingest documents. */

import type { FastifyInstance } from "fastify";

import { batchIngestEdit, ingestEdit, type NewDocument } from "../brain/ingest.js";
import { documentIdOf } from "../chunk.js";
import { elapsedMs } from "../retrieve/retrieve.js";
import { INGEST_BATCH, INGEST_FILE } from "./bodies.js";
import { parseBody, requireContentLimit } from "./decode.js";
import { json } from "./respond.js";
import { BRAIN, type BrainRoute, type Services } from "./services.js";

export function addIngestRoutes(app: FastifyInstance, { store, pending }: Services): void {
  app.post<BrainRoute>(`${BRAIN}/ingest/file`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const document = parseBody(INGEST_FILE, request.body);
    requireContentLimit([document.content]);
    const chunks = await target.change(ingestEdit(document), pending.signalOf(reply));
    return json(reply, { ...ingestResult(document, chunks), tookMs: elapsedMs(started) });
  });

  app.post<BrainRoute>(`${BRAIN}/ingest/batch`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const { documents } = parseBody(INGEST_BATCH, request.body);
    requireContentLimit(documents.map(({ content }) => content));
    const chunks = await target.change(batchIngestEdit(documents), pending.signalOf(reply));
    const totalMs = elapsedMs(started);
    // A batch is stored as a whole, so each document reports an equal share of the time.
    const tookMs = Math.round((totalMs / documents.length) * 1000) / 1000;
    const items = documents.map((document) => ({ ...ingestResult(document, chunks), tookMs }));
    return json(reply, { items, tookMs: totalMs });
  });
}

function ingestResult({ path, content }: NewDocument, chunks: ReadonlyMap<string, number>): object {
  const chunkCount = chunks.get(path) ?? 0;
  return { documentId: documentIdOf(path), path, chunkCount, bytes: content.length };
}
