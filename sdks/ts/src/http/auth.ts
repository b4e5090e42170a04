/** Who may ask anything. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

import { Problem } from "../problem.js";

/** Of a target in absolute form, which is as good as the path alone. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

const BEARER = /^bearer +(\S.*)$/i;

export type Guard = (request: IncomingMessage) => Problem | undefined;

/** What keeps a request out; without a token, nothing does. */
export function guard(token: string | undefined): Guard {
  if (token === undefined) return () => undefined;
  const expected = digest(token);
  return ({ url = "", headersDistinct }) => {
    if (url.replace(ORIGIN, "").split("?", 1)[0] === "/healthz") return undefined;
    const [header = "", ...more] = headersDistinct.authorization ?? [];
    const [, given] = BEARER.exec(header) ?? [];
    if (given === undefined || more.length > 0) {
      return new Problem("unauthorized", "one Authorization: Bearer and the token are wanted");
    }
    if (timingSafeEqual(digest(given), expected)) return undefined;
    return new Problem("forbidden", "the token is another");
  };
}

/** Of equal length, so that the time to compare tells nothing. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
