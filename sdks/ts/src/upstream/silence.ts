/** Cancels a call when the upstream is silent for too long, or when its caller gives up. */

import { Problem } from "../problem.js";

export class Watchdog {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #seconds: number;

  constructor(seconds: number, parent: AbortSignal) {
    this.#seconds = seconds;
    this.#parent = parent;
    if (parent.aborted) this.#follow();
    else parent.addEventListener("abort", this.#follow, { once: true });
  }

  /** The signal for the watched request; its reason is the Problem to respond with. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Wait for the next sign of life. Client libraries sleep between retries without checking the
   * signal, so the wait itself ends, whatever the library does.
   *
   * @throws Problem `timeout` after `seconds` of silence; or the reason of the parent signal.
   */
  async wait<T>(sign: PromiseLike<T>): Promise<T> {
    const { signal } = this;
    const timer = setTimeout(() => {
      const detail = `the upstream was silent for ${this.#seconds} s`;
      this.#controller.abort(new Problem("timeout", detail));
    }, this.#seconds * 1000);
    let onAbort: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => {
        reject(signal.reason as Error);
      };
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      return await Promise.race([sign, aborted]);
    } finally {
      clearTimeout(timer);
      if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
    }
  }

  /** Stop watching and cancel a request that is still running. Always call it at the end. */
  release(): void {
    this.#parent.removeEventListener("abort", this.#follow);
    this.#controller.abort();
  }

  readonly #follow = (): void => {
    this.#controller.abort(this.#parent.reason);
  };
}
