/** The route of search. */

import type { FastifyInstance } from "fastify";

import { elapsedMs } from "../retrieve/retrieve.js";
import { SEARCH } from "./bodies.js";
import { parseBody } from "./decode.js";
import { json } from "./respond.js";
import { BRAIN, type BrainRoute, type Services } from "./services.js";

export function addSearchRoute(
  app: FastifyInstance,
  { store, retriever, pending }: Services,
): void {
  app.post<BrainRoute>(`${BRAIN}/search`, async (request, reply) => {
    const started = performance.now();
    const target = await store.get(request.params.brainId);
    const search = parseBody(SEARCH, request.body);
    const { chunks, trace } = await retriever.retrieve(target, search, pending.signalOf(reply));
    return json(reply, { chunks, tookMs: elapsedMs(started), trace });
  });
}
