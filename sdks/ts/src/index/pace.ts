import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * How long a turn is. Work that begins as a request arrives has its second turn before the next request
 * is read, so others wait for two.
 */
const TURN_MS = 3;

/** Lets long work give other requests their turn. */
export class Pace {
  readonly #signal: AbortSignal | undefined;
  #started = performance.now();

  /** @param signal Ends the work. */
  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /** Whether it is the turn of others, which `rest` gives them. */
  get isOver(): boolean {
    return performance.now() - this.#started >= TURN_MS;
  }

  /** @throws The reason of the signal. */
  async rest(): Promise<void> {
    await nextTurn();
    this.#signal?.throwIfAborted();
    this.#started = performance.now();
  }
}
