import type { FastifyReply } from "fastify";

import { Problem } from "../problem.js";

/** The requests that wait for something, so that their waiting can be ended. */
export class PendingRequests {
  readonly #pending = new Set<AbortController>();

  /** Aborted when the client goes away, or the daemon stops, before the answer is out. */
  signalOf(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    const gone = (): void => {
      this.#pending.delete(controller);
      controller.abort(new Problem("internal_error", "the client has gone"));
    };
    this.#pending.add(controller);
    if (reply.raw.closed) gone();
    else reply.raw.once("close", gone);
    return controller.signal;
  }

  stop(): void {
    for (const controller of this.#pending) {
      controller.abort(new Problem("internal_error", "the daemon is stopping"));
    }
  }
}
