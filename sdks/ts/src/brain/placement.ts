/** Atomic changes to several files: all of them, or none. */

import { linkSync, mkdirSync, renameSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { CommitWork } from "./journal.js";
import { parents } from "./paths.js";
import { statusOf, type Tree } from "./tree.js";

export interface FileChange {
  tree: Tree;
  path: string;
  /** Undefined if the file is to be removed. */
  content: Buffer | undefined;
}

/**
 * Apply `changes` and call `commit`. If anything fails, `commit` included, the former files are restored
 * and the error is thrown. It runs in one turn of the event loop, so no other request sees a partial
 * state, and it needs no lock. If the process is killed, the next start of a daemon undoes the changes.
 *
 * @throws AggregateError if not everything could be undone; the next start tries again.
 */
export function place(staging: string, changes: readonly FileChange[], commit: () => void): void {
  const work = new CommitWork(staging);
  try {
    attempt(work, changes, commit);
    work.settle();
  } finally {
    work.close();
  }
}

function attempt(work: CommitWork, changes: readonly FileChange[], commit: () => void): void {
  try {
    applyChanges(work, changes);
    commit();
  } catch (error) {
    const faults = work.undo();
    if (faults.length > 0) {
      // The work folder holds the only copy of what could not be restored; the next start tries again.
      throw new AggregateError(
        [error, ...faults],
        `some changes could not be undone: see ${work.folder}`,
      );
    }
    work.settle();
    throw error;
  }
}

function applyChanges(work: CommitWork, changes: readonly FileChange[]): void {
  const placement = new Placement(work);
  const staged = changes.flatMap(({ tree, path, content }, number) => {
    if (content === undefined) return [];
    const source = join(work.folder, `${number}.new`);
    writeFileSync(source, content);
    return { source, tree, path };
  });
  // Remove last: whoever reads the folder meanwhile finds a renamed file twice rather than not at all.
  for (const { source, tree, path } of staged) placement.put(source, tree, path);
  for (const { tree, path, content } of changes) {
    if (content === undefined) placement.remove(tree, path);
  }
}

class Placement {
  readonly #work: CommitWork;
  /** Folders known to exist. */
  readonly #folders = new Set<string>();

  constructor(work: CommitWork) {
    this.#work = work;
  }

  put(source: string, tree: Tree, path: string): void {
    const target = tree.at(path);
    this.#makeFolder(tree, path, dirname(target));
    const former = statusOf(target);
    if (former?.isDirectory()) this.#setAside(tree, path);
    else if (former !== undefined) linkSync(target, this.#work.recordSetAside(tree, path));
    this.#work.recordPut(source, tree, path);
    renameSync(source, target);
  }

  remove(tree: Tree, path: string): void {
    // It is gone already if a new file, or the folder of one, took its place.
    if (tree.status(path)?.isDirectory() ?? true) return;
    this.#setAside(tree, path);
    for (const parent of parents(path)) {
      if (!removeEmpty(tree.at(parent))) return;
    }
  }

  /**
   * Create the folder of `path`. Anything in its way is set aside; it can only be an empty folder, a
   * sidecar without a document, or a file that this commit removes.
   */
  #makeFolder(tree: Tree, path: string, folder: string): void {
    if (this.#folders.has(folder)) return;
    let missing: string | undefined;
    for (const parent of [...parents(path)].reverse()) {
      const status = statusOf(tree.at(parent));
      if (status?.isDirectory()) continue;
      missing = parent;
      if (status !== undefined) this.#setAside(tree, parent);
      break;
    }
    if (missing !== undefined) this.#work.recordFolder(tree, missing);
    mkdirSync(folder, { recursive: true });
    this.#folders.add(folder);
  }

  #setAside(tree: Tree, path: string): void {
    renameSync(tree.at(path), this.#work.recordSetAside(tree, path));
  }
}

/** Remove `folder` if it is empty, and return whether it was. An undo creates it again. */
function removeEmpty(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOTEMPTY") return false;
    throw error;
  }
}
