import assert from "node:assert/strict";
import { test } from "node:test";

import { EventDecoder } from "./sse.js";

function decode(...reads: Buffer[]): string[] {
  const decoder = new EventDecoder();
  return reads.flatMap((read) =>
    [...decoder.feed(read)].map(({ name, data }) => `${name}=${data.toString()}`),
  );
}

const STREAMS: Record<string, [stream: string, events: string[]]> = {
  LF: ["event: a\ndata: 1\n\ndata: 2\n\n", ["a=1", "message=2"]],
  CRLF: ["event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", ["a=1", "message=2"]],
  CR: ["event: a\rdata: 1\r\rdata: 2\r\r", ["a=1", "message=2"]],
  mixed: ["event: a\rdata: 1\r\n\ndata: 2\n\r\n\r", ["a=1", "message=2"]],
  "lines of data": ["data: 1\ndata:2\ndata\n\n", ["message=1\n2\n"]],
  "no data": ["event: a\n\ndata: 1\n\n", ["message=1"]],
  "empty data": ["data\n\n", ["message="]],
  "one space": ["data:  1\n\n", ["message= 1"]],
  "byte order mark": [
    "\ufeffdata: 1\n\n\ufeffdata: 2\n\ndata: \ufeff\n\n",
    ["message=1", "message=\ufeff"],
  ],
  "other fields": [": a\nid: 1\nretry: 2\nDATA: 3\ndata: 1\n\n", ["message=1"]],
  "last name": ["event: a\nevent: b\ndata: 1\n\n", ["b=1"]],
  "empty name": ["event: a\nevent\ndata: 1\n\n", ["message=1"]],
  characters: ["data: é灯🪔\u2028\u0085\v\f\n\n", ["message=é灯🪔\u2028\u0085\v\f"]],
  "without its end": ["data: 1\n\ndata: 2\n", ["message=1"]],
  "without a line end": ["data: 1\n\ndata: 2", ["message=1"]],
};

for (const [name, [stream, events]] of Object.entries(STREAMS)) {
  test(`reads events wherever reads cut them: ${name}`, () => {
    const bytes = Buffer.from(stream);
    for (let cut = 0; cut <= bytes.length; cut++) {
      assert.deepEqual(decode(bytes.subarray(0, cut), bytes.subarray(cut)), events, `at ${cut}`);
    }
    assert.deepEqual(decode(...Array.from(bytes, (byte) => Buffer.of(byte))), events);
  });
}

test("an event that ends in CR does not wait for a LF", () => {
  assert.deepEqual(decode(Buffer.from("data: 1\r\r")), ["message=1"]);
});
