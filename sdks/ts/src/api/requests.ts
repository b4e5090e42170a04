import type { FastifyReply } from "fastify";

import { Problem } from "../problem.js";

/** Requests in progress, which a stop of the daemon aborts. */
export class PendingRequests {
  readonly #pending = new Set<AbortController>();
  #stopped = false;

  /** A signal that is aborted if the client disconnects or the daemon stops before the response ends. */
  signalOf(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    const onClose = (): void => {
      this.#pending.delete(controller);
      controller.abort(new Problem("internal_error", "the client has disconnected"));
    };
    this.#pending.add(controller);
    if (reply.raw.closed) onClose();
    else reply.raw.once("close", onClose);
    if (this.#stopped) stop(controller);
    return controller.signal;
  }

  /** Abort all requests, and every later one. */
  stop(): void {
    this.#stopped = true;
    for (const controller of this.#pending) stop(controller);
  }
}

function stop(controller: AbortController): void {
  controller.abort(new Problem("internal_error", "the daemon is stopping"));
}
