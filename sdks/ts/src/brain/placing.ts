/** Writing several files so that all of them are there, or none. */

import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

export interface NewFile {
  target: string;
  content: Uint8Array | string;
}

/**
 * Puts `files` in their places and calls `commit`. Where anything fails, `commit` included, what was
 * there before is back, and the error goes on. It runs in one turn of the event loop: no other
 * request sees a part of it, and it needs no lock.
 */
export function place(staging: string, files: Iterable<NewFile>, commit: () => void): void {
  const work = mkdtempSync(join(staging, "ingest-"));
  const undo: (() => void)[] = [];
  try {
    const staged: { source: string; target: string }[] = [];
    for (const { target, content } of files) {
      const source = join(work, `${staged.length}.new`);
      writeFileSync(source, content);
      staged.push({ source, target });
    }
    for (const { source, target } of staged) replace(source, target, undo);
    commit();
  } catch (error) {
    for (const step of undo.reverse()) step();
    throw error;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function replace(source: string, target: string, undo: (() => void)[]): void {
  const folder = dirname(target);
  if (!existsSync(folder)) {
    const made = mkdirSync(folder, { recursive: true });
    if (made !== undefined) {
      undo.push(() => {
        rmSync(made, { recursive: true, force: true });
      });
    }
  }
  if (existsSync(target)) {
    const old = `${source}.old`;
    linkSync(target, old);
    undo.push(() => {
      renameSync(old, target);
    });
  } else {
    undo.push(() => {
      rmSync(target, { force: true });
    });
  }
  renameSync(source, target);
}
