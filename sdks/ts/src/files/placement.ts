/** Atomic changes to several files: all of them, or none. */

import { linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

import { Journal } from "./journal.js";
import { parents } from "./path.js";
import type { Staging } from "./staging.js";
import { statusOf, type Tree } from "./tree.js";
import { removeEmptyAbove, removeEmptyFolders, undo } from "./undo.js";

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
export function place(staging: Staging, changes: readonly FileChange[], commit: () => void): void {
  const change = staging.newFolder();
  let removable = true;
  try {
    const journal = new Journal(change);
    try {
      const placement = new Placement(staging.home, change, journal);
      placement.apply(changes);
      commit();
      journal.end();
      placement.removeEmptyFolders();
    } catch (error) {
      const faults = undo(staging.home, change, journal.steps);
      if (faults.length > 0) {
        // The folder holds the only copy of what could not be restored.
        removable = false;
        throw new AggregateError([error, ...faults], `some changes could not be undone: ${change}`);
      }
      journal.end();
      throw error;
    } finally {
      journal.close();
    }
  } finally {
    if (removable) rmSync(change, { recursive: true, force: true });
  }
}

class Placement {
  readonly #home: string;
  readonly #change: string;
  readonly #journal: Journal;
  #count = 0;
  /** Folders known to exist. */
  readonly #folders = new Set<string>();
  readonly #removed: string[] = [];

  constructor(home: string, change: string, journal: Journal) {
    this.#home = home;
    this.#change = change;
    this.#journal = journal;
  }

  apply(changes: readonly FileChange[]): void {
    const staged = changes.flatMap(({ tree, path, content }) => {
      if (content === undefined) return [];
      const name = this.#newName();
      writeFileSync(join(this.#change, name), content);
      return { name, tree, path };
    });
    // Remove last: whoever reads the folder meanwhile finds a renamed file twice rather than not at all.
    for (const { name, tree, path } of staged) this.#put(name, tree, path);
    for (const { tree, path, content } of changes) {
      // It is gone already if a new file, or the folder of one, took its place.
      if (content !== undefined || (tree.status(path)?.isDirectory() ?? true)) continue;
      this.#remove(tree, path);
    }
  }

  /** Remove the folders that became empty; the change is committed by then. */
  removeEmptyFolders(): void {
    for (const path of this.#removed) removeEmptyAbove(this.#home, path);
  }

  #newName(): string {
    return String(++this.#count);
  }

  #put(name: string, tree: Tree, path: string): void {
    const target = tree.at(path);
    this.#makeFolder(tree, path);
    if (statusOf(target)?.isDirectory()) this.#clear(tree, path);
    const old = this.#newName();
    this.#journal.record({ put: relative(this.#home, target), new: name, old });
    // A hard link, so that the document never disappears from its path.
    if (statusOf(target) !== undefined) linkSync(target, join(this.#change, old));
    // The new file itself stays, so that an undo recognizes it.
    const link = join(this.#change, `${name}.link`);
    linkSync(join(this.#change, name), link);
    renameSync(link, target);
  }

  /**
   * Create the folders of `path`. Anything in their way is removed; it can only be an empty folder, a
   * sidecar without a document, or a file that this change removes.
   */
  #makeFolder(tree: Tree, path: string): void {
    const folders = [...parents(path)];
    const nearest = folders[0] ?? "";
    if (this.#folders.has(tree.at(nearest))) return;
    // A link in place of the root is removed, never what it leads to.
    const root = statusOf(tree.root);
    // A file there is somebody's data: making the folder fails.
    if (root !== undefined && !root.isDirectory() && !root.isFile()) rmSync(tree.root);
    for (const parent of folders.reverse()) {
      const status = statusOf(tree.at(parent));
      if (status?.isDirectory()) continue;
      if (status !== undefined) this.#remove(tree, parent);
      break;
    }
    mkdirSync(tree.at(nearest), { recursive: true });
    this.#folders.add(tree.at(nearest));
  }

  /** Remove a folder that is in the way. */
  #clear(tree: Tree, path: string): void {
    removeEmptyFolders(tree.at(path));
    if (statusOf(tree.at(path)) !== undefined) this.#remove(tree, path);
  }

  #remove(tree: Tree, path: string): void {
    const old = this.#newName();
    const target = tree.at(path);
    this.#journal.record({ remove: relative(this.#home, target), old });
    renameSync(target, join(this.#change, old));
    this.#removed.push(relative(this.#home, target));
  }
}
