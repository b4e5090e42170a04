/** The undo journal of a commit, on disk so that it outlives the process. */

import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";

import { acquire, type Lock } from "./lock.js";
import { contentOf, stampOf, statusOf, type Tree } from "./tree.js";

/** Work folders of this kind of daemon; other kinds share the staging folder. */
const PREFIX = "ts-commit-";

/** A journaled step. Paths are relative to the state folder, which may move; undo is idempotent. */
type Step = { tree: string; path: string } & (
  { done: "set aside"; aside: string } | { done: "put"; stamp: string } | { done: "made" }
);

/** The work folder of one commit, with its journal. */
export class CommitWork {
  readonly folder: string;
  readonly #home: string;
  readonly #steps: Step[] = [];
  readonly #lock: Lock | undefined;
  readonly #journal: number;

  constructor(staging: string) {
    this.#home = dirname(staging);
    this.folder = mkdtempSync(join(staging, PREFIX));
    // Locked before the journal exists, so that no other process undoes a commit in progress.
    this.#lock = acquire(lockFile(this.folder));
    this.#journal = openSync(journalFile(this.folder), "ax");
  }

  /** Record that a file will be set aside; returns where to move it. Does not move it. */
  recordSetAside(tree: Tree, path: string): string {
    const aside = `${this.#steps.length}.old`;
    this.#write({ ...this.#place(tree, path), done: "set aside", aside });
    return join(this.folder, aside);
  }

  /** Record that the file `source` will be moved to `path`. */
  recordPut(source: string, tree: Tree, path: string): void {
    this.#write({ ...this.#place(tree, path), done: "put", stamp: stampOf(source) });
  }

  /** Record that `folder` will be created. */
  recordFolder(tree: Tree, folder: string): void {
    this.#write({ ...this.#place(tree, folder), done: "made" });
  }

  /** Undo the recorded steps, last first; returns the errors of those that fail. */
  undo(): unknown[] {
    return undoSteps(this.#home, this.folder, this.#steps);
  }

  /** Remove journal and work folder: the commit can no longer be undone. */
  settle(): void {
    settle(this.folder);
  }

  close(): void {
    closeSync(this.#journal);
    this.#lock?.release();
  }

  #place(tree: Tree, path: string): { tree: string; path: string } {
    return { tree: relative(this.#home, tree.root), path };
  }

  #write(step: Step): void {
    writeSync(this.#journal, `${JSON.stringify(step)}\n`);
    this.#steps.push(step);
  }
}

/** Undo the commits of daemons that were killed; returns one error for each that cannot be undone. */
export function recover(staging: string): Error[] {
  return readdirSync(staging)
    .filter((name) => name.startsWith(PREFIX))
    .flatMap((name) => {
      const faults = recoverFolder(dirname(staging), join(staging, name));
      return faults.length === 0 ? [] : [new AggregateError(faults, `${name} cannot be undone`)];
    });
}

/** Whether a work folder may still hold files that an undo must move back. */
export function isUnsettled(folder: string): boolean {
  return existsSync(journalFile(folder));
}

function recoverFolder(home: string, folder: string): unknown[] {
  if (!isUnsettled(folder)) return [];
  let lock: Lock | undefined;
  try {
    lock = acquire(lockFile(folder));
    if (lock === undefined) return [];
    const journal = contentOf(journalFile(folder))?.toString();
    if (journal === undefined) return [];
    // A line without its newline was cut off by the kill, before its step was taken.
    const steps = journal.split("\n").slice(0, -1);
    const faults = undoSteps(
      home,
      folder,
      steps.map((step) => JSON.parse(step) as Step),
    );
    if (faults.length === 0) settle(folder);
    return faults;
  } catch (error) {
    return [error];
  } finally {
    lock?.release();
  }
}

/** Undo every step, even if others fail; returns the errors. */
function undoSteps(home: string, folder: string, steps: readonly Step[]): unknown[] {
  return steps.toReversed().flatMap((step) => {
    try {
      undo(home, folder, step);
      return [];
    } catch (error) {
      return [error];
    }
  });
}

function undo(home: string, folder: string, step: Step): void {
  const tree = join(home, step.tree);
  const target = join(tree, step.path);
  switch (step.done) {
    case "set aside": {
      const aside = join(folder, step.aside);
      // A file at the target was written later, by an acknowledged change.
      if (statusOf(aside) === undefined || statusOf(target) !== undefined) return;
      // A brain that was deleted since must not come back.
      if (statusOf(tree) === undefined) return;
      mkdirSync(dirname(target), { recursive: true });
      renameSync(aside, target);
      break;
    }
    case "put":
      if (stampOf(target) === step.stamp) rmSync(target);
      break;
    case "made":
      removeEmpty(target);
  }
}

/** Remove a folder and the folders in it, as far as they are empty. */
function removeEmpty(folder: string): void {
  if (!statusOf(folder)?.isDirectory()) return;
  const entries = readdirSync(folder, { withFileTypes: true });
  for (const entry of entries) {
    if (entry.isDirectory()) removeEmpty(join(folder, entry.name));
  }
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}

/** The journal goes first, so that a half removed folder is never undone. */
function settle(folder: string): void {
  rmSync(journalFile(folder), { force: true });
  rmSync(folder, { recursive: true, force: true });
}

function journalFile(folder: string): string {
  return join(folder, "journal");
}

function lockFile(folder: string): string {
  return join(folder, "lock");
}
