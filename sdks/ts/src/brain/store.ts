/** All brains below one state folder. */

import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";

import type { Logger } from "pino";

import type { Embedder } from "../embedding/embedder.js";
import { invalid, Problem } from "../problem.js";
import { Brain } from "./brain.js";
import { moveAway } from "./deletion.js";
import { Home, type Places } from "./home.js";
import { statusOf } from "./tree.js";

const ID = /^[A-Za-z0-9._-]{1,128}$/;

interface Opening {
  brain: Promise<Brain>;
  /** Ends an opening that waits for its embedder. */
  ending: AbortController;
}

export class BrainStore {
  readonly #home: Home;
  readonly #embedder: Embedder | undefined;
  readonly #log: Logger;
  /** Promises, so that whoever touches a brain that is being opened waits for the same opening. */
  readonly #open = new Map<string, Opening>();
  readonly #closing = new AbortController();

  constructor(root: string, embedder: Embedder | undefined, log: Logger) {
    this.#home = new Home(root);
    this.#home.prepare();
    this.#embedder = embedder;
    this.#log = log;
    // Before any brain is opened: its index is to follow the files as they will be.
    for (const fault of this.#home.recover()) log.error(fault, "a change was not undone");
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
  refuseUnknown(id: string): void {
    this.#placesOf(id);
  }

  /** @throws Problem As `refuseUnknown` does, or what keeps the brain from being opened. */
  async get(id: string): Promise<Brain> {
    const places = this.#placesOf(id);
    const known = this.#open.get(id);
    if (known !== undefined) return known.brain;
    const ending = new AbortController();
    const signal = AbortSignal.any([ending.signal, this.#closing.signal]);
    const brain = Brain.open(id, places, this.#embedder, signal);
    this.#open.set(id, { brain, ending });
    brain.catch(() => this.#open.delete(id));
    return brain;
  }

  /** @throws Problem `validation_error` for a malformed id, `conflict` where it exists. */
  async create(id: string, description: string | undefined): Promise<Brain> {
    if (!isId(id)) throw malformed(id);
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

  /** Also a brain that cannot be opened; throws as `get` does. */
  async delete(id: string): Promise<void> {
    const places = this.#placesOf(id);
    const gone = new Problem("not_found", `no brain ${id}`);
    for (let held = this.#open.get(id); held !== undefined; held = this.#open.get(id)) {
      held.ending.abort(gone);
      const brain = await held.brain.catch(() => undefined);
      brain?.close();
      if (this.#open.get(id) === held) this.#open.delete(id);
    }
    // Another may have deleted it meanwhile.
    this.refuseUnknown(id);
    await rm(moveAway(places), { recursive: true, force: true });
  }

  async close(): Promise<void> {
    this.#closing.abort(new Problem("internal_error", "the daemon is stopping"));
    const brains = Array.from(this.#open.values(), ({ brain }) => brain);
    for (const opened of await Promise.allSettled(brains)) {
      if (opened.status === "fulfilled") opened.value.close();
    }
    this.#open.clear();
  }

  #placesOf(id: string): Places {
    if (!isId(id)) throw malformed(id);
    const places = this.#home.of(id);
    if (!statusOf(places.documents)?.isDirectory())
      throw new Problem("not_found", `no brain ${id}`);
    return places;
  }
}

function isId(name: string): boolean {
  return ID.test(name) && name !== "." && name !== "..";
}

function malformed(id: string): Problem {
  return invalid(`brainId: ${JSON.stringify(id)} is not [A-Za-z0-9._-]{1,128}`);
}
