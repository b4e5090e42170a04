/** The client of a memory daemon: `ask` streams the events of an answer, `search` and `ingest` return one response. */

import http from "node:http";
import https from "node:https";

import { Call, type Settings, type Target } from "./call.js";
import { CallError } from "./errors.js";
import { decodeObject, type JsonObject } from "./json.js";
import { EventDecoder } from "./sse.js";

export { CallError, type Kind } from "./errors.js";
export { type JsonObject } from "./json.js";

/** A timer of Node that is set for longer fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface ClientOptions {
  /** Sent as `Authorization: Bearer`. */
  token?: string | undefined;
  /** The longest silence of a response, in milliseconds; a minute by default. */
  idleMs?: number;
  /** The longest that a call may take, with its repetitions, in milliseconds; five minutes by default. */
  deadlineMs?: number;
  /**
   * How often a call is repeated that the daemon has refused with 429 or 503 and `Retry-After`; twice by default.
   * Nothing else is repeated.
   */
  retries?: number;
}

export interface CallOptions {
  /** Ends the call, which then throws the signal's reason. */
  signal?: AbortSignal;
}

const YIELDED = ["retrieve", "answer_delta", "citation", "done"] as const;

/** An event of an answer. Integers beyond 2^53 are bigints. */
export interface Event {
  name: (typeof YIELDED)[number];
  data: JsonObject;
}

/** A client of one daemon. */
export class MemoryClient {
  readonly #settings: Settings;

  /**
   * @param baseUrl the daemon's address; it may have a path and a query, which each request keeps.
   * @throws TypeError if it is not a URL of HTTP.
   */
  constructor(baseUrl: string, options: ClientOptions = {}) {
    const { token, idleMs = 60_000, deadlineMs = 300_000, retries = 2 } = options;
    const base = new URL(baseUrl);
    if (!/^https?:$/.test(base.protocol)) throw new TypeError(`not a URL of HTTP: ${baseUrl}`);
    const { Agent } = base.protocol === "https:" ? https : http;
    const agent = new Agent({ keepAlive: true });
    this.#settings = {
      base,
      token,
      idleMs: Math.min(idleMs, MAX_TIMER_MS),
      deadlineMs: Math.min(deadlineMs, MAX_TIMER_MS),
      retries,
      agent,
    };
  }

  /** Close the connections that are kept. */
  close(): void {
    this.#settings.agent.destroy();
  }

  /**
   * Yield the events of an answer as they come; the last one is `done`. To `break` ends the request.
   *
   * @throws CallError if the answer is not complete, whatever has been yielded.
   */
  async *ask(
    brain: string,
    request: JsonObject,
    { signal }: CallOptions = {},
  ): AsyncGenerator<Event, void, undefined> {
    const target = { brain, route: "ask", media: "text/event-stream" } as const;
    const call = new Call(this.#settings, target, signal);
    try {
      const decoder = new EventDecoder();
      for await (const read of call.reads(await call.send(request))) {
        for (const { name, data } of decoder.feed(read)) {
          const event = toEvent(name, data);
          if (event === undefined) continue;
          yield event;
          if (event.name === "done") return;
        }
      }
      throw new CallError("cut", "the answer ended before done");
    } finally {
      call.end();
    }
  }

  /**
   * Return the body of a search. Integers beyond 2^53 are bigints.
   *
   * @throws CallError
   */
  search(brain: string, request: JsonObject, { signal }: CallOptions = {}): Promise<JsonObject> {
    return this.#fetch({ brain, route: "search", media: "application/json" }, request, signal);
  }

  /**
   * Store a document.
   *
   * @throws CallError, after which it may or may not be stored.
   */
  ingest(brain: string, document: JsonObject, { signal }: CallOptions = {}): Promise<JsonObject> {
    return this.#fetch(
      { brain, route: "ingest/file", media: "application/json" },
      document,
      signal,
    );
  }

  async #fetch(
    target: Target,
    request: JsonObject,
    signal: AbortSignal | undefined,
  ): Promise<JsonObject> {
    const call = new Call(this.#settings, target, signal);
    try {
      const parts: Buffer[] = [];
      for await (const read of call.reads(await call.send(request))) parts.push(read);
      return decodeObject(Buffer.concat(parts));
    } finally {
      call.end();
    }
  }
}

/** The event to yield; undefined if this client does not know it. */
function toEvent(name: string, bytes: Buffer): Event | undefined {
  if (name === "error") {
    const { code, message } = decodeObject(bytes);
    throw new CallError("daemon", `the answer failed: ${String(message)}`, {
      code: typeof code === "string" ? code : undefined,
    });
  }
  const known = YIELDED.find((each) => each === name);
  if (known === undefined) return undefined;
  const data = decodeObject(bytes);
  if (known === "done" && data.ok !== true) throw new CallError("daemon", "the answer failed");
  return { name: known, data };
}
