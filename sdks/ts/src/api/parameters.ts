/** Strict parsing of form-encoded query parameters. */

import { isUtf8 } from "node:buffer";

import { pathFault } from "../files/path.js";
import { invalid } from "../problem.js";

const BAD_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

export class Parameters {
  readonly #values = new Map<string, string[]>();

  /** @throws Problem `validation_error` if the query is not form-encoded UTF-8. */
  constructor(url: string) {
    const start = url.indexOf("?") + 1;
    const pairs = start === 0 ? [] : url.slice(start).split("&").filter(Boolean);
    for (const pair of pairs) {
      const [name = ""] = pair.split("=", 1);
      const key = decodeComponent(name);
      const values = this.#values.get(key) ?? [];
      this.#values.set(key, [...values, decodeComponent(pair.slice(name.length + 1))]);
    }
  }

  /** @throws Problem `validation_error` if the path is missing, empty, repeated or invalid. */
  path(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw invalid(`${name}: is missing`);
    const fault = pathFault(value);
    if (fault !== undefined) throw invalid(`${name}: ${fault}`);
    return value;
  }

  /** A path; empty, for the brain itself, if missing. */
  folder(name: string): string {
    return this.text(name) ? this.path(name) : "";
  }

  flag(name: string): boolean {
    const value = this.text(name) ?? "false";
    if (value !== "true" && value !== "false") throw invalid(`${name}: must be true or false`);
    return value === "true";
  }

  text(name: string): string | undefined {
    const [value, ...more] = this.#values.get(name) ?? [];
    if (more.length > 0) throw invalid(`${name}: is given more than once`);
    return value;
  }
}

/** Percent-decode to UTF-8. Node passes the raw bytes of a URL as Latin-1 characters. */
function decodeComponent(text: string): string {
  if (BAD_ESCAPE.test(text)) throw invalid("the query contains an invalid percent escape");
  const characters = text
    .replaceAll("+", " ")
    .replace(/%(..)/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
  const bytes = Buffer.from(characters, "latin1");
  if (!isUtf8(bytes)) throw invalid("the query is not valid UTF-8");
  return bytes.toString();
}
