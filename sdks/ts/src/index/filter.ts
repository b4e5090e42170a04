/** Search filters. */

export interface Filters {
  pathPrefix?: string | undefined;
  paths?: string[] | undefined;
  tags?: string[] | undefined;
  sessionIds?: string[] | undefined;
  scope?: "global" | "project" | "raw" | undefined;
  project?: string | undefined;
}

/** The fields of a document that filters use. */
export interface Filterable {
  readonly path: string;
  readonly tags: readonly string[];
  readonly sessionId: string | undefined;
}

/** Whether a search may return a document. */
export type DocumentFilter = (document: Filterable) => boolean;

const SCOPES = { global: "memory/global/", project: "memory/project/", raw: "raw/" };

/** A predicate that requires every filter present, undefined for none; an empty list matches nothing. */
export function documentFilter(filters: Filters = {}): DocumentFilter | undefined {
  const { pathPrefix, scope, project } = filters;
  const prefixes = [
    pathPrefix,
    scope && SCOPES[scope],
    project === undefined ? undefined : `memory/project/${project}/`,
  ].filter((prefix) => prefix !== undefined);
  const paths = filters.paths && new Set(filters.paths);
  const tags = filters.tags && new Set(filters.tags);
  const sessionIds = filters.sessionIds && new Set(filters.sessionIds);
  const tests: DocumentFilter[] = prefixes.map(
    (prefix) =>
      ({ path }) =>
        path.startsWith(prefix),
  );
  if (paths) tests.push(({ path }) => paths.has(path));
  if (tags) tests.push(({ tags: own }) => own.some((tag) => tags.has(tag)));
  if (sessionIds) {
    tests.push(({ sessionId }) => sessionId !== undefined && sessionIds.has(sessionId));
  }
  if (tests.length === 0) return undefined;
  return (document) => tests.every((allows) => allows(document));
}
