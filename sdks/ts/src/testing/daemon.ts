import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { pino } from "pino";

import { type Environment, configFromEnv } from "../config.js";
import { type Daemon, serve } from "../daemon/daemon.js";

export const FAKES = { JB_EMBED_PROVIDER: "fake", JB_LLM_PROVIDER: "fake" };

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  json: Record<string, unknown>;
}

/** A daemon in this process, with its own state folder. */
export class TestDaemon {
  private constructor(
    readonly root: string,
    readonly daemon: Daemon,
  ) {}

  static async start(env: Environment = FAKES, root = temporaryFolder()): Promise<TestDaemon> {
    const log = pino({ level: "silent" });
    const options = { host: "127.0.0.1", port: 0, root };
    return new TestDaemon(root, await serve(options, configFromEnv(env), log));
  }

  async stop(): Promise<void> {
    await this.daemon.stop();
    rmSync(this.root, { recursive: true, force: true });
  }

  fetch(method: string, path: string, body?: unknown, init: RequestInit = {}): Promise<Response> {
    const raw = typeof body === "string" || Buffer.isBuffer(body);
    const content = raw ? body : body === undefined ? null : JSON.stringify(body);
    return fetch(this.daemon.address + path, { method, body: content, ...init });
  }

  async send(method: string, path: string, body?: unknown, init?: RequestInit): Promise<Answer> {
    const response = await this.fetch(method, path, body, init);
    const text = await response.text();
    const isJson = response.headers.get("Content-Type")?.includes("json");
    const json = (isJson && text !== "" ? JSON.parse(text) : {}) as Record<string, unknown>;
    return { status: response.status, headers: response.headers, text, json };
  }

  /** Ask a question; returns the events of the answer as [name, data]. */
  async ask(question: object): Promise<[string, Record<string, unknown>][]> {
    return eventsIn((await this.send("POST", "/v1/brains/b/ask", question)).text);
  }
}

export function eventsIn(stream: string): [string, Record<string, unknown>][] {
  return stream
    .split("\n\n")
    .filter(Boolean)
    .map((block) => {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
      return [name ?? "", JSON.parse(data ?? "{}") as Record<string, unknown>];
    });
}

/** A folder that is removed when the tests of a file end. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "memoryd-"));
  process.once("exit", () => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** The body of an ingest request. */
export function document(path = "a.md", content: string | Buffer = "zebra", more: object = {}) {
  const contentBase64 = Buffer.from(content).toString("base64");
  return { path, contentType: "text/markdown", contentBase64, ...more };
}
