/** A folder of files by their relative paths. Links are not followed, and lead to nothing. */

import { type Dirent, lstatSync, readdirSync, readFileSync, type Stats } from "node:fs";
import { join } from "node:path";

import { parents } from "./paths.js";

export class Tree {
  /** Folders that are known to be there, with no link on the way to them. */
  readonly #real: Set<string> | undefined;

  constructor(
    readonly root: string,
    real?: Set<string>,
  ) {
    this.#real = real;
  }

  /**
   * The same tree for one turn of the event loop in which nothing changes: it looks at a folder once.
   * Without, the folders above a path a thousand deep would take half a million looks.
   */
  remembering(): Tree {
    return new Tree(this.root, new Set());
  }

  /** Where `path` lies; the empty path is the tree itself. */
  at(path: string): string {
    return join(this.root, path);
  }

  /** Of the entry itself; undefined where there is none, or the way to it is a link. */
  status(path: string): Stats | undefined {
    const way: string[] = [];
    for (const parent of parents(path)) {
      if (this.#real?.has(parent)) break;
      if (!statusOf(this.at(parent))?.isDirectory()) return undefined;
      way.push(parent);
    }
    for (const parent of way) this.#real?.add(parent);
    return statusOf(this.at(path));
  }

  isFolder(path: string): boolean {
    return this.#real?.has(path) === true || this.status(path)?.isDirectory() === true;
  }

  /** Of a regular file. */
  file(path: string): Stats | undefined {
    const status = this.status(path);
    return status?.isFile() ? status : undefined;
  }

  read(path: string): Buffer | undefined {
    // Looked at first: to read a named pipe would wait for its writer.
    if (this.file(path) === undefined) return undefined;
    return contentOf(this.at(path));
  }

  /** What lies directly in a folder. */
  entries(folder: string): Dirent[] {
    return this.isFolder(folder) ? this.#listed(folder) : [];
  }

  /** The path of everything below `folder` that is no folder itself, and what it is. */
  *below(folder: string): Generator<[path: string, entry: Dirent]> {
    const pending = this.isFolder(folder) ? [folder] : [];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const prefix = next === "" ? "" : `${next}/`;
      for (const entry of this.#listed(next)) {
        const path = prefix + entry.name;
        if (entry.isDirectory()) pending.push(path);
        else yield [path, entry];
      }
    }
  }

  /** Of a folder that was just seen to be one. */
  #listed(folder: string): Dirent[] {
    return unlessGone(() => readdirSync(this.at(folder), { withFileTypes: true })) ?? [];
  }
}

/** What changes when one of the files changes; the inode tells two writes in one clock tick. */
export function stampOf(...files: string[]): string {
  return files
    .map((file) => {
      const status = unlessGone(() => lstatSync(file, { bigint: true, throwIfNoEntry: false }));
      return status === undefined ? "-" : `${status.size} ${status.mtimeNs} ${status.ino}`;
    })
    .join("; ");
}

/** Of the entry itself, be it a link; undefined where there is none. */
export function statusOf(file: string): Stats | undefined {
  return unlessGone(() => lstatSync(file, { throwIfNoEntry: false }));
}

/** Undefined where the file is not there, or no longer. */
export function contentOf(file: string): Buffer | undefined {
  return unlessGone(() => readFileSync(file));
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
