/** All brains below one state folder. */

import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";

import type { Logger } from "pino";

import type { Embedder } from "../embed/embed.js";
import { Staging } from "../files/staging.js";
import { statusOf } from "../files/tree.js";
import { invalid, Problem } from "../problem.js";
import { Brain } from "./brain.js";
import { moveToTrash, removeIndex, removeLeftovers } from "./deletion.js";
import { Home, type BrainPaths } from "./layout.js";

const ID = /^[A-Za-z0-9._-]{1,128}$/;

interface Opening {
  brain: Promise<Brain>;
  /** Cancels an opening that waits for the embedder. */
  controller: AbortController;
}

/** All brains of one state folder, opened on first use. */
export class BrainStore {
  readonly #home: Home;
  readonly #staging: Staging;
  readonly #embedder: Embedder | undefined;
  readonly #log: Logger;
  /** Promises, so that concurrent requests to a brain wait for the same opening. */
  readonly #open = new Map<string, Opening>();
  readonly #closing = new AbortController();

  constructor(root: string, embedder: Embedder | undefined, log: Logger) {
    this.#home = new Home(root);
    this.#home.prepare();
    this.#embedder = embedder;
    this.#log = log;
    // Before any brain is opened, because opening reconciles the index with the files.
    this.#staging = new Staging(this.#home.staging);
    this.#report(this.#staging.faults);
    this.#removeOrphans();
  }

  /**
   * Remove the indexes of brains whose folder was removed by hand while no daemon ran, and those of former
   * daemons: they hold the text of the documents.
   */
  #removeOrphans(): void {
    for (const file of this.#home.formerIndexes()) {
      try {
        rmSync(file, { force: true });
      } catch (error) {
        this.#log.warn({ file, reason: String(error) }, "cannot remove a former index");
      }
    }
    for (const id of this.#home.indexedIds()) {
      if (!isId(id) || statusOf(this.#home.of(id).documents)?.isDirectory()) continue;
      try {
        removeIndex(this.#home.of(id));
      } catch (error) {
        this.#log.warn({ brain: id, reason: String(error) }, "cannot remove the index of a brain");
      }
    }
  }

  ids(): string[] {
    return readdirSync(this.#home.brains, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && isId(entry.name))
      .map((entry) => entry.name)
      .sort();
  }

  /** Open every brain. One that cannot be opened, say without its embedder, is retried on next use. */
  async openAll(): Promise<void> {
    for (const id of this.ids()) {
      if (this.#closing.signal.aborted) return;
      await this.get(id).catch((error: unknown) => {
        this.#log.warn({ brain: id, reason: String(error) }, "cannot open brain");
      });
    }
  }

  /** @throws Problem `validation_error` for a malformed id, `not_found` for an unknown one. */
  requireBrain(id: string): BrainPaths {
    if (!isId(id)) throw invalidId(id);
    const paths = this.#home.of(id);
    if (!statusOf(paths.documents)?.isDirectory()) {
      this.#discard(id);
      throw notFound(id);
    }
    return paths;
  }

  /** @throws Problem As `requireBrain`, or whatever keeps the brain from opening. */
  async get(id: string): Promise<Brain> {
    const paths = this.requireBrain(id);
    const opening = this.#open.get(id);
    if (opening === undefined) {
      return this.#begin(id, (signal) =>
        Brain.open(id, paths, this.#staging, this.#embedder, signal, this.#log),
      );
    }
    const brain = await opening.brain;
    if (!brain.isStale) return brain;
    // Another request may have begun to reconcile it.
    if (this.#open.get(id) !== opening) return this.get(id);
    return this.#begin(id, (signal) => brain.reconcile(signal));
  }

  #begin(id: string, open: (signal: AbortSignal) => Promise<Brain>): Promise<Brain> {
    const controller = new AbortController();
    const brain = open(AbortSignal.any([controller.signal, this.#closing.signal]));
    this.#open.set(id, { brain, controller });
    brain.catch(() => {
      if (this.#open.get(id)?.brain === brain) this.#open.delete(id);
    });
    return brain;
  }

  /** @throws Problem `validation_error` for a malformed id, `conflict` if the brain exists. */
  async create(id: string, description: string | undefined): Promise<Brain> {
    if (!isId(id)) throw invalidId(id);
    await this.#staging.exclusively(() => {
      this.#create(id, description);
    });
    return this.get(id);
  }

  #create(id: string, description: string | undefined): void {
    const paths = this.#home.of(id);
    if (statusOf(paths.documents) !== undefined)
      throw new Problem("conflict", `brain ${id} already exists`);
    this.#discard(id);
    // An undo must find that the brain of this id is gone.
    this.#report(this.#staging.recover());
    const work = this.#staging.newFolder();
    try {
      // They are left if the folder was removed by hand, or the daemon that deleted the brain was killed.
      removeLeftovers(paths, work);
      if (description !== undefined) {
        const file = join(work, "description");
        writeFileSync(file, description);
        renameSync(file, paths.description);
      }
      // Last, so that the brain is created as a whole.
      mkdirSync(paths.documents);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }

  /** Forget a brain whose folder was removed by hand, and remove its index. */
  #discard(id: string): void {
    const opening = this.#open.get(id);
    if (opening === undefined) return;
    this.#open.delete(id);
    opening.controller.abort(notFound(id));
    void opening.brain
      .then((brain) => {
        brain.close();
        if (!this.#open.has(id)) removeIndex(this.#home.of(id));
      })
      .catch(() => undefined);
  }

  #report(faults: readonly Error[]): void {
    for (const fault of faults)
      this.#log.error({ reason: fault.message }, "an interrupted change could not be undone");
  }

  /** Delete a brain, even one that cannot be opened; throws as `get` does. */
  async delete(id: string): Promise<void> {
    const paths = this.requireBrain(id);
    const trash = await this.#staging.exclusively(() => this.#delete(id, paths));
    await rm(trash, { recursive: true, force: true });
  }

  async #delete(id: string, paths: BrainPaths): Promise<string> {
    const deleted = notFound(id);
    for (let opening = this.#open.get(id); opening !== undefined; opening = this.#open.get(id)) {
      opening.controller.abort(deleted);
      const brain = await opening.brain.catch(() => undefined);
      brain?.close();
      if (this.#open.get(id) === opening) this.#open.delete(id);
    }
    // Another request may have deleted it meanwhile.
    this.requireBrain(id);
    return moveToTrash(paths, this.#staging);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Problem("internal_error", "the daemon is stopping"));
    const brains = Array.from(this.#open.values(), ({ brain }) => brain);
    for (const result of await Promise.allSettled(brains)) {
      if (result.status === "fulfilled") result.value.close();
    }
    this.#open.clear();
    this.#staging.close();
  }
}

function isId(name: string): boolean {
  return ID.test(name) && name !== "." && name !== "..";
}

function notFound(id: string): Problem {
  return new Problem("not_found", `no brain ${id}`);
}

function invalidId(id: string): Problem {
  return invalid(`brainId: ${JSON.stringify(id)} is not [A-Za-z0-9._-]{1,128}`);
}
