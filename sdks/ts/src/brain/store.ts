/** All brains below one state folder. */

import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";

import type { Logger } from "pino";

import type { Embedder } from "../embedding/embedder.js";
import { invalid, Problem } from "../problem.js";
import { Brain } from "./brain.js";
import { moveToTrash } from "./deletion.js";
import { Home, type BrainPaths } from "./home.js";
import { statusOf } from "./tree.js";

const ID = /^[A-Za-z0-9._-]{1,128}$/;

interface Opening {
  brain: Promise<Brain>;
  /** Cancels an opening that waits for the embedder. */
  controller: AbortController;
}

/** All brains of one state folder, opened on first use. */
export class BrainStore {
  readonly #home: Home;
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
    for (const fault of this.#home.recover())
      log.error(fault, "an interrupted change could not be undone");
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
  requireBrain(id: string): void {
    this.#pathsOf(id);
  }

  /** @throws Problem As `requireBrain`, or whatever keeps the brain from opening. */
  async get(id: string): Promise<Brain> {
    const paths = this.#pathsOf(id);
    const opening = this.#open.get(id);
    if (opening !== undefined) return opening.brain;
    const controller = new AbortController();
    const signal = AbortSignal.any([controller.signal, this.#closing.signal]);
    const brain = Brain.open(id, paths, this.#embedder, signal);
    this.#open.set(id, { brain, controller });
    brain.catch(() => this.#open.delete(id));
    return brain;
  }

  /** @throws Problem `validation_error` for a malformed id, `conflict` if the brain exists. */
  async create(id: string, description: string | undefined): Promise<Brain> {
    if (!isId(id)) throw invalidId(id);
    const paths = this.#home.of(id);
    try {
      mkdirSync(paths.documents);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") {
        throw new Problem("conflict", `brain ${id} already exists`);
      }
      throw error;
    }
    // A daemon that was killed while deleting a brain of this name may have left these behind.
    rmSync(paths.sidecars, { recursive: true, force: true });
    rmSync(paths.description, { force: true });
    if (description !== undefined) writeFileSync(paths.description, description);
    return this.get(id);
  }

  /** Delete a brain, even one that cannot be opened; throws as `get` does. */
  async delete(id: string): Promise<void> {
    const paths = this.#pathsOf(id);
    const deleted = new Problem("not_found", `no brain ${id}`);
    for (let opening = this.#open.get(id); opening !== undefined; opening = this.#open.get(id)) {
      opening.controller.abort(deleted);
      const brain = await opening.brain.catch(() => undefined);
      brain?.close();
      if (this.#open.get(id) === opening) this.#open.delete(id);
    }
    // Another request may have deleted it meanwhile.
    this.requireBrain(id);
    await rm(moveToTrash(paths), { recursive: true, force: true });
  }

  async close(): Promise<void> {
    this.#closing.abort(new Problem("internal_error", "the daemon is stopping"));
    const brains = Array.from(this.#open.values(), ({ brain }) => brain);
    for (const result of await Promise.allSettled(brains)) {
      if (result.status === "fulfilled") result.value.close();
    }
    this.#open.clear();
  }

  #pathsOf(id: string): BrainPaths {
    if (!isId(id)) throw invalidId(id);
    const paths = this.#home.of(id);
    if (!statusOf(paths.documents)?.isDirectory()) throw new Problem("not_found", `no brain ${id}`);
    return paths;
  }
}

function isId(name: string): boolean {
  return ID.test(name) && name !== "." && name !== "..";
}

function invalidId(id: string): Problem {
  return invalid(`brainId: ${JSON.stringify(id)} is not [A-Za-z0-9._-]{1,128}`);
}
