/** The life of a daemon: from its settings to the end of its last request. */

import type { AddressInfo } from "node:net";

import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";

import { BrainStore } from "./brain/store.js";
import type { Options } from "./cli.js";
import { createApp } from "./http/app.js";
import { PendingRequests } from "./http/requests.js";
import { Retriever } from "./ranking/retrieval.js";
import type { Settings } from "./settings.js";

/** Given to open requests at the end; then their connections are cut. */
const GRACE_MS = 2000;

/** What the one who starts it can mend; the message is for them. */
export class StartError extends Error {}

export interface Daemon {
  /** `http://host:port` */
  readonly address: string;
  stop(): Promise<void>;
}

type Place = Pick<Options, "host" | "port" | "root">;

/** @throws StartError */
export async function serve(options: Place, settings: Settings, log: Logger): Promise<Daemon> {
  const store = openStore(options.root, settings, log);
  const pending = new PendingRequests();
  const app = createApp(
    {
      store,
      retriever: new Retriever(settings.reranker, settings.queryPrefix),
      reader: settings.reader,
      pending,
      authToken: settings.authToken,
      version: { name: "memoryd-ts", version: "0.1.0", contract: "1", runId: settings.runId },
    },
    log,
  );
  await listen(app, options);
  // Not waited for: a request to a brain waits until that brain is open, and to no other.
  const opening = store.openAll();
  return {
    address: addressOf(app),
    stop: async () => {
      pending.stop();
      const cut = setTimeout(() => {
        app.server.closeAllConnections();
      }, GRACE_MS);
      await app.close();
      clearTimeout(cut);
      await store.close();
      await opening;
    },
  };
}

function openStore(root: string, { embedder }: Settings, log: Logger): BrainStore {
  try {
    return new BrainStore(root, embedder, log);
  } catch (error) {
    throw new StartError(`cannot keep state in ${root}: ${reasonOf(error)}`);
  }
}

async function listen(app: FastifyInstance, { host, port }: Place): Promise<void> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw new StartError(`cannot listen on ${host}:${port}: ${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  return String(error instanceof Error && "code" in error ? error.code : error);
}

function addressOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}
