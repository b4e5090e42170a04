/** Starting and stopping a daemon. */

import type { AddressInfo } from "node:net";

import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";

import { createApp } from "../api/app.js";
import { PendingRequests } from "../api/requests.js";
import { BrainStore } from "../brain/store.js";
import type { Options } from "../cli.js";
import type { Config } from "../config.js";
import type { Embedder } from "../embed/embed.js";
import { Retriever } from "../retrieve/retrieve.js";
import { createProviders } from "./providers.js";

/** How long open requests may run after a stop, before their connections are closed. */
const GRACE_MS = 2000;

/** The daemon cannot start for a reason that the user can fix; the message is for them. */
export class StartError extends Error {}

export interface Daemon {
  /** The base URL, `http://host:port`. */
  readonly address: string;
  /** End open streams, give other requests two seconds, and close the state. */
  stop(): Promise<void>;
}

type ServeOptions = Pick<Options, "host" | "port" | "root">;

/**
 * Start a daemon: open the state folder and listen.
 *
 * @throws StartError if the state folder cannot be used, or the address cannot be bound.
 */
export async function serve(options: ServeOptions, config: Config, log: Logger): Promise<Daemon> {
  const { embedder, reader, reranker } = createProviders(config);
  const store = openStore(options.root, embedder, log);
  const pending = new PendingRequests();
  const app = createApp(
    {
      store,
      retriever: new Retriever(reranker, config.queryPrefix),
      reader,
      pending,
      authToken: config.authToken,
      requestSeconds: config.requestSeconds,
      version: { name: "memoryd-ts", version: "0.1.0", contract: "1", runId: config.runId },
    },
    log,
  );
  await listen(app, options);
  // Not awaited: a request waits only until the brain that it names is open.
  const opening = store.openAll();
  return {
    address: addressOf(app),
    stop: async () => {
      pending.stop();
      const forceClose = setTimeout(() => {
        app.server.closeAllConnections();
      }, GRACE_MS);
      await app.close();
      clearTimeout(forceClose);
      await store.close();
      await opening;
    },
  };
}

function openStore(root: string, embedder: Embedder | undefined, log: Logger): BrainStore {
  try {
    return new BrainStore(root, embedder, log);
  } catch (error) {
    throw new StartError(`cannot keep state in ${root}: ${reasonOf(error)}`);
  }
}

async function listen(app: FastifyInstance, { host, port }: ServeOptions): Promise<void> {
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
