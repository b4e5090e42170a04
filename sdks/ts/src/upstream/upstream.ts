/** Calls to a service, with a timeout on silence and failures turned into Problems. */

import type { z } from "zod";

import { Problem } from "../problem.js";
import { Watchdog } from "./silence.js";

/** Retries after a response of 429 or 5xx, or a failed connection. */
export const RETRIES = 2;

/** Characters of an upstream's error message that are passed on. */
const MESSAGE_LENGTH = 300;

/** A service and how to reach it. */
export interface Connection {
  name: string;
  /** Undefined for a service that needs none. */
  apiKey: string | undefined;
  /** Undefined for the client's default. */
  baseURL: string | undefined;
  /** How long the service may be silent. */
  seconds: number;
}

export class Upstream {
  /**
   * @param name The service's name in messages.
   * @param seconds How long the service may be silent.
   * @param key A secret that is redacted from messages, if there is one.
   */
  constructor(
    readonly name: string,
    readonly seconds: number,
    readonly key: string | undefined,
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

  /** The pieces of a streamed answer, each within `seconds` of the last; throws as `call` does. */
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

  /** What the service sent; throws a `failure` with the message `fault` unless it matches `schema`. */
  parse<T>(schema: z.ZodType<T>, raw: unknown, fault: string): T {
    const parsed = schema.safeParse(raw);
    if (!parsed.success) throw this.failure(fault);
    return parsed.data;
  }

  /** The values in the order of their indices; throws a `failure` unless each of `count` inputs has one. */
  inOrder<T>(
    values: readonly (readonly [index: number, value: T])[],
    count: number,
    output: string,
    input: string,
  ): T[] {
    if (values.length !== count) {
      throw this.failure(`${values.length} ${output}s for ${count} ${input}s`);
    }
    const byIndex = new Map(values);
    return Array.from({ length: count }, (_, index) => {
      const value = byIndex.get(index);
      if (value === undefined) throw this.failure(`no ${output} for ${input} ${index}`);
      return value;
    });
  }

  /** A Problem `bad_gateway` that names the service; the key is redacted from `message`. */
  failure(message: string): Problem {
    return new Problem("bad_gateway", `${this.name}: ${this.#redacted(message)}`);
  }

  #problem(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    if (error instanceof Problem) return error;
    return this.failure(describeError(error));
  }

  #redacted(message: string): string {
    const clean = this.key === undefined ? message : message.replaceAll(this.key, "[key]");
    return clean.length > MESSAGE_LENGTH ? `${clean.slice(0, MESSAGE_LENGTH)}…` : clean;
  }
}

/** An error message with its causes: "Connection error." alone explains nothing. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.message || error.name;
  return error.cause instanceof Error ? `${own} ${describeError(error.cause)}` : own;
}
