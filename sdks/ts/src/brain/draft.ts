/** Pending changes to a brain's documents, layered over the files on disk. */

import type { Change } from "../feed.js";
import { documentOfSidecar, parents, sidecarOf } from "../files/path.js";
import type { FileChange } from "../files/placement.js";
import type { Tree } from "../files/tree.js";
import { Problem } from "../problem.js";

/** A document in a draft. Its pieces are joined once: joining at each append would be quadratic. */
interface DraftDocument {
  pieces: Buffer[];
  sidecar: Buffer | undefined;
}

/** A draft is valid for one turn of the event loop, because it reads the disk lazily. */
export class Draft {
  /** The changes made so far, in order. */
  readonly changes: Change[] = [];
  readonly #documents: Tree;
  readonly #sidecars: Tree;
  /** The files on disk before the changes. */
  readonly #snapshot: { documents: Tree; sidecars: Tree };
  /** Changed documents; undefined for a deleted one. */
  readonly #documentsByPath = new Map<string, DraftDocument | undefined>();

  constructor(documents: Tree, sidecars: Tree) {
    this.#documents = documents;
    this.#sidecars = sidecars;
    this.#snapshot = { documents: documents.cached(), sidecars: sidecars.cached() };
  }

  /** @throws Problem `conflict` if a path would be a file and a folder at once. */
  write(path: string, content: Buffer, sidecar = this.#sidecarOf(path)): void {
    this.#set(path, { pieces: [content], sidecar });
  }

  /** @throws Problem as `write` does. */
  append(path: string, content: Buffer): void {
    const document = this.#get(path) ?? { pieces: [], sidecar: undefined };
    this.#set(path, document);
    document.pieces.push(content);
  }

  /** @throws Problem `not_found` if there is no such document. */
  delete(path: string): void {
    if (!this.#has(path)) throw documentNotFound(path);
    this.#documentsByPath.set(path, undefined);
    this.changes.push({ kind: "deleted", path });
  }

  /** @throws Problem `not_found` if there is no document `from`; `conflict` as `write`. */
  rename(from: string, to: string): void {
    const document = this.#get(from);
    if (document === undefined) throw documentNotFound(from);
    if (from === to) return;
    this.#documentsByPath.set(from, undefined);
    this.#requireNoConflict(to);
    this.#documentsByPath.set(to, document);
    this.changes.push({ kind: "renamed", path: to, old_path: from });
  }

  /** Documents that the draft creates or changes. */
  get written(): [path: string, content: Buffer, sidecar: Buffer | undefined][] {
    return [...this.#documentsByPath].flatMap(([path, document]) =>
      document ? [[path, joinPieces(document), document.sidecar]] : [],
    );
  }

  /** Paths of documents that the draft removes. */
  get removed(): string[] {
    return [...this.#documentsByPath].flatMap(([path, document]) => (document ? [] : [path]));
  }

  /** The file changes that carry out the draft. */
  get files(): FileChange[] {
    return [...this.#documentsByPath].flatMap(([path, document]) => [
      { tree: this.#sidecars, path: sidecarOf(path), content: document?.sidecar },
      { tree: this.#documents, path, content: document && joinPieces(document) },
    ]);
  }

  #has(path: string): boolean {
    if (this.#documentsByPath.has(path)) return this.#documentsByPath.get(path) !== undefined;
    return this.#snapshot.documents.file(path) !== undefined;
  }

  #set(path: string, document: DraftDocument): void {
    this.#requireNoConflict(path);
    const kind = this.#has(path) ? "updated" : "created";
    this.#documentsByPath.set(path, document);
    this.changes.push({ kind, path });
  }

  #get(path: string): DraftDocument | undefined {
    if (this.#documentsByPath.has(path)) return this.#documentsByPath.get(path);
    const content = this.#snapshot.documents.read(path);
    return content && { pieces: [content], sidecar: this.#sidecarOf(path) };
  }

  /** The document's sidecar; one left behind by a deleted document is ignored. */
  #sidecarOf(path: string): Buffer | undefined {
    if (this.#documentsByPath.has(path)) return this.#documentsByPath.get(path)?.sidecar;
    return this.#has(path) ? this.#snapshot.sidecars.read(sidecarOf(path)) : undefined;
  }

  #requireNoConflict(path: string): void {
    for (const folder of parents(path)) {
      if (!this.#canBeFolder(folder)) throw conflict(path, `${folder} is not a folder`);
      // Its sidecar would need a folder where another document has its sidecar.
      const owner = documentOfSidecar(folder);
      if (owner !== undefined && this.#has(owner)) {
        throw conflict(path, `its sidecar would collide with the sidecar of ${owner}`);
      }
    }
    if (this.#isFolder(path)) throw conflict(path, "it is a folder");
    if (this.#isFolder(sidecarOf(path)))
      throw conflict(path, "the path of its sidecar is a folder");
  }

  #canBeFolder(path: string): boolean {
    if (this.#documentsByPath.has(path)) return this.#documentsByPath.get(path) === undefined;
    const { documents } = this.#snapshot;
    return documents.isFolder(path) || documents.status(path) === undefined;
  }

  /** Whether anything is below `path`, even a link: the daemon removes only its own documents. */
  #isFolder(path: string): boolean {
    const prefix = `${path}/`;
    for (const [changed, document] of this.#documentsByPath) {
      if (document !== undefined && changed.startsWith(prefix)) return true;
    }
    for (const [file] of this.#snapshot.documents.below(path)) {
      if (!this.#documentsByPath.has(file)) return true;
    }
    return false;
  }
}

/** Join the pieces and keep the result, so that they are joined only once. */
function joinPieces(document: DraftDocument): Buffer {
  const [first, ...more] = document.pieces;
  const content = first !== undefined && more.length === 0 ? first : Buffer.concat(document.pieces);
  document.pieces = [content];
  return content;
}

export function documentNotFound(path: string): Problem {
  return new Problem("not_found", `no document ${path}`);
}

function conflict(path: string, reason: string): Problem {
  return new Problem("conflict", `${path}: ${reason}`);
}
