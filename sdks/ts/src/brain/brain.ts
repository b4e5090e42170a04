/** A brain: an isolated corpus, a folder of documents with an index beside it. */

import { existsSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

import type { Embedder } from "../embedding/embedder.js";
import { removeDatabase } from "../index/database.js";
import { type Counts, type IndexedDocument, SearchIndex } from "../index/searchIndex.js";
import { Problem } from "../problem.js";
import { indexed, type NewDocument, writeSidecar } from "./document.js";
import type { Places } from "./home.js";
import { acquire, type Lock } from "./lock.js";
import { isHidden, parents } from "./paths.js";
import { type NewFile, place } from "./placing.js";
import { reconcile } from "./reconcile.js";
import { contentOf, stampOf } from "./walk.js";

export interface Stored {
  path: string;
  chunks: number;
  bytes: number;
}

/** A document but for its stamp, which only the files that lie in place can give. */
type Prepared = Omit<IndexedDocument, "stamp">;

export class Brain {
  readonly #places: Places;
  readonly #lock: Lock | undefined;
  readonly #index: SearchIndex;
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
      await reconcile(brain.#index, places, (documents) => brain.#embed(documents, signal), signal);
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
    this.#lock = acquire(places.lock);
    try {
      // Where another daemon of this kind holds the index, one of our own is built, in memory.
      const file = this.#lock === undefined ? ":memory:" : places.index;
      this.#index = new SearchIndex(file, embedder?.name ?? "none");
    } catch (error) {
      this.#lock?.release();
      throw error;
    }
  }

  /** @throws Problem `not_found` once the brain was deleted or closed. */
  get index(): SearchIndex {
    if (this.#gone) throw new Problem("not_found", `no brain ${this.id}`);
    return this.#index;
  }

  get description(): string | undefined {
    return contentOf(this.#places.description)?.toString();
  }

  counts(): Counts {
    return this.index.counts();
  }

  /**
   * Stores and indexes all of `documents`, or none of them.
   *
   * @throws Problem `conflict` where a path would be file and folder at once, `bad_gateway` or
   *   `timeout` where the embedder fails.
   */
  async ingest(documents: readonly NewDocument[], signal: AbortSignal): Promise<Stored[]> {
    const visible = documents.filter(({ path }) => !isHidden(path));
    const prepared = await this.#embed(
      visible.map((document) => indexed(document.path, document.content, document)),
      signal,
    );
    const index = this.index;
    this.#refuseConflicts(documents.map(({ path }) => path));
    place(this.#places.staging, this.#files(documents), () => {
      index.apply(prepared.map((document) => ({ ...document, stamp: this.#stamp(document.path) })));
    });
    const chunks = new Map(visible.map((document, i) => [document, prepared[i]?.chunks.length]));
    return documents.map((document) => ({
      path: document.path,
      chunks: chunks.get(document) ?? 0,
      bytes: document.content.length,
    }));
  }

  close(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#index.close();
    this.#lock?.release();
  }

  /** Ends the brain; what is left of it lies in the folder that is returned. */
  bury(): string {
    if (this.#gone) throw new Problem("not_found", `no brain ${this.id}`);
    const { documents, sidecars, description, index, staging } = this.#places;
    const grave = mkdtempSync(join(staging, "deleted-"));
    renameSync(documents, join(grave, "documents"));
    if (existsSync(sidecars)) renameSync(sidecars, join(grave, "sidecars"));
    rmSync(description, { force: true });
    this.#gone = true;
    this.#index.close();
    if (this.#lock !== undefined) removeDatabase(index);
    this.#lock?.release();
    return grave;
  }

  /** All chunks go to the embedder in one call. */
  async #embed(documents: Omit<Prepared, "vectors">[], signal: AbortSignal): Promise<Prepared[]> {
    const texts = documents.flatMap(({ chunks }) => chunks);
    const vectors =
      this.embedder === undefined || texts.length === 0
        ? []
        : await this.embedder.embed(texts, signal);
    let next = 0;
    return documents.map((document) => {
      const start = next;
      next += document.chunks.length;
      return { ...document, vectors: vectors.slice(start, next) };
    });
  }

  #refuseConflicts(paths: readonly string[]): void {
    // The sidecar of `a` is `a.json`, where `a.json/b` would need a folder.
    const taken = new Set(paths.flatMap((path) => [path, `${path}.json`]));
    for (const path of new Set(paths)) {
      for (const parent of parents(path)) {
        if (taken.has(parent)) {
          throw new Problem("conflict", `${path}: another document of the batch is its folder`);
        }
      }
      for (const target of [join(this.#places.documents, path), this.#sidecar(path)]) {
        let folder = dirname(target);
        while (!existsSync(folder)) folder = dirname(folder);
        if (!isFolder(folder)) throw new Problem("conflict", `a folder of ${path} is a document`);
        if (isFolder(target)) throw new Problem("conflict", `${path} is a folder`);
      }
    }
  }

  *#files(documents: readonly NewDocument[]): Generator<NewFile> {
    for (const document of documents) {
      yield { target: this.#sidecar(document.path), content: writeSidecar(document) };
      yield { target: join(this.#places.documents, document.path), content: document.content };
    }
  }

  #sidecar(path: string): string {
    return join(this.#places.sidecars, `${path}.json`);
  }

  #stamp(path: string): string {
    return stampOf(join(this.#places.documents, path), this.#sidecar(path));
  }
}

function isFolder(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
