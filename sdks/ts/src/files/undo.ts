/** Undoing a change from its journal. */

import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

import type { Step } from "./journal.js";
import { parents } from "./path.js";
import { statusOf } from "./tree.js";

/**
 * Undo all steps, the last one first, even if some fail; returns the errors. The change's folder may then
 * hold the only copy of files. It can be repeated, also after a kill. What was written later stays, and
 * nothing of a brain that was deleted is brought back.
 */
export function undo(home: string, change: string, steps: readonly Step[]): unknown[] {
  return steps.toReversed().flatMap((step) => {
    try {
      if ("put" in step) {
        if (hasBrain(home, step.put)) takeAway(home, step.put, change, step.new, step.old);
      } else if (hasBrain(home, step.remove)) {
        putBack(home, step.remove, join(change, step.old));
      }
      return [];
    } catch (error) {
      return [error];
    }
  });
}

function hasBrain(home: string, path: string): boolean {
  const id = path.split("/")[1];
  return id !== undefined && isFolder(join(home, "brains", id));
}

function takeAway(home: string, path: string, change: string, placed: string, old: string): void {
  if (!isReachedByFolders(home, path)) return;
  const target = join(home, path);
  // Any other file was put there later.
  if (isSameFile(target, join(change, placed))) {
    if (statusOf(join(change, old)) === undefined) rmSync(target);
    else renameSync(join(change, old), target);
  }
  if (statusOf(target) === undefined) removeEmptyAbove(home, path);
}

function putBack(home: string, path: string, old: string): void {
  // A parent that is a file by now was written later.
  if (statusOf(old) === undefined || !isReachedByFolders(home, path)) return;
  const target = join(home, path);
  removeEmptyFolders(target);
  if (statusOf(target) !== undefined) return;
  mkdirSync(dirname(target), { recursive: true });
  renameSync(old, target);
}

/** Whether all that exists of the folders above `path` are folders, not links or files. */
function isReachedByFolders(home: string, path: string): boolean {
  return [...parents(path)].every((parent) => {
    const status = statusOf(join(home, parent));
    return status === undefined || status.isDirectory();
  });
}

/** Remove the folders above `path` that are empty, but not the brain's own folder. */
export function removeEmptyAbove(home: string, path: string): void {
  for (const parent of parents(path)) {
    if (parent.split("/").length <= 2) return;
    const folder = join(home, parent);
    if (statusOf(folder) === undefined) continue;
    if (!isFolder(folder) || readdirSync(folder).length > 0) return;
    rmdirSync(folder);
  }
}

/** Remove `place` if it is a folder that contains nothing but empty folders. */
export function removeEmptyFolders(place: string): void {
  const folders = isFolder(place) ? [place] : [];
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory()) return;
      folders.push(join(folder, entry.name));
    }
  }
  for (const folder of folders.reverse()) rmdirSync(folder);
}

function isFolder(path: string): boolean {
  return statusOf(path)?.isDirectory() === true;
}

function isSameFile(a: string, b: string): boolean {
  const [first, second] = [statusOf(a), statusOf(b)];
  return first !== undefined && first.dev === second?.dev && first.ino === second.ino;
}
