/** OpenAI's client, which also calls services with the same API. */

import OpenAI from "openai";

import { type Connection, RETRIES, Upstream } from "./upstream.js";

/** OpenAI's client, configured for this daemon, and the wrapper for its calls. */
export function connect({ name, apiKey, baseURL, seconds }: Connection): [OpenAI, Upstream] {
  const client = new OpenAI({
    // The client requires a key; a service that needs none ignores it.
    apiKey: apiKey ?? name,
    baseURL: baseURL ?? null,
    organization: null,
    project: null,
    maxRetries: RETRIES,
    // The watchdog limits all attempts together; the client's timeout for one of them must be longer.
    timeout: 2000 * seconds,
    logLevel: "off",
  });
  return [client, new Upstream(name, seconds, apiKey)];
}
