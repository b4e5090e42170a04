import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  path: string;
  headers: IncomingMessage["headers"];
  body: Record<string, unknown>;
}

type Respond = (response: ServerResponse, received: Received) => void;

/** A service with scripted responses; the last one is repeated. */
export class ScriptedUpstream {
  readonly received: Received[] = [];
  /** Requests that the client cancelled. */
  cancelled = 0;
  readonly #server: Server;
  #script: Respond[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      void this.#answer(request, response);
    });
  }

  static async start(...script: Respond[]): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream();
    upstream.#script = script;
    await new Promise<void>((resolve) => upstream.#server.listen(0, "127.0.0.1", resolve));
    return upstream;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  script(...script: Respond[]): void {
    this.#script = script;
    this.received.length = 0;
    this.cancelled = 0;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("close", () => {
      if (!response.writableFinished) this.cancelled++;
    });
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    const body = JSON.parse(Buffer.concat(pieces).toString()) as Record<string, unknown>;
    const received = { path: request.url ?? "", headers: request.headers, body };
    this.received.push(received);
    const respond = this.#script.length > 1 ? this.#script.shift() : this.#script[0];
    respond?.(response, received);
  }
}

export const silence: Respond = () => undefined;

export function status(code: number, body = "{}", headers: Record<string, string> = {}): Respond {
  return (response) => {
    response.writeHead(code, { "Content-Type": "application/json", ...headers }).end(body);
  };
}

export function json(make: (received: Received) => unknown): Respond {
  return (response, received) => {
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify(make(received)));
  };
}

/** Server-sent events: strings verbatim, objects as JSON. With `open` the response never ends. */
export function events(pieces: (string | object)[], { open = false } = {}): Respond {
  return (response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const piece of pieces) {
      if (typeof piece === "string") response.write(`data: ${piece}\n\n`);
      else {
        const name = "type" in piece ? `event: ${String(piece.type)}\n` : "";
        response.write(`${name}data: ${JSON.stringify(piece)}\n\n`);
      }
    }
    if (!open) response.end();
  };
}

/** A piece of an answer as OpenAI streams it. */
export function delta(content: string, finish_reason: string | null = null) {
  return { choices: [{ index: 0, delta: { content }, finish_reason }] };
}

/** One vector per text: its length, and 1. */
export const embeddings = json(({ body }) => ({
  data: (body.input as string[]).map((text, index) => ({ index, embedding: [text.length, 1] })),
}));

export const KEY = "sk-very-secret";

/** The time in milliseconds that the upstream may be silent, which no busy machine takes. */
export const SILENCE_MS = 600_000;

/** The environment of a daemon that uses `upstream` for every provider. */
export function upstreamEnv(upstream: ScriptedUpstream, env: Record<string, string>) {
  return {
    JB_UPSTREAM_TIMEOUT: String(SILENCE_MS / 1000),
    OPENAI_API_KEY: KEY,
    OPENAI_BASE_URL: `${upstream.address}/v1`,
    ANTHROPIC_API_KEY: KEY,
    ANTHROPIC_BASE_URL: upstream.address,
    OLLAMA_HOST: upstream.address.replace("http://", ""),
    ...env,
  };
}
