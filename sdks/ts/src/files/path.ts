/** Document paths: relative, POSIX, canonical. */

/** File systems allow names of 255 bytes, and the sidecar adds `.json`. */
const SEGMENT_BYTES = 250;

/** Half of what Linux allows, which leaves the other half to the state folder. */
const PATH_BYTES = 2048;

const SIDECAR = ".json";

/** Why `path` is not a canonical relative path; undefined if it is one. */
export function pathFault(path: string): string | undefined {
  const bytes = Buffer.byteLength(path);
  if (bytes < 1 || bytes > PATH_BYTES) return `must have 1 to ${PATH_BYTES} bytes`;
  if (path.includes("\\") || path.includes("\0")) return "holds a backslash or NUL";
  for (const segment of path.split("/")) {
    if (segment === "" || segment === "." || segment === "..") return "is not canonical";
    if (Buffer.byteLength(segment) > SEGMENT_BYTES) {
      return `has a segment of more than ${SEGMENT_BYTES} bytes`;
    }
  }
  return undefined;
}

/** Whether the base name starts with `_`: such documents are stored but never indexed. */
export function isHidden(path: string): boolean {
  return baseName(path).startsWith("_");
}

/** The folder that `path` is in; the empty path is the tree itself. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** The folders above `path`, nearest first. */
export function* parents(path: string): Generator<string> {
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    yield path.slice(0, end);
  }
}

/** The path of a document's sidecar in the tree of sidecars. */
export function sidecarOf(path: string): string {
  return `${path}${SIDECAR}`;
}

/** The path of the document whose sidecar is at `path`; undefined if `path` names no sidecar. */
export function documentOfSidecar(path: string): string | undefined {
  return path.endsWith(SIDECAR) ? path.slice(0, -SIDECAR.length) : undefined;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
