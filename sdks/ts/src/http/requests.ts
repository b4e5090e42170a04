import type { FastifyReply } from "fastify";

import { Problem } from "../problem.js";

/** The requests that wait for something, so that their waiting can be ended. */
export class PendingRequests {
  readonly #pending = new Set<AbortController>();
  #stopped = false;

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
    if (this.#stopped) stop(controller);
    return controller.signal;
  }

  stop(): void {
    this.#stopped = true;
    for (const controller of this.#pending) stop(controller);
  }
}

function stop(controller: AbortController): void {
  controller.abort(new Problem("internal_error", "the daemon is stopping"));
}
