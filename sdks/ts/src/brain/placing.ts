/** Changing several files so that all of it happens, or nothing. */

import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

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
 * of it, and it needs no lock.
 */
export function place(staging: string, changes: readonly FileChange[], commit: () => void): void {
  const work = mkdtempSync(join(staging, "commit-"));
  const placing = new Placing(work);
  try {
    const staged = changes.flatMap(({ tree, path, content }, number) => {
      if (content === undefined) return [];
      const source = join(work, `${number}.new`);
      writeFileSync(source, content);
      return { source, tree, path };
    });
    // What goes does so last: a kill between the two halves of a rename leaves both files, not none.
    for (const { source, tree, path } of staged) placing.put(source, tree, path);
    for (const { tree, path, content } of changes) {
      if (content === undefined) placing.remove(tree, path);
    }
    commit();
  } catch (error) {
    placing.undo();
    throw error;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

class Placing {
  readonly #work: string;
  readonly #undo: (() => void)[] = [];
  /** Folders that are known to be there. */
  readonly #folders = new Set<string>();

  constructor(work: string) {
    this.#work = work;
  }

  put(source: string, tree: Tree, path: string): void {
    const target = tree.at(path);
    this.#makeFolder(tree, path, dirname(target));
    const former = statusOf(target);
    if (former !== undefined && !former.isDirectory()) {
      const old = this.#aside();
      linkSync(target, old);
      this.#undo.push(() => {
        renameSync(old, target);
      });
    } else {
      if (former !== undefined) this.#putAside(target);
      this.#undo.push(() => {
        rmSync(target, { force: true });
      });
    }
    renameSync(source, target);
  }

  remove(tree: Tree, path: string): void {
    // Where a new file took its place, or lies in a folder that did, it is gone already.
    if (tree.status(path)?.isDirectory() ?? true) return;
    this.#putAside(tree.at(path));
    for (const parent of parents(path)) {
      if (!this.#removeEmpty(tree.at(parent))) return;
    }
  }

  undo(): void {
    for (const step of this.#undo.reverse()) step();
  }

  /**
   * What stands in the way is no document's: empty folders, sidecars that outlived their documents,
   * and files that this change takes away.
   */
  #makeFolder(tree: Tree, path: string, folder: string): void {
    if (this.#folders.has(folder)) return;
    for (const parent of [...parents(path)].reverse()) {
      const status = statusOf(tree.at(parent));
      if (status === undefined) break;
      if (!status.isDirectory()) this.#putAside(tree.at(parent));
    }
    const made = mkdirSync(folder, { recursive: true });
    if (made !== undefined) {
      this.#undo.push(() => {
        rmSync(made, { recursive: true, force: true });
      });
    }
    this.#folders.add(folder);
  }

  #removeEmpty(folder: string): boolean {
    try {
      rmdirSync(folder);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOTEMPTY") return false;
      throw error;
    }
    this.#undo.push(() => {
      mkdirSync(folder);
    });
    return true;
  }

  #putAside(file: string): void {
    const aside = this.#aside();
    renameSync(file, aside);
    this.#undo.push(() => {
      renameSync(aside, file);
    });
  }

  #aside(): string {
    return join(this.#work, `${this.#undo.length}.old`);
  }
}
