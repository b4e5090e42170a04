/** The staging folder: where changes are prepared, and what a killed daemon leaves behind. */

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { hasJournal } from "./journal.js";
import { lockFile, type Lock } from "./lock.js";
import { recover } from "./recovery.js";
import { statusOf } from "./tree.js";

/** How long to wait for another daemon that starts, or creates or deletes a brain. */
const WAIT_MS = 60_000;

const POLL_MS = 10;

/** This daemon's folder below `$JB_HOME/staging`, which it locks as long as it runs. */
export class Staging {
  readonly home: string;
  readonly #root: string;
  readonly #folder: string;
  #lock: Lock | undefined;
  /** Changes of killed daemons that could not be undone. */
  readonly faults: readonly Error[];

  /**
   * Undo what killed daemons left, and take a folder.
   *
   * @throws Error if the folder cannot be created, or another daemon does not finish its start.
   */
  constructor(root: string) {
    this.#root = root;
    this.home = dirname(root);
    // Blocking: nothing is served yet.
    const lock = lockFile(this.#commonLock, WAIT_MS);
    if (lock === undefined) throw this.#lockedError();
    try {
      this.faults = recover(root);
      this.#folder = mkdtempSync(join(root, "ts-"));
      const own = lockFile(join(this.#folder, "lock"));
      if (own === undefined) throw new Error(`${this.#folder} is locked by another daemon`);
      this.#lock = own;
    } finally {
      lock.close();
    }
  }

  /** Be the only daemon that starts, or creates or deletes a brain, while `act` runs. */
  async exclusively<T>(act: () => T | Promise<T>): Promise<T> {
    const deadline = performance.now() + WAIT_MS;
    let lock = lockFile(this.#commonLock);
    while (lock === undefined) {
      if (performance.now() > deadline) throw this.#lockedError();
      await sleep(POLL_MS);
      lock = lockFile(this.#commonLock);
    }
    try {
      return await act();
    } finally {
      lock.close();
    }
  }

  /** Undo what daemons left that were killed since; call it within `exclusively`. */
  recover(): Error[] {
    return recover(this.#root);
  }

  /** A folder for one change, or for files to be deleted. It goes with the daemon. */
  newFolder(): string {
    return mkdtempSync(join(this.#folder, "change-"));
  }

  /** Remove the folder, unless it holds a change that could not be undone. */
  close(): void {
    try {
      // It is missing if it was removed by hand, or this is the second call.
      if (statusOf(this.#folder) === undefined) return;
      const changes = readdirSync(this.#folder).map((name) => join(this.#folder, name));
      if (!changes.some(hasJournal)) rmSync(this.#folder, { recursive: true, force: true });
    } finally {
      this.#lock?.close();
      this.#lock = undefined;
    }
  }

  get #commonLock(): string {
    return join(this.#root, "lock");
  }

  #lockedError(): Error {
    return new Error(`another daemon has locked ${this.#root} for ${WAIT_MS / 1000} s`);
  }
}
