/** A brain: an isolated corpus, a folder of documents with an index beside it. */

import type { Embedder } from "../embedding/embedder.js";
import { type Counts, type IndexedDocument, SearchIndex } from "../index/searchIndex.js";
import { Problem } from "../problem.js";
import { Changes } from "./changes.js";
import { indexed, readSidecar } from "./document.js";
import { Draft } from "./draft.js";
import type { Edit } from "./edits.js";
import type { Places } from "./home.js";
import { acquire, type Lock } from "./lock.js";
import { isHidden, sidecarOf } from "./paths.js";
import { place } from "./placing.js";
import { reconcile } from "./reconcile.js";
import { contentOf, stampOf, Tree } from "./tree.js";
import { Vectors } from "./vectors.js";

/** A document but for its stamp, which only the files that lie in place can give. */
type Unstamped = Omit<IndexedDocument, "stamp" | "vectors">;

export class Brain {
  readonly #places: Places;
  readonly #documents: Tree;
  readonly #sidecars: Tree;
  readonly #lock: Lock | undefined;
  readonly #index: SearchIndex;
  readonly #changes = new Changes();
  #commits = 0;
  #gone = false;

  /** Opens the brain and brings its index to what the files say. */
  static async open(
    id: string,
    places: Places,
    embedder: Embedder | undefined,
    signal: AbortSignal,
  ): Promise<Brain> {
    const brain = new Brain(id, places, embedder);
    try {
      await reconcile(brain.#index, brain.#documents, brain.#sidecars, embedder, signal);
      return brain;
    } catch (error) {
      brain.close();
      throw error;
    }
  }

  private constructor(
    readonly id: string,
    places: Places,
    readonly embedder: Embedder | undefined,
  ) {
    this.#places = places;
    this.#documents = new Tree(places.documents);
    this.#sidecars = new Tree(places.sidecars);
    this.#lock = acquire(places.lock);
    try {
      // Where another daemon of this kind holds the index, one of our own is built, in memory.
      const file = this.#lock === undefined ? ":memory:" : places.index;
      this.#index = SearchIndex.open(file, embedder?.name ?? "none");
    } catch (error) {
      this.#lock?.release();
      throw error;
    }
  }

  /** @throws Problem `not_found` once the brain was deleted or closed. */
  get index(): SearchIndex {
    this.#refuseGone();
    return this.#index;
  }

  /** For reading; throws as `index` does. */
  get documents(): Tree {
    this.#refuseGone();
    return this.#documents;
  }

  /** Throws as `index` does. */
  get changes(): Pick<Changes, "listen"> {
    this.#refuseGone();
    return this.#changes;
  }

  get description(): string | undefined {
    return contentOf(this.#places.description)?.toString();
  }

  counts(): Counts {
    return this.index.counts();
  }

  /**
   * Makes all of an edit's changes, or none of them, and tells of them. While the embedder works others
   * may commit; then the edit is made anew to what they left, and what is known is not embedded again.
   *
   * @returns The number of chunks by path, of what was written and is not hidden.
   * @throws Problem What the edit throws; `bad_gateway` or `timeout` where the embedder fails.
   */
  async edit(
    edit: Edit,
    signal: AbortSignal,
    reason?: string,
  ): Promise<ReadonlyMap<string, number>> {
    const vectors = new Vectors(this.embedder);
    for (;;) {
      const seen = this.#commits;
      const draft = new Draft(this.documents, this.#sidecars);
      edit(draft);
      const documents = visible(draft);
      await vectors.learn(documents, signal);
      if (seen !== this.#commits) continue;
      this.#commit(draft, documents, vectors, reason);
      return new Map(documents.map(({ path, chunks }) => [path, chunks.length]));
    }
  }

  close(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#changes.end();
    this.#index.close();
    this.#lock?.release();
  }

  #commit(
    draft: Draft,
    documents: readonly Unstamped[],
    vectors: Vectors,
    reason: string | undefined,
  ): void {
    const { index } = this;
    if (draft.changes.length === 0) return;
    place(this.#places.staging, draft.files, () => {
      const stamped = documents.map((document) => ({
        ...document,
        stamp: stampOf(
          this.#documents.at(document.path),
          this.#sidecars.at(sidecarOf(document.path)),
        ),
        vectors: vectors.of(document),
      }));
      index.apply(stamped, draft.removed);
    });
    this.#commits++;
    this.#changes.publish(draft.changes, reason);
  }

  #refuseGone(): void {
    if (this.#gone) throw new Problem("not_found", `no brain ${this.id}`);
  }
}

/** What of a draft is to be indexed. */
function visible(draft: Draft): Unstamped[] {
  return draft.written
    .filter(([path]) => !isHidden(path))
    .map(([path, { content, sidecar }]) => indexed(path, content, readSidecar(sidecar)));
}
