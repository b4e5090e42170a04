/** Atomic changes to several files: all of them, or none. */

import {
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";

import { endJournal, Journal, type PutStep } from "./journal.js";
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
 * and the error is thrown; what `commit` did is the caller's to undo, even if it succeeded. It runs in one
 * turn of the event loop, so no other request sees a partial state, and it needs no lock. If the process is
 * killed, the next start of a daemon undoes the changes.
 *
 * @throws AggregateError if not everything could be undone; the next start tries again.
 */
export function place(staging: Staging, changes: readonly FileChange[], commit: () => void): void {
  const change = staging.newFolder();
  let removable = true;
  try {
    const journal = new Journal(change);
    const placement = new Placement(staging.home, change, journal);
    try {
      placement.apply(changes);
      commit();
      endJournal(change);
    } catch (error) {
      const faults = undo(staging.home, change, journal.steps);
      if (faults.length > 0) {
        // The folder holds the only copy of what could not be restored.
        removable = false;
        throw new AggregateError([error, ...faults], `some changes could not be undone: ${change}`);
      }
      endJournal(change);
      throw error;
    } finally {
      journal.close();
    }
    try {
      placement.removeEmptyFolders();
    } catch {
      // The change is committed: an empty folder that stays does no harm.
    }
  } finally {
    if (removable) removeFolder(change);
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
    const puts = staged.map(({ name, tree, path }) => ({
      step: { put: this.#relative(tree, path), new: name, old: this.#newName() },
      replaces: this.#makeRoom(tree, path),
    }));
    this.#journal.record(puts.map(({ step }) => step));
    // Remove last: whoever reads the folder meanwhile finds a renamed file twice rather than not at all.
    for (const { step, replaces } of puts) this.#put(step, replaces);
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

  /** The new file itself stays in the change's folder, so that an undo recognizes it. */
  #put(step: PutStep, replaces: boolean): void {
    const target = join(this.#home, step.put);
    const file = join(this.#change, step.new);
    if (!replaces) {
      linkSync(file, target);
      return;
    }
    // A hard link, so that the document never disappears from its path.
    linkSync(target, join(this.#change, step.old));
    linkSync(file, `${file}.link`);
    renameSync(`${file}.link`, target);
  }

  /** Create the folders of `path`, and remove a folder in its place; returns whether a file is there. */
  #makeRoom(tree: Tree, path: string): boolean {
    this.#makeFolder(tree, path);
    const status = statusOf(tree.at(path));
    if (status?.isDirectory()) this.#clear(tree, path);
    return status?.isDirectory() === false;
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
    const step = { remove: this.#relative(tree, path), old: this.#newName() };
    this.#journal.record([step]);
    renameSync(tree.at(path), join(this.#change, step.old));
    this.#removed.push(step.remove);
  }

  #relative(tree: Tree, path: string): string {
    return relative(this.#home, tree.at(path));
  }
}

/** Remove a change's folder. `rmSync` looks at each file before it removes it, which takes twice as long. */
function removeFolder(folder: string): void {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) rmSync(path, { recursive: true, force: true });
      else unlinkSync(path);
    }
    rmdirSync(folder);
  } catch {
    // The change is stored, or undone, all the same. What stays goes with the daemon.
  }
}
