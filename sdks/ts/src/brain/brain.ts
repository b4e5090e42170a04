/** A brain: an isolated corpus, which is a folder of documents and their search index. */

import type { Logger } from "pino";

import type { Embedder } from "../embed/embed.js";
import { Feed } from "../feed.js";
import { lockFile, type Lock } from "../files/lock.js";
import { isHidden } from "../files/path.js";
import { place } from "../files/placement.js";
import type { Staging } from "../files/staging.js";
import { contentOf, stampOf, Tree } from "../files/tree.js";
import { type Counts, Index } from "../index/index.js";
import { Problem } from "../problem.js";
import { Draft } from "./draft.js";
import type { BrainPaths } from "./layout.js";
import type { Edit } from "./operation.js";
import { reconcile } from "./reconcile.js";
import { toIndexedDocument, type UnstampedDocument } from "./source.js";
import { ChunkVectors } from "./vectors.js";

export class Brain {
  readonly #paths: BrainPaths;
  readonly #staging: Staging;
  readonly #documents: Tree;
  readonly #sidecars: Tree;
  readonly #lock: Lock | undefined;
  readonly #index: Index;
  readonly #feed = new Feed();
  #commits = 0;
  #isStale = false;
  #closed = false;

  /**
   * Open the brain and reconcile its index with the files.
   *
   * @throws Problem `bad_gateway` or `timeout` if the embedder fails; or the reason of `signal`.
   */
  static async open(
    id: string,
    paths: BrainPaths,
    staging: Staging,
    embedder: Embedder | undefined,
    signal: AbortSignal,
    log: Logger,
  ): Promise<Brain> {
    const lock = lockFile(paths.lock);
    let index: Index;
    try {
      // If another TypeScript daemon has locked the log, this one builds its index in memory alone.
      const file = lock && paths.index;
      index = await Index.open(file, embedder?.name ?? "none", signal, log.child({ brain: id }));
    } catch (error) {
      lock?.close();
      throw error;
    }
    return new Brain(id, paths, staging, embedder, index, lock).reconcile(signal);
  }

  private constructor(
    readonly id: string,
    paths: BrainPaths,
    staging: Staging,
    readonly embedder: Embedder | undefined,
    index: Index,
    lock: Lock | undefined,
  ) {
    this.#paths = paths;
    this.#staging = staging;
    this.#documents = new Tree(paths.documents);
    this.#sidecars = new Tree(paths.sidecars);
    this.#index = index;
    this.#lock = lock;
  }

  /** @throws Problem `not_found` if the brain was deleted or closed. */
  get index(): Index {
    this.#requireOpen();
    return this.#index;
  }

  /** The documents, read-only; throws as `index` does. */
  get documents(): Tree {
    this.#requireOpen();
    return this.#documents;
  }

  /** The feed of changes; throws as `index` does. */
  get feed(): Pick<Feed, "subscribe"> {
    this.#requireOpen();
    return this.#feed;
  }

  get description(): string | undefined {
    return contentOf(this.#paths.description)?.toString();
  }

  counts(): Counts {
    return this.index.counts();
  }

  /**
   * Apply an edit completely or not at all, and publish its changes. If another edit commits while
   * the embedder works, this one is applied again to the new state; only new chunks are embedded.
   *
   * @returns The number of chunks by path, for each written document that is not hidden.
   * @throws Problem Whatever the edit throws; `bad_gateway` or `timeout` if the embedder fails.
   */
  async change(
    edit: Edit,
    signal: AbortSignal,
    reason?: string,
  ): Promise<ReadonlyMap<string, number>> {
    const vectors = new ChunkVectors(this.embedder);
    for (;;) {
      const commitsBefore = this.#commits;
      const draft = new Draft(this.documents, this.#sidecars);
      edit(draft);
      const documents = indexableDocuments(draft);
      await vectors.embedMissing(documents, signal);
      if (commitsBefore !== this.#commits) continue;
      this.#commit(draft, documents, vectors, reason);
      return new Map(documents.map(({ path, chunks }) => [path, chunks.length]));
    }
  }

  /** Whether the index has a change that was undone, so that `reconcile` must come before the next use. */
  get isStale(): boolean {
    return this.#isStale;
  }

  /** Reconcile the index with the files, or close the brain and throw as `open` does. */
  async reconcile(signal: AbortSignal): Promise<this> {
    try {
      let commitsBefore: number;
      do {
        commitsBefore = this.#commits;
        this.#isStale = false;
        await reconcile(this.#index, this.#documents, this.#sidecars, this.embedder, signal);
        // A request that had the brain before may have changed what was being indexed.
      } while (this.isStale || commitsBefore !== this.#commits);
      return this;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#feed.end();
    try {
      this.#index.close();
    } finally {
      this.#lock?.close();
    }
  }

  #commit(
    draft: Draft,
    documents: readonly UnstampedDocument[],
    vectors: ChunkVectors,
    reason: string | undefined,
  ): void {
    const { index } = this;
    if (draft.changes.length === 0) return;
    const wasStale = this.#isStale;
    place(this.#staging, draft.files, () => {
      const stamped = documents.map((document) => ({
        ...document,
        stamp: stampOf(document.path, this.#documents, this.#sidecars),
        vectors: vectors.of(document),
      }));
      index.apply(stamped, draft.removed);
      // It stays so if the files are restored.
      this.#isStale = true;
    });
    this.#isStale = wasStale;
    this.#commits++;
    this.#feed.publish(draft.changes, reason);
  }

  #requireOpen(): void {
    if (this.#closed) throw new Problem("not_found", `no brain ${this.id}`);
  }
}

/** The written documents of a draft that belong in the index. */
function indexableDocuments(draft: Draft): UnstampedDocument[] {
  return draft.written
    .filter(([path]) => !isHidden(path))
    .map((files) => toIndexedDocument(...files));
}
