/** JSON that keeps every number as it was written: `JSON.parse` changes 9007199254740993. */

import { isLosslessNumber, LosslessNumber, parse, stringify } from "lossless-json";

/** A number that a float64 may change: of 16 or more characters, or with an exponent. */
const MAY_BE_INEXACT = /[0-9.]{16}|[0-9][eE][-+0-9]/;

/**
 * Decode JSON; numbers that `JSON.parse` could change become `LosslessNumber`.
 *
 * @throws SyntaxError if it is not JSON, RangeError if it is nested too deeply for the stack.
 */
export function parseExactly(text: string): unknown {
  // The exact parser takes ten times as long.
  if (!MAY_BE_INEXACT.test(text)) return JSON.parse(text);
  return parse(text, undefined, {
    parseNumber: (number) =>
      MAY_BE_INEXACT.test(number) ? new LosslessNumber(number) : Number(number),
    onDuplicateKey: ({ newValue }) => newValue,
  });
}

/** Encode what `parseExactly` returned, or any other JSON value. */
export function stringifyExactly(value: object): string {
  return some(value, isLosslessNumber) ? (stringify(value) ?? "") : JSON.stringify(value);
}

/** Whether `value` has a number in it, at any depth. */
export function hasNumber(value: unknown): boolean {
  return some(value, (node) => typeof node === "number");
}

/** Whether all numbers in `value` are in the range of a float64: 1e999 is valid JSON, too. */
export function isFinite(value: unknown): boolean {
  return !some(value, (node) => {
    const isNumber = typeof node === "number" || isLosslessNumber(node);
    return isNumber && !Number.isFinite(Number(node.toString()));
  });
}

function some(root: unknown, test: (node: unknown) => boolean): boolean {
  const pending: unknown[] = [root];
  while (pending.length > 0) {
    const node = pending.pop();
    if (test(node)) return true;
    if (typeof node !== "object" || node === null) continue;
    for (const child of Object.values(node) as unknown[]) pending.push(child);
  }
  return false;
}
