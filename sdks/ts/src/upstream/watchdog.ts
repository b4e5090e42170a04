/** Ends what an upstream does when it is silent for too long, or when nobody waits for it. */

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

  /** For the request that is watched; its reason is the Problem to answer with. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Waits for the next sign of life. A client library sleeps between its tries without looking at
   * the signal, so the wait ends here and does not rely on the library's own end.
   */
  async wait<T>(sign: PromiseLike<T>): Promise<T> {
    const { signal } = this;
    const timer = setTimeout(() => {
      const detail = `nothing came from upstream for ${this.#seconds} s`;
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

  /** Call it at the end, whatever that was: a request that still runs is cancelled. */
  release(): void {
    this.#parent.removeEventListener("abort", this.#follow);
    this.#controller.abort();
  }

  readonly #follow = (): void => {
    this.#controller.abort(this.#parent.reason);
  };
}
