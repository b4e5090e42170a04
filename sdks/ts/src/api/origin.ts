/**
 * Requests that a web page from elsewhere causes.
 *
 * A page can make a browser send requests to a daemon on the same machine, and by DNS rebinding
 * under a host name of the page's own. A token would stop it; without one, these headers do, which a
 * page cannot choose.
 */

import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

import { Problem } from "../problem.js";
import type { Guard } from "./auth.js";

const OCTET = "(?:25[0-5]|(?:2[0-4]|1[0-9]|[1-9])?[0-9])";
const LOOPBACK = `(?:localhost|127(?:\\.${OCTET}){3}|\\[::1\\])(?::[0-9]{0,5})?`;
const LOOPBACK_HOST = new RegExp(`^${LOOPBACK}$`, "i");
const LOOPBACK_ORIGIN = new RegExp(`^https?://${LOOPBACK}$`, "i");

/** The guard of a daemon without a token; it rejects nothing unless `isLocal` returns true. */
export function originGuard(isLocal: () => boolean): Guard {
  return (request) => {
    const reason = isLocal() ? foreignness(request) : undefined;
    if (reason === undefined) return undefined;
    return new Problem("forbidden", `${reason}; set a token to allow such requests`);
  };
}

function foreignness({ headersDistinct: headers }: IncomingMessage): string | undefined {
  const [host = "", ...otherHosts] = headers.host ?? [];
  if (otherHosts.length > 0 || !LOOPBACK_HOST.test(host)) return "the Host is not loopback";
  const origins = headers.origin ?? [];
  if (!origins.every((origin) => LOOPBACK_ORIGIN.test(origin))) {
    return "the Origin is not loopback";
  }
  if (origins.length === 0 && headers["sec-fetch-site"]?.includes("cross-site")) {
    return "the request is cross-site";
  }
  return undefined;
}

/** Whether a server that listens on `address` can be reached from its own machine only. */
export function isLoopback({ address }: AddressInfo): boolean {
  return /^(?:(?:::ffff:)?127\.|::1$)/.test(address);
}
