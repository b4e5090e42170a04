/** All brains below one state folder. */

import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";

import type { Logger } from "pino";

import type { Embedder } from "../embedding/embedder.js";
import { invalid, Problem } from "../problem.js";
import { Brain } from "./brain.js";
import { Home } from "./home.js";

const ID = /^[A-Za-z0-9._-]{1,128}$/;

export class BrainStore {
  readonly #home: Home;
  readonly #embedder: Embedder | undefined;
  readonly #log: Logger;
  /** Promises, so that whoever touches a brain that is being opened waits for the same opening. */
  readonly #open = new Map<string, Promise<Brain>>();
  readonly #closing = new AbortController();

  constructor(root: string, embedder: Embedder | undefined, log: Logger) {
    this.#home = new Home(root);
    this.#home.prepare();
    this.#embedder = embedder;
    this.#log = log;
  }

  ids(): string[] {
    return readdirSync(this.#home.brains, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && isId(entry.name))
      .map((entry) => entry.name)
      .sort();
  }

  /** Opens every brain; one that cannot be opened, as without its embedder, waits for its next touch. */
  async openAll(): Promise<void> {
    for (const id of this.ids()) {
      if (this.#closing.signal.aborted) return;
      await this.get(id).catch((error: unknown) => {
        this.#log.warn({ brain: id, reason: String(error) }, "brain not opened");
      });
    }
  }

  /** @throws Problem `validation_error` for a malformed id, `not_found` for an unknown one. */
  async get(id: string): Promise<Brain> {
    refuseMalformed(id);
    const known = this.#open.get(id);
    if (known !== undefined) return known;
    const places = this.#home.of(id);
    if (!statSync(places.documents, { throwIfNoEntry: false })?.isDirectory()) {
      throw new Problem("not_found", `no brain ${id}`);
    }
    const opening = Brain.open(id, places, this.#embedder, this.#closing.signal);
    this.#open.set(id, opening);
    opening.catch(() => this.#open.delete(id));
    return opening;
  }

  /** @throws Problem `validation_error` for a malformed id, `conflict` where it exists. */
  async create(id: string, description: string | undefined): Promise<Brain> {
    refuseMalformed(id);
    const places = this.#home.of(id);
    try {
      mkdirSync(places.documents);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") {
        throw new Problem("conflict", `brain ${id} exists`);
      }
      throw error;
    }
    // A daemon that was killed while it deleted a brain of this name may have left them.
    rmSync(places.sidecars, { recursive: true, force: true });
    rmSync(places.description, { force: true });
    if (description !== undefined) writeFileSync(places.description, description);
    return this.get(id);
  }

  async delete(id: string): Promise<void> {
    const brain = await this.get(id);
    const grave = brain.bury();
    this.#open.delete(id);
    await rm(grave, { recursive: true, force: true });
  }

  async close(): Promise<void> {
    this.#closing.abort(new Problem("internal_error", "the daemon is stopping"));
    for (const opened of await Promise.allSettled(this.#open.values())) {
      if (opened.status === "fulfilled") opened.value.close();
    }
    this.#open.clear();
  }
}

function isId(name: string): boolean {
  return ID.test(name) && name !== "." && name !== "..";
}

function refuseMalformed(id: string): void {
  if (!isId(id)) throw invalid(`brainId: ${JSON.stringify(id)} is not [A-Za-z0-9._-]{1,128}`);
}
