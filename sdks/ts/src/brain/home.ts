/** Where things lie in the state folder. */

import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

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
      mkdirSync(join(this.#root, folder), { recursive: true });
    }
    for (const name of readdirSync(this.#staging)) {
      const left = join(this.#staging, name);
      const status = statSync(left, { throwIfNoEntry: false });
      if (status !== undefined && Date.now() - status.mtimeMs > STALE_MS) {
        rmSync(left, { recursive: true, force: true });
      }
    }
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
