import { readdirSync } from "node:fs";
import { join } from "node:path";

import { pino } from "pino";

import type { Brain } from "../brain/brain.js";
import { batchIngestEdit, type NewDocument } from "../brain/ingest.js";
import type { Sidecar } from "../brain/sidecar.js";
import { BrainStore } from "../brain/store.js";
import type { Embedder } from "../embed/embed.js";
import { FeatureHash } from "../embed/featureHash.js";
import type { Filters } from "../index/filter.js";
import type { RetrievalRequest } from "../retrieve/plan.js";
import { type RetrievalResult, Retriever } from "../retrieve/retrieve.js";

export const NEVER = new AbortController().signal;

/** Open a store with a feature hash; `null` means no embedder. */
export function openStore(root: string, embedder: Embedder | null = new FeatureHash()): BrainStore {
  return new BrainStore(root, embedder ?? undefined, pino({ level: "silent" }));
}

export function note(
  path: string,
  text: string | Buffer,
  more: Partial<Sidecar> = {},
): NewDocument {
  return { path, content: Buffer.from(text), contentType: "text/markdown", ...more };
}

/** The number of chunks by path. */
export function ingest(
  brain: Brain,
  documents: readonly NewDocument[],
): Promise<ReadonlyMap<string, number>> {
  return brain.change(batchIngestEdit(documents), NEVER);
}

export function retrieve(
  brain: Brain,
  query: string,
  more: Partial<RetrievalRequest> & { filters?: Filters } = {},
): Promise<RetrievalResult> {
  const request: RetrievalRequest = {
    query,
    topK: 100,
    mode: "bm25",
    candidateK: 0,
    rerankTopN: 0,
  };
  return new Retriever(undefined, "").retrieve(brain, { ...request, ...more }, NEVER);
}

export async function pathsOf(...search: Parameters<typeof retrieve>): Promise<string[]> {
  return (await retrieve(...search)).chunks.map(({ path }) => path);
}

/** The folders of changes that are left in the staging folder of a state folder. */
export function changesLeft(root: string): string[] {
  const staging = join(root, "staging");
  return readdirSync(staging, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) =>
      readdirSync(join(staging, name)).filter((file) => !file.startsWith("lock")),
    );
}
