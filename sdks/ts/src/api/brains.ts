/** The routes of the daemon and of brains. */

import type { FastifyInstance } from "fastify";

import type { Brain } from "../brain/brain.js";
import { Problem } from "../problem.js";
import { CREATE_BRAIN } from "./bodies.js";
import { parseBody } from "./decode.js";
import { json } from "./respond.js";
import { BRAIN, type BrainRoute, type Services } from "./services.js";

export function addBrainRoutes(app: FastifyInstance, { store, version }: Services): void {
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
}

function brainInfo(brain: Brain): object {
  // Nothing is ever pending: an ingest is indexed before it is acknowledged.
  return { brainId: brain.id, description: brain.description, ...brain.counts(), pending: 0 };
}
