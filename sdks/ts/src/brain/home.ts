/** Where things lie in the state folder. */

import { accessSync, constants, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

import { isUnsettled, recover } from "./journal.js";

/** Older than any request: what a daemon that was killed has left, and no second daemon's work. */
const STALE_MS = 3_600_000;

/** The places of one brain. */
export interface Places {
  documents: string;
  sidecars: string;
  description: string;
  index: string;
  lock: string;
  staging: string;
}

export class Home {
  readonly brains: string;
  readonly #root: string;
  readonly #staging: string;

  constructor(root: string) {
    this.#root = root;
    this.brains = join(root, "brains");
    this.#staging = join(root, "staging");
  }

  prepare(): void {
    for (const folder of ["brains", "meta", "descriptions", "staging", "index/ts"]) {
      const path = join(this.#root, folder);
      makeFolder(path);
      accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    }
    for (const name of readdirSync(this.#staging)) {
      // The others' journals are for them to read.
      if (!name.startsWith("ts-")) continue;
      const left = join(this.#staging, name);
      if (isUnsettled(left)) continue;
      const status = statSync(left, { throwIfNoEntry: false });
      if (status !== undefined && Date.now() - status.mtimeMs > STALE_MS) {
        rmSync(left, { recursive: true, force: true });
      }
    }
  }

  /** Undoes what was left half done; what cannot be undone is returned. */
  recover(): Error[] {
    return recover(this.#staging);
  }

  of(brainId: string): Places {
    return {
      documents: join(this.brains, brainId),
      sidecars: join(this.#root, "meta", brainId),
      description: join(this.#root, "descriptions", `${brainId}.txt`),
      index: join(this.#root, "index", "ts", `${brainId}.sqlite`),
      lock: join(this.#root, "index", "ts", `${brainId}.lock`),
      staging: this.#staging,
    };
  }
}

/** Node's own recursive one never comes back where mkdir says ENOENT for ever, as below /proc. */
function makeFolder(path: string): void {
  if (isFolder(path)) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // A second daemon that starts on the same folder may be the quicker one.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
