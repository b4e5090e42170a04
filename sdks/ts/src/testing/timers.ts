import type { TestContext } from "node:test";

/** The timers that are set during a test. They expire when the test says so, or after their time. */
export class Timers {
  /** Their lengths in milliseconds, in order. */
  readonly lengths: number[] = [];
  readonly #last = new Map<number, () => void>();

  constructor(t: TestContext) {
    const { setTimeout } = globalThis;
    t.mock.method(globalThis, "setTimeout", (expire: () => void, length = 0) => {
      this.lengths.push(length);
      this.#last.set(length, expire);
      // short limit: the one of the daemon
      return setTimeout(expire, length);
    });
  }

  /** Let the last timer of a length expire now. */
  expire(length: number): void {
    this.#last.get(length)?.();
  }
}
