import type { BrainStore } from "../brain/store.js";
import type { Reader } from "../reader/reader.js";
import type { Retriever } from "../retrieve/retrieve.js";
import type { PendingRequests } from "./requests.js";

/** What the routes depend on. */
export interface Services {
  store: BrainStore;
  retriever: Retriever;
  reader: Reader | undefined;
  pending: PendingRequests;
  authToken: string | undefined;
  /** How long a request may take to arrive completely. */
  requestSeconds: number;
  version: { name: string; version: string; contract: string; runId: string | undefined };
}

/** The URL of a brain, the prefix of all its routes. */
export const BRAIN = "/v1/brains/:brainId";

export const DOCUMENTS = `${BRAIN}/documents`;

export interface BrainRoute {
  Params: { brainId: string };
}
