/** Search filters. */

import type { DocumentFilter } from "./index.js";

export interface Filters {
  pathPrefix?: string | undefined;
  paths?: string[] | undefined;
  tags?: string[] | undefined;
  sessionIds?: string[] | undefined;
  scope?: "global" | "project" | "raw" | undefined;
  project?: string | undefined;
}

const SCOPES = { global: "memory/global/", project: "memory/project/", raw: "raw/" };

/** A predicate that requires every filter present; an empty list matches nothing. */
export function documentFilter(filters: Filters = {}): DocumentFilter {
  const { pathPrefix, scope, project } = filters;
  const prefixes = [
    pathPrefix,
    scope && SCOPES[scope],
    project === undefined ? undefined : `memory/project/${project}/`,
  ].filter((prefix) => prefix !== undefined);
  const paths = filters.paths && new Set(filters.paths);
  const tags = filters.tags && new Set(filters.tags);
  const sessionIds = filters.sessionIds && new Set(filters.sessionIds);
  return ({ path, tags: own, sessionId }) =>
    prefixes.every((prefix) => path.startsWith(prefix)) &&
    (paths === undefined || paths.has(path)) &&
    (tags === undefined || own.some((tag) => tags.has(tag))) &&
    (sessionIds === undefined || (sessionId !== undefined && sessionIds.has(sessionId)));
}
