/** What lies on disk, and whether it changed. */

import { type Dirent, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Every regular file below `root` as its relative path; links are not followed. */
export function* walk(root: string): Generator<string> {
  const pending = [""];
  for (let prefix = pending.pop(); prefix !== undefined; prefix = pending.pop()) {
    for (const entry of entries(join(root, prefix))) {
      const path = prefix + entry.name;
      if (entry.isDirectory()) pending.push(`${path}/`);
      else if (entry.isFile()) yield path;
    }
  }
}

/** What changes when one of the files changes; the inode tells two writes in one clock tick. */
export function stampOf(...files: string[]): string {
  return files
    .map((file) => {
      const status = unlessGone(() => statSync(file, { bigint: true }));
      return status === undefined ? "-" : `${status.size} ${status.mtimeNs} ${status.ino}`;
    })
    .join("; ");
}

/** Undefined where the file is not there, or no longer. */
export function contentOf(file: string): Buffer | undefined {
  return unlessGone(() => readFileSync(file));
}

function entries(folder: string): Dirent[] {
  return unlessGone(() => readdirSync(folder, { withFileTypes: true })) ?? [];
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
