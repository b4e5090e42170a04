import type { TestContext } from "node:test";

/** The timers that are set during a test. They expire when the test says so, or after their time. */
export class Timers {
  /** Their lengths in milliseconds, in order. */
  readonly lengths: number[] = [];
  readonly #last = new Map<number, () => void>();

  constructor(t: TestContext) {
    const { setTimeout } = globalThis;
    type Expire = (...values: unknown[]) => void;
    t.mock.method(globalThis, "setTimeout", (expire: Expire, length = 0, ...values: unknown[]) => {
      this.lengths.push(length);
      // Node's own client passes values; a connection that took a while failed without them.
      this.#last.set(length, () => {
        expire(...values);
      });
      // short limit: the one of the daemon
      return setTimeout(expire, length, ...values);
    });
  }

  /** Let the last timer of a length expire now. */
  expire(length: number): void {
    this.#last.get(length)?.();
  }
}
