/**
 * One call over HTTP, with its limits.
 *
 * Not with `fetch`: that reports a status of 407 as a failed connection, sends a POST again after a 421, and gives up
 * after 16 KiB of headers or five minutes of silence, whatever the limits of the client are.
 */

import http from "node:http";
import https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { urlToHttpOptions } from "node:url";

import { CallError } from "./errors.js";
import { decodeObject, encode, type JsonObject } from "./json.js";

/** As much of an error's body is read. */
const MAX_PROBLEM_BYTES = 1 << 20;
const MAX_HEADER_BYTES = 1 << 20;

export interface Settings {
  base: URL;
  token: string | undefined;
  idleMs: number;
  deadlineMs: number;
  retries: number;
  /** Keeps connections. */
  agent: http.Agent;
}

export interface Target {
  brain: string;
  route: "ask" | "search" | "ingest/file";
  /** The media type of a success. */
  media: string;
}

export class Call {
  readonly #settings: Settings;
  readonly #target: Target;
  readonly #limits = new AbortController();
  readonly #signal: AbortSignal;
  readonly #deadline: NodeJS.Timeout;
  readonly #end: number;
  #request: http.ClientRequest | undefined;

  constructor(settings: Settings, target: Target, signal: AbortSignal | undefined) {
    this.#settings = settings;
    this.#target = target;
    this.#signal = AbortSignal.any([this.#limits.signal, ...(signal ? [signal] : [])]);
    this.#end = performance.now() + settings.deadlineMs;
    this.#deadline = this.#abortAfter(
      settings.deadlineMs,
      "the call took longer than its deadline",
    );
  }

  /** End the request, if it has not ended. */
  end(): void {
    clearTimeout(this.#deadline);
    this.#request?.destroy();
  }

  /**
   * Send the request, again if the daemon refuses it and allows that.
   *
   * @returns a success of the media type, whose body has not been read.
   */
  async send(request: JsonObject): Promise<http.IncomingMessage> {
    const body = encode(request);
    for (let attempt = 0; ; attempt++) {
      const response = await this.#within("connection", () => this.#open(body));
      if (isSuccess(response)) {
        requireReadable(response, this.#target.media);
        return response;
      }
      const problem = await this.#problem(response);
      const delay = retryAfterMs(response);
      if (
        delay === undefined ||
        attempt >= this.#settings.retries ||
        this.#signal.aborted ||
        performance.now() + delay >= this.#end
      ) {
        throw problem;
      }
      this.#request?.destroy();
      await this.#within("connection", () => sleep(delay, undefined, { signal: this.#signal }));
    }
  }

  /** Yield the body as it comes. */
  async *reads(response: http.IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
    const reads = response[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
    for (;;) {
      const idle = this.#abortAfter(this.#settings.idleMs, SILENCE);
      const read = await this.#within("cut", () => reads.next()).finally(() => {
        clearTimeout(idle);
      });
      if (read.done) return;
      yield read.value;
    }
  }

  #abortAfter(ms: number, message: string): NodeJS.Timeout {
    const abort = (): void => {
      this.#limits.abort(new CallError("timeout", message));
    };
    return setTimeout(abort, ms);
  }

  /** Await something; if it fails, that is because of a limit, or else of this kind. */
  async #within<T>(kind: "connection" | "cut", start: () => Promise<T>): Promise<T> {
    try {
      this.#signal.throwIfAborted();
      return await start();
    } catch (cause) {
      this.#signal.throwIfAborted();
      throw new CallError(kind, String(cause), { cause });
    }
  }

  async #open(body: string): Promise<http.IncomingMessage> {
    const { base, token, idleMs, agent } = this.#settings;
    const { brain, route, media } = this.#target;
    const path = base.pathname.replace(/\/+$/, "");
    const request = (base.protocol === "https:" ? https : http).request({
      ...urlToHttpOptions(base),
      // As it is: a URL would remove the dots of the brain "..".
      path: `${path}/v1/brains/${encodeURIComponent(brain)}/${route}${base.search}`,
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: media,
        "Accept-Encoding": "identity",
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
      // A kept connection may end while the request is on its way; an ingest must not be sent again.
      agent: route === "ingest/file" ? false : agent,
      maxHeaderSize: MAX_HEADER_BYTES,
      signal: this.#signal,
      // Until the response has begun; bytes that are sent count, too.
      timeout: idleMs,
    });
    this.#request = request;
    request.once("timeout", () => {
      this.#limits.abort(new CallError("timeout", SILENCE));
    });
    try {
      return await new Promise((resolve, reject) => {
        request.once("response", (response) => {
          request.removeAllListeners("timeout");
          resolve(response);
        });
        // It stays: an error after the response must not end the process.
        request.on("error", reject);
        request.end(body);
      });
    } catch (error) {
      // A kept connection that had ended: nothing of a response has come, and no ingest is sent on one.
      const hasEnded = error instanceof Error && "code" in error && ENDED.includes(error.code);
      if (request.reusedSocket && hasEnded && !this.#signal.aborted) return await this.#open(body);
      throw error;
    }
  }

  /** The error of a response that is no success, whatever its body is. */
  async #problem(response: http.IncomingMessage): Promise<CallError> {
    const status = response.statusCode;
    let code: unknown;
    try {
      const parts: Buffer[] = [];
      let size = 0;
      for await (const read of this.reads(response)) {
        parts.push(read);
        size += read.length;
        if (size > MAX_PROBLEM_BYTES) break;
      }
      code = decodeObject(Buffer.concat(parts)).code;
    } catch {
      // The status says enough.
    }
    const message = `the daemon answered ${String(status)}`;
    return new CallError("http", message, {
      status,
      code: typeof code === "string" ? code : undefined,
    });
  }
}

/** What Node reports of a connection that has ended; "socket hang up" is an ECONNRESET. */
const ENDED: unknown[] = ["ECONNRESET", "EPIPE"];

const SILENCE = "no byte arrived for longer than the limit";

function isSuccess({ statusCode = 0 }: http.IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

function requireReadable({ headers }: http.IncomingMessage, media: string): void {
  const encoding = (headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding !== "identity") {
    throw new CallError("protocol", `the response is encoded as ${encoding}`);
  }
  const given = (headers["content-type"] ?? "").replace(/;.*/s, "").trim().toLowerCase();
  if (given !== media) {
    throw new CallError("protocol", `the response is ${given || "of no type"}, not ${media}`);
  }
}

/** Milliseconds after which a request may be repeated that was refused; undefined if it may not. */
function retryAfterMs({ statusCode, headers }: http.IncomingMessage): number | undefined {
  const value = headers["retry-after"] ?? "";
  if (statusCode !== 429 && statusCode !== 503) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  // A date begins with a day of the week, and is always GMT, as asctime's form does not say.
  if (!/^[A-Z][a-z]+,? /.test(value)) return undefined;
  const moment = Date.parse(value.endsWith(" GMT") ? value : `${value} GMT`);
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - Date.now());
}
