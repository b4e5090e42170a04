/** JSON in which integers beyond 2^53 are bigints: `JSON.parse` changes 9007199254740993. */

import { parse, stringify } from "lossless-json";

import { CallError } from "./errors.js";

export type JsonObject = Record<string, unknown>;

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Of a text without so many digits in a row, all integers are safe. */
const MAY_BE_UNSAFE = /\d{16}/;

/**
 * Decode an object.
 *
 * @throws CallError of the kind `protocol` if it is none, or not UTF-8.
 */
export function decodeObject(bytes: Uint8Array): JsonObject {
  let value: unknown;
  try {
    const text = UTF8.decode(bytes);
    // The exact parser takes ten times as long.
    value = MAY_BE_UNSAFE.test(text) ? parseExactly(text) : JSON.parse(text);
  } catch (cause) {
    throw new CallError("protocol", `not JSON: ${String(cause)}`, { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new CallError("protocol", "JSON that is not an object");
  }
  return value as JsonObject;
}

/** Encode a value, which may have bigints in it. */
export function encode(value: unknown): string {
  return stringify(value) ?? "null";
}

function parseExactly(text: string): unknown {
  return parse(text, undefined, {
    parseNumber: (digits) => {
      const number = Number(digits);
      return Number.isSafeInteger(number) || !/^-?\d+$/.test(digits) ? number : BigInt(digits);
    },
    onDuplicateKey: ({ newValue }) => newValue,
  });
}
