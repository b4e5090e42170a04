/** A folder of files, addressed by relative path. Symbolic links are not followed. */

import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
} from "node:fs";
import { parentOf, sidecarOf } from "./path.js";

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

export class Tree {
  /** What `status` returned, by path. */
  readonly #known: Map<string, Stats | undefined> | undefined;

  constructor(
    readonly root: string,
    known?: Map<string, Stats | undefined>,
  ) {
    this.#known = known;
  }

  /**
   * The same tree with a cache, valid for one turn of the event loop in which nothing changes. Without it,
   * listing a path a thousand folders deep takes half a million `lstat` calls.
   */
  cached(): Tree {
    return new Tree(this.root, new Map());
  }

  /** The absolute location of `path`; the empty path is the tree itself. */
  at(path: string): string {
    // Not `join`, which looks at each character: paths are canonical.
    return path === "" ? this.root : `${this.root}/${path}`;
  }

  /** The `lstat` of an entry; undefined if it is missing or reached through a link. */
  status(path: string): Stats | undefined {
    if (this.#known?.has(path)) return this.#known.get(path);
    const isReachable = path === "" || this.isFolder(parentOf(path));
    const status = isReachable ? statusOf(this.at(path)) : undefined;
    this.#known?.set(path, status);
    return status;
  }

  isFolder(path: string): boolean {
    return this.status(path)?.isDirectory() === true;
  }

  /** The status of a regular file; undefined for anything else. */
  file(path: string): Stats | undefined {
    const status = this.status(path);
    return status?.isFile() ? status : undefined;
  }

  read(path: string): Buffer | undefined {
    // Check first: reading a named pipe would block until somebody writes to it.
    if (this.file(path) === undefined) return undefined;
    return contentOf(this.at(path));
  }

  /** The direct entries of a folder; none if it is not a folder. */
  entries(folder: string): Dirent[] {
    return this.isFolder(folder) ? this.#readEntries(folder) : [];
  }

  /** Every entry below `folder`, at any depth, that is not itself a folder. */
  *below(folder: string): Generator<[path: string, entry: Dirent]> {
    const pending = this.isFolder(folder) ? [folder] : [];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const prefix = next === "" ? "" : `${next}/`;
      for (const entry of this.#readEntries(next)) {
        const path = prefix + entry.name;
        if (entry.isDirectory()) pending.push(path);
        else yield [path, entry];
      }
    }
  }

  /** The entries of an existing folder; none if it vanished meanwhile. */
  #readEntries(folder: string): Dirent[] {
    return undefinedIfMissing(() => readdirSync(this.at(folder), { withFileTypes: true })) ?? [];
  }
}

/**
 * A string that changes with the document or its sidecar; the inode tells two writes in one clock tick
 * apart.
 */
export function stampOf(path: string, documents: Tree, sidecars: Tree): string {
  return [documents.at(path), sidecars.at(sidecarOf(path))]
    .map((file) => {
      const status = undefinedIfMissing(() =>
        lstatSync(file, { bigint: true, throwIfNoEntry: false }),
      );
      return status === undefined ? "-" : `${status.size} ${status.mtimeNs} ${status.ino}`;
    })
    .join("; ");
}

/** The `lstat` of `file`; undefined if it is missing. */
export function statusOf(file: string): Stats | undefined {
  return undefinedIfMissing(() => lstatSync(file, { throwIfNoEntry: false }));
}

/**
 * The content of a regular file; undefined if it is missing. Anything else counts as missing, such as a
 * link, or a pipe, whose reader would wait for its writer.
 */
export function contentOf(file: string): Buffer | undefined {
  return undefinedIfMissing(() => {
    const descriptor = openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      return fstatSync(descriptor).isFile() ? readFileSync(descriptor) : undefined;
    } finally {
      closeSync(descriptor);
    }
  });
}

/** Errors of opening a link and a socket, besides those of a missing file. */
const MISSING = new Set<unknown>(["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"]);

function undefinedIfMissing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (MISSING.has(code)) return undefined;
    throw error;
  }
}
