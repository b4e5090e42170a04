/** Changing several files so that all of it happens, or nothing. */

import { linkSync, mkdirSync, renameSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { Work } from "./journal.js";
import { parents } from "./paths.js";
import { statusOf, type Tree } from "./tree.js";

export interface FileChange {
  tree: Tree;
  path: string;
  /** Undefined where the file is to go. */
  content: Buffer | undefined;
}

/**
 * Makes `changes` and calls `commit`. Where anything fails, `commit` included, what was there before
 * is back, and the error goes on. It runs in one turn of the event loop: no other request sees a part
 * of it, and it needs no lock. Where the process is killed, the next start of a daemon undoes it.
 */
export function place(staging: string, changes: readonly FileChange[], commit: () => void): void {
  const work = new Work(staging);
  try {
    attempt(work, changes, commit);
    work.settle();
  } finally {
    work.close();
  }
}

function attempt(work: Work, changes: readonly FileChange[], commit: () => void): void {
  try {
    make(work, changes);
    commit();
  } catch (error) {
    const faults = work.undo();
    if (faults.length > 0) {
      // What could not be put back lies there, and nowhere else: the next start tries again.
      throw new AggregateError([error, ...faults], `not all undone: see ${work.folder}`);
    }
    work.settle();
    throw error;
  }
}

function make(work: Work, changes: readonly FileChange[]): void {
  const placing = new Placing(work);
  const staged = changes.flatMap(({ tree, path, content }, number) => {
    if (content === undefined) return [];
    const source = join(work.folder, `${number}.new`);
    writeFileSync(source, content);
    return { source, tree, path };
  });
  // What goes does so last: who reads the folder meanwhile finds a renamed file twice, not never.
  for (const { source, tree, path } of staged) placing.put(source, tree, path);
  for (const { tree, path, content } of changes) {
    if (content === undefined) placing.remove(tree, path);
  }
}

class Placing {
  readonly #work: Work;
  /** Folders that are known to be there. */
  readonly #folders = new Set<string>();

  constructor(work: Work) {
    this.#work = work;
  }

  put(source: string, tree: Tree, path: string): void {
    const target = tree.at(path);
    this.#makeFolder(tree, path, dirname(target));
    const former = statusOf(target);
    if (former?.isDirectory()) this.#putAside(tree, path);
    else if (former !== undefined) linkSync(target, this.#work.setsAside(tree, path));
    this.#work.puts(source, tree, path);
    renameSync(source, target);
  }

  remove(tree: Tree, path: string): void {
    // Where a new file took its place, or lies in a folder that did, it is gone already.
    if (tree.status(path)?.isDirectory() ?? true) return;
    this.#putAside(tree, path);
    for (const parent of parents(path)) {
      if (!removeEmpty(tree.at(parent))) return;
    }
  }

  /**
   * What stands in the way is no document's: empty folders, sidecars that outlived their documents,
   * and files that this change takes away.
   */
  #makeFolder(tree: Tree, path: string, folder: string): void {
    if (this.#folders.has(folder)) return;
    let missing: string | undefined;
    for (const parent of [...parents(path)].reverse()) {
      const status = statusOf(tree.at(parent));
      if (status?.isDirectory()) continue;
      missing = parent;
      if (status !== undefined) this.#putAside(tree, parent);
      break;
    }
    if (missing !== undefined) this.#work.makes(tree, missing);
    mkdirSync(folder, { recursive: true });
    this.#folders.add(folder);
  }

  #putAside(tree: Tree, path: string): void {
    renameSync(tree.at(path), this.#work.setsAside(tree, path));
  }
}

/** Whether it was empty. To put a file back makes it again. */
function removeEmpty(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOTEMPTY") return false;
    throw error;
  }
}
