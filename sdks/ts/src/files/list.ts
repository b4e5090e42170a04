/** Listing of documents and the folders above them. */

import type { Stats } from "node:fs";

import { rfc3339 } from "../moment.js";
import { compareUtf8 } from "../text/order.js";
import { compileGlob } from "./glob.js";
import { baseName, isHidden, pathFault } from "./path.js";
import { statusOf, type Tree } from "./tree.js";

export interface Item {
  path: string;
  size: number;
  mtime: string;
  is_dir: boolean;
}

export interface ListQuery {
  /** The folder to list; the empty path is the brain itself. */
  dir: string;
  recursive: boolean;
  hidden: boolean;
  glob: string | undefined;
}

/** A document, or a folder with a document below it. */
export function itemAt(tree: Tree, path: string): Item | undefined {
  return itemOf(tree, path, tree.status(path));
}

/**
 * The entries of a folder or, if `recursive`, every document below it, sorted by path. Runs in one turn
 * of the event loop, so that no commit comes between: some 50 ms for 10,000 documents.
 */
export function list(documents: Tree, { dir, recursive, hidden, glob }: ListQuery): Item[] {
  const tree = documents.cached();
  const matches = glob === undefined ? () => true : compileGlob(glob);
  return (
    (recursive ? [...documentsBelow(tree, dir)] : childrenOf(tree, dir))
      .filter((path) => (hidden || !isHidden(path)) && matches(baseName(path)))
      // Their parents were just walked, so none of them is a link.
      .flatMap((path) => itemOf(tree, path, statusOf(tree.at(path))) ?? [])
      .sort((a, b) => compareUtf8(a.path, b.path))
  );
}

function itemOf(tree: Tree, path: string, status: Stats | undefined): Item | undefined {
  if (status === undefined) return undefined;
  const isFolder = status.isDirectory();
  if (isFolder ? documentsBelow(tree, path).next().done : !status.isFile()) return undefined;
  const size = isFolder ? 0 : status.size;
  return { path, size, mtime: rfc3339(status.mtimeMs), is_dir: isFolder };
}

function* documentsBelow(tree: Tree, dir: string): Generator<string> {
  for (const [path, entry] of tree.below(dir)) {
    if (entry.isFile() && pathFault(path) === undefined) yield path;
  }
}

function childrenOf(tree: Tree, dir: string): string[] {
  const prefix = dir === "" ? "" : `${dir}/`;
  return tree
    .entries(dir)
    .map((entry) => prefix + entry.name)
    .filter((path) => pathFault(path) === undefined);
}
