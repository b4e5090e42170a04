/** Calls to a service: watched, and with one kind of failure. */

import { Problem } from "../problem.js";
import { Watchdog } from "./watchdog.js";

/** Tries after the first one, of an answer of 429 or 5xx or a connection that fails. */
export const RETRIES = 2;

/** Enough of an upstream's words to see what is wrong. */
const MESSAGE_LENGTH = 300;

export class Upstream {
  /**
   * @param name As it stands in messages.
   * @param seconds The silence that is borne.
   * @param key Never to be seen in a message.
   */
  constructor(
    readonly name: string,
    readonly seconds: number,
    readonly key?: string,
  ) {}

  /** @throws Problem `bad_gateway`, `timeout`, or the reason of `signal`. */
  async call<T>(signal: AbortSignal, run: (signal: AbortSignal) => PromiseLike<T>): Promise<T> {
    const watchdog = new Watchdog(this.seconds, signal);
    try {
      return await watchdog.wait(run(watchdog.signal));
    } catch (error) {
      throw this.#problem(error, watchdog.signal);
    } finally {
      watchdog.release();
    }
  }

  /** The pieces of a streamed answer, each within the silence that is borne; throws as `call` does. */
  async *stream<T>(
    signal: AbortSignal,
    open: (signal: AbortSignal) => PromiseLike<AsyncIterable<T>>,
  ): AsyncGenerator<T, void, undefined> {
    const watchdog = new Watchdog(this.seconds, signal);
    try {
      const pieces = (await watchdog.wait(open(watchdog.signal)))[Symbol.asyncIterator]();
      for (;;) {
        const next = await watchdog.wait(pieces.next());
        if (next.done === true) return;
        yield next.value;
      }
    } catch (error) {
      throw this.#problem(error, watchdog.signal);
    } finally {
      watchdog.release();
    }
  }

  failure(message: string): Problem {
    return new Problem("bad_gateway", `${this.name}: ${this.#redacted(message)}`);
  }

  #problem(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    if (error instanceof Problem) return error;
    return this.failure(explained(error));
  }

  #redacted(message: string): string {
    const clean = this.key === undefined ? message : message.replaceAll(this.key, "[key]");
    return clean.length > MESSAGE_LENGTH ? `${clean.slice(0, MESSAGE_LENGTH)}…` : clean;
  }
}

/** An error and what caused it: "Connection error." alone helps nobody. */
function explained(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.message || error.name;
  return error.cause instanceof Error ? `${own} ${explained(error.cause)}` : own;
}
