/** What a brain's documents will be once some changes are made: what is on disk, and changes above it. */

import { Problem } from "../problem.js";
import type { Change } from "./changes.js";
import { documentOfSidecar, parents, sidecarOf } from "./paths.js";
import type { FileChange } from "./placing.js";
import type { Tree } from "./tree.js";

/** A document as its files have it. */
export interface StoredDocument {
  content: Buffer;
  sidecar: Buffer | undefined;
}

/** The same while it is drafted: to join at each append would copy what is there each time. */
interface Drafted {
  pieces: Buffer[];
  sidecar: Buffer | undefined;
}

/** Good for one turn of the event loop: what is on disk is looked up as it is asked for. */
export class Draft {
  /** What happened, in order. */
  readonly changes: Change[] = [];
  readonly #documents: Tree;
  readonly #sidecars: Tree;
  /** As they are on disk while the changes are made. */
  readonly #seen: { documents: Tree; sidecars: Tree };
  /** Undefined of a document that is gone. */
  readonly #changed = new Map<string, Drafted | undefined>();

  constructor(documents: Tree, sidecars: Tree) {
    this.#documents = documents;
    this.#sidecars = sidecars;
    this.#seen = { documents: documents.remembering(), sidecars: sidecars.remembering() };
  }

  /** @throws Problem `conflict` where a path would be file and folder at once. */
  write(path: string, content: Buffer, sidecar = this.#sidecarOf(path)): void {
    this.#set(path, { pieces: [content], sidecar });
  }

  /** @throws Problem as `write` does. */
  append(path: string, content: Buffer): void {
    const drafted = this.#get(path) ?? { pieces: [], sidecar: undefined };
    this.#set(path, drafted);
    drafted.pieces.push(content);
  }

  /** @throws Problem `not_found` */
  delete(path: string): void {
    if (!this.#has(path)) throw missing(path);
    this.#changed.set(path, undefined);
    this.changes.push({ kind: "deleted", path });
  }

  /** @throws Problem `not_found`, `conflict` */
  rename(from: string, to: string): void {
    const held = this.#get(from);
    if (held === undefined) throw missing(from);
    if (from === to) return;
    this.#changed.set(from, undefined);
    this.#refuseConflict(to);
    this.#changed.set(to, held);
    this.changes.push({ kind: "renamed", path: to, old_path: from });
  }

  get written(): [path: string, held: StoredDocument][] {
    return [...this.#changed].flatMap(([path, held]) => (held ? [[path, joined(held)]] : []));
  }

  get removed(): string[] {
    return [...this.#changed].flatMap(([path, held]) => (held ? [] : [path]));
  }

  get files(): FileChange[] {
    return [...this.#changed].flatMap(([path, held]) => [
      { tree: this.#sidecars, path: sidecarOf(path), content: held?.sidecar },
      { tree: this.#documents, path, content: held && joined(held).content },
    ]);
  }

  #has(path: string): boolean {
    if (this.#changed.has(path)) return this.#changed.get(path) !== undefined;
    return this.#seen.documents.file(path) !== undefined;
  }

  #set(path: string, drafted: Drafted): void {
    this.#refuseConflict(path);
    const kind = this.#has(path) ? "updated" : "created";
    this.#changed.set(path, drafted);
    this.changes.push({ kind, path });
  }

  #get(path: string): Drafted | undefined {
    if (this.#changed.has(path)) return this.#changed.get(path);
    const content = this.#seen.documents.read(path);
    return content && { pieces: [content], sidecar: this.#sidecarOf(path) };
  }

  /** A sidecar that outlived its document is nobody's. */
  #sidecarOf(path: string): Buffer | undefined {
    if (this.#changed.has(path)) return this.#changed.get(path)?.sidecar;
    return this.#has(path) ? this.#seen.sidecars.read(sidecarOf(path)) : undefined;
  }

  #refuseConflict(path: string): void {
    for (const folder of parents(path)) {
      if (!this.#mayBeFolder(folder)) throw conflict(path, `${folder} is no folder`);
      // Its own sidecar would lie in the folder that is another's sidecar.
      const document = documentOfSidecar(folder);
      if (document !== undefined && this.#has(document)) {
        throw conflict(path, `the sidecar of ${document} lies in the way of its own`);
      }
    }
    if (this.#isFolder(path)) throw conflict(path, "it is a folder");
    if (this.#isFolder(sidecarOf(path))) throw conflict(path, "its sidecar would be a folder");
  }

  #mayBeFolder(path: string): boolean {
    if (this.#changed.has(path)) return this.#changed.get(path) === undefined;
    const { documents } = this.#seen;
    return documents.isFolder(path) || documents.status(path) === undefined;
  }

  /** Whether anything lies below `path`; what is no document, as a link, is not ours to remove. */
  #isFolder(path: string): boolean {
    for (const [changed, held] of this.#changed) {
      if (held !== undefined && changed.startsWith(`${path}/`)) return true;
    }
    for (const [file] of this.#seen.documents.below(path)) {
      if (!this.#changed.has(file)) return true;
    }
    return false;
  }
}

/** Once: later the one piece is the content. */
function joined(drafted: Drafted): StoredDocument {
  const [first, ...more] = drafted.pieces;
  const content = first !== undefined && more.length === 0 ? first : Buffer.concat(drafted.pieces);
  drafted.pieces = [content];
  return { content, sidecar: drafted.sidecar };
}

export function missing(path: string): Problem {
  return new Problem("not_found", `no document ${path}`);
}

function conflict(path: string, reason: string): Problem {
  return new Problem("conflict", `${path}: ${reason}`);
}
