/** Bearer token authentication. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

import { Problem } from "../problem.js";

/** The origin of a request target in absolute form. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

const BEARER = /^bearer +(\S.*)$/i;

/** The Problem with where a request comes from; undefined if it may pass. */
export type Guard = (request: IncomingMessage) => Problem | undefined;

/** The guard of a daemon with a token; `/healthz` always passes. */
export function tokenGuard(token: string): Guard {
  const expected = digest(token);
  return ({ url = "", headersDistinct }) => {
    if (url.replace(ORIGIN, "").split("?", 1)[0] === "/healthz") return undefined;
    const [header = "", ...others] = headersDistinct.authorization ?? [];
    const [, credentials] = BEARER.exec(header) ?? [];
    if (credentials === undefined || others.length > 0) {
      return new Problem("unauthorized", "send exactly one header Authorization: Bearer TOKEN");
    }
    if (timingSafeEqual(digest(credentials), expected)) return undefined;
    return new Problem("forbidden", "the token is wrong");
  };
}

/** A digest of fixed length, so that the time of the comparison leaks nothing. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
