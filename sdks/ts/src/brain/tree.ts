/** A folder of files by their relative paths. Links are not followed, and lead to nothing. */

import { type Dirent, lstatSync, readdirSync, readFileSync, type Stats } from "node:fs";
import { join } from "node:path";

import { parents } from "./paths.js";

export class Tree {
  constructor(readonly root: string) {}

  /** Where `path` lies; the empty path is the tree itself. */
  at(path: string): string {
    return join(this.root, path);
  }

  /** Of the entry itself; undefined where there is none, or the way to it is a link. */
  status(path: string): Stats | undefined {
    for (const parent of parents(path)) {
      if (!statusOf(this.at(parent))?.isDirectory()) return undefined;
    }
    return statusOf(this.at(path));
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
    if (!this.status(folder)?.isDirectory()) return [];
    return unlessGone(() => readdirSync(this.at(folder), { withFileTypes: true })) ?? [];
  }

  /** The path of everything below `folder` that is no folder itself, and what it is. */
  *below(folder: string): Generator<[path: string, entry: Dirent]> {
    const pending = [folder];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const prefix = next === "" ? "" : `${next}/`;
      for (const entry of this.entries(next)) {
        const path = prefix + entry.name;
        if (entry.isDirectory()) pending.push(path);
        else yield [path, entry];
      }
    }
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
