/** The route that applies several operations as one change. */

import type { FastifyInstance } from "fastify";

import { operationsEdit } from "../brain/operation.js";
import { Problem } from "../problem.js";
import { BATCH_OPS } from "./bodies.js";
import { parseBody, requireContentLimit } from "./decode.js";
import { json } from "./respond.js";
import { type BrainRoute, DOCUMENTS, type Services } from "./services.js";

const OPS_LIMIT = 1024;

export function addBatchRoute(app: FastifyInstance, { store, pending }: Services): void {
  app.post<BrainRoute>(`${DOCUMENTS}/batch-ops`, async (request, reply) => {
    const brain = await store.get(request.params.brainId);
    const { ops, reason } = parseBody(BATCH_OPS, request.body);
    if (ops.length > OPS_LIMIT) {
      throw new Problem("payload_too_large", `ops: has more than ${OPS_LIMIT} items`);
    }
    requireContentLimit(ops.flatMap((op) => ("content" in op ? [op.content] : [])));
    await brain.change(operationsEdit(ops), pending.signalOf(reply), reason);
    return json(reply, { committed: ops.length });
  });
}
