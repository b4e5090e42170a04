/** The route of the contract's profile `events`. */

import type { FastifyInstance } from "fastify";

import { BRAIN, type BrainRoute, type Services } from "./services.js";
import { ChangeStream } from "./stream.js";

export function addEventRoutes(app: FastifyInstance, { store, pending }: Services): void {
  app.get<BrainRoute>(
    `${BRAIN}/events`,
    // HEAD would wait for the end of a stream that never ends.
    { exposeHeadRoute: false },
    async (request, reply) => {
      const { feed } = await store.get(request.params.brainId);
      const stream = new ChangeStream(feed);
      pending.signalOf(reply).addEventListener("abort", () => {
        stream.end();
      });
      return reply
        .header("Content-Type", "text/event-stream")
        .header("Cache-Control", "no-store")
        .send(stream);
    },
  );
}
