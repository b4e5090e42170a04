/** Levels of arrays and objects that JSON may have; V8's JSON.stringify fails at about 5,000. */
export const DEPTH_LIMIT = 1000;

/** Whether arrays and objects in `root` are nested more than `limit` levels deep. */
export function isNestedOver(limit: number, root: unknown): boolean {
  let level = [root].filter(isContainer);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === limit) return true;
    level = level.flatMap((container) => Object.values(container).filter(isContainer));
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
