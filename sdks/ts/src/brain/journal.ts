/** What a change to several files has done so far, kept where it outlives the process. */

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

/** Other kinds of daemon keep their work in the same folder. */
const PREFIX = "ts-commit-";

/** Where it lies is relative to the state folder, which may be moved. Undone, it may be undone again. */
type Step = { tree: string; path: string } & (
  { done: "set aside"; aside: string } | { done: "put"; stamp: string } | { done: "made" }
);

/** A folder for the work of one change, with the journal of it. */
export class Work {
  readonly folder: string;
  readonly #home: string;
  readonly #steps: Step[] = [];
  readonly #lock: Lock | undefined;
  readonly #journal: number;

  constructor(staging: string) {
    this.#home = dirname(staging);
    this.folder = mkdtempSync(join(staging, PREFIX));
    // Before the journal is there: nobody else is to undo it while this process is at work.
    this.#lock = acquire(lockIn(this.folder));
    this.#journal = openSync(journalIn(this.folder), "ax");
  }

  /** Where a file that is to be set aside can lie. The step is written down, not taken. */
  setsAside(tree: Tree, path: string): string {
    const aside = `${this.#steps.length}.old`;
    this.#write({ ...this.#place(tree, path), done: "set aside", aside });
    return join(this.folder, aside);
  }

  puts(source: string, tree: Tree, path: string): void {
    this.#write({ ...this.#place(tree, path), done: "put", stamp: stampOf(source) });
  }

  makes(tree: Tree, folder: string): void {
    this.#write({ ...this.#place(tree, folder), done: "made" });
  }

  undo(): unknown[] {
    return undone(this.#home, this.folder, this.#steps);
  }

  /** Nothing of it is to be undone any more. */
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

/** Undoes what daemons that were killed in the middle of it have left, and returns what cannot be. */
export function recover(staging: string): Error[] {
  return readdirSync(staging)
    .filter((name) => name.startsWith(PREFIX))
    .flatMap((name) => {
      const faults = recovered(dirname(staging), join(staging, name));
      return faults.length === 0 ? [] : [new AggregateError(faults, `${name} cannot be undone`)];
    });
}

/** Whether files that belong elsewhere may lie in a folder of staging. */
export function isUnsettled(folder: string): boolean {
  return existsSync(journalIn(folder));
}

function recovered(home: string, folder: string): unknown[] {
  if (!isUnsettled(folder)) return [];
  let lock: Lock | undefined;
  try {
    lock = acquire(lockIn(folder));
    if (lock === undefined) return [];
    const journal = contentOf(journalIn(folder))?.toString();
    if (journal === undefined) return [];
    // Behind the last newline is a step that was not written whole, and so not taken.
    const steps = journal.split("\n").slice(0, -1);
    const faults = undone(
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

/** Tries every step, whatever becomes of the others. */
function undone(home: string, folder: string, steps: readonly Step[]): unknown[] {
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
      // What is there now was put there later, by a change that was acknowledged.
      if (statusOf(aside) === undefined || statusOf(target) !== undefined) return;
      // A brain that was deleted since does not come back.
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

/** A folder and those in it, but for what is in use. */
function removeEmpty(folder: string): void {
  if (!statusOf(folder)?.isDirectory()) return;
  const entries = readdirSync(folder, { withFileTypes: true });
  for (const entry of entries) {
    if (entry.isDirectory()) removeEmpty(join(folder, entry.name));
  }
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}

/** The journal goes first: of half a folder nothing must be undone. */
function settle(folder: string): void {
  rmSync(journalIn(folder), { force: true });
  rmSync(folder, { recursive: true, force: true });
}

function journalIn(folder: string): string {
  return join(folder, "journal");
}

function lockIn(folder: string): string {
  return join(folder, "lock");
}
