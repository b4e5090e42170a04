/** The parameters of a request's query, form-encoded, and nothing of them guessed. */

import { pathFault } from "../brain/paths.js";
import { invalid } from "../problem.js";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const BAD_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

export class Parameters {
  readonly #values = new Map<string, string[]>();

  /** @throws Problem `validation_error` for what is no form encoding of UTF-8. */
  constructor(url: string) {
    const start = url.indexOf("?") + 1;
    const pairs = start === 0 ? [] : url.slice(start).split("&").filter(Boolean);
    for (const pair of pairs) {
      const [name = ""] = pair.split("=", 1);
      const key = decoded(name);
      const values = this.#values.get(key) ?? [];
      this.#values.set(key, [...values, decoded(pair.slice(name.length + 1))]);
    }
  }

  /** A path that must be there and not be empty. */
  path(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw invalid(`${name}: is missing`);
    const fault = pathFault(value);
    if (fault !== undefined) throw invalid(`${name}: ${fault}`);
    return value;
  }

  /** A path, or nothing, which is the brain itself. */
  folder(name: string): string {
    return this.text(name) ? this.path(name) : "";
  }

  flag(name: string): boolean {
    const value = this.text(name) ?? "false";
    if (value !== "true" && value !== "false") throw invalid(`${name}: is neither true nor false`);
    return value === "true";
  }

  text(name: string): string | undefined {
    const [value, ...more] = this.#values.get(name) ?? [];
    if (more.length > 0) throw invalid(`${name}: stands there twice`);
    return value;
  }
}

/** Node hands on the bytes of a URL as Latin-1. */
function decoded(text: string): string {
  if (BAD_ESCAPE.test(text)) throw invalid("the query holds a % that is no escape");
  const bytes = text
    .replaceAll("+", " ")
    .replace(/%(..)/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
  try {
    return UTF8.decode(Buffer.from(bytes, "latin1"));
  } catch (error) {
    if (error instanceof TypeError) throw invalid("the query is no UTF-8");
    throw error;
  }
}
