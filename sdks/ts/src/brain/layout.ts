/** The layout of the state folder. */

import { accessSync, constants, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const INDEX_SUFFIX = ".log";

/** The databases that indexes once were, and the files that SQLite adds to them; a lock is none. */
const FORMER_INDEX = /\.sqlite(?:-wal|-shm|-journal)?$/;

/** The files and folders of one brain. */
export interface BrainPaths {
  documents: string;
  sidecars: string;
  description: string;
  index: string;
  lock: string;
}

/** The state folder. */
export class Home {
  readonly brains: string;
  readonly #root: string;
  readonly staging: string;

  constructor(root: string) {
    this.#root = root;
    this.brains = join(root, "brains");
    this.staging = join(root, "staging");
  }

  /** Create missing folders; throws the file system's error if it cannot. */
  prepare(): void {
    for (const folder of ["brains", "meta", "descriptions", "staging", "index/ts"]) {
      const path = join(this.#root, folder);
      makeFolder(path);
      accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    }
  }

  /** The ids of all brains that have an index. */
  indexedIds(): Set<string> {
    const names = readdirSync(join(this.#root, "index", "ts"));
    const files = names.filter((name) => name.includes(INDEX_SUFFIX));
    return new Set(files.map((name) => name.slice(0, name.lastIndexOf(INDEX_SUFFIX))));
  }

  /** The files of indexes that no daemon reads any longer. */
  formerIndexes(): string[] {
    const folder = join(this.#root, "index", "ts");
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile() && FORMER_INDEX.test(entry.name))
      .map(({ name }) => join(folder, name));
  }

  of(brainId: string): BrainPaths {
    return {
      documents: join(this.brains, brainId),
      sidecars: join(this.#root, "meta", brainId),
      description: join(this.#root, "descriptions", `${brainId}.txt`),
      index: join(this.#root, "index", "ts", brainId + INDEX_SUFFIX),
      lock: join(this.#root, "index", "ts", `${brainId}.lock`),
    };
  }
}

/** Node's recursive mkdir never returns where mkdir always fails with ENOENT, as below /proc. */
function makeFolder(path: string): void {
  if (isFolder(path)) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // A second daemon that starts on the same folder may have created it.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
