import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";

import { Feed } from "../feed.js";
import { document, FAKES, TestDaemon } from "../testing/daemon.js";
import { until } from "../testing/until.js";
import { ChangeStream } from "./stream.js";

let http: TestDaemon;

before(async () => {
  http = await TestDaemon.start(FAKES);
});

after(() => http.stop());

const BRAIN = "/v1/brains/b";
const DOCUMENTS = `${BRAIN}/documents`;
const deleteBrain = () =>
  http.send("DELETE", BRAIN, undefined, { headers: { "X-Confirm-Delete": "yes" } });

beforeEach(() => http.send("POST", "/v1/brains", { brainId: "b" }));

afterEach(deleteBrain);

interface Event {
  name: string;
  id: number;
  data: string;
}

/** Subscribe until the brain is deleted. */
async function subscribe(brain = "b"): Promise<{ all: Promise<Event[]> }> {
  const response = await http.fetch("GET", `/v1/brains/${brain}/events`);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("Content-Type"), "text/event-stream");
  assert.equal(response.headers.get("Cache-Control"), "no-store");
  return { all: response.text().then(eventsOf) };
}

async function allOf(stream: ChangeStream): Promise<Event[]> {
  return eventsOf((await stream.toArray()).join(""));
}

function eventsOf(stream: string): Event[] {
  return stream
    .split("\n\n")
    .slice(0, -1)
    .map((block) => {
      const [, name = "", id, data = ""] =
        /^event: (\w+)(?:\nid: (\d+))?\ndata: (.*)$/.exec(block) ?? [];
      return { name, id: Number(id), data };
    });
}

function changesIn(events: Event[]): Record<string, unknown>[] {
  return events
    .filter(({ name }) => name === "change")
    .map(({ data }) => {
      const { when, ...change } = JSON.parse(data) as Record<string, unknown>;
      assert.match(String(when), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
      return change;
    });
}

const put = (path: string) => http.send("PUT", `${DOCUMENTS}?path=${path}`, "zebra");

test("every listener receives each mutation, in order", async () => {
  await put("before.md");
  const [one, two] = [await subscribe(), await subscribe()];
  await put("a.md");
  await put("a.md");
  await http.send("POST", `${DOCUMENTS}/append?path=_h.md`, "x");
  await http.send("POST", `${DOCUMENTS}/rename`, { from: "a.md", to: "_h.md" });
  await http.send("POST", `${BRAIN}/ingest/file`, document("b.md"));
  const documents = ["c.md", "b.md", "c.md"].map((path) => document(path));
  await http.send("POST", `${BRAIN}/ingest/batch`, { documents });
  await http.send("DELETE", `${DOCUMENTS}?path=b.md`);
  const ops = [
    { type: "write", path: "d.md", content_base64: "" },
    { type: "append", path: "d.md", content_base64: "IQ==" },
    { type: "rename", path: "d.md", to: "d.md" },
    { type: "rename", path: "d.md", to: "e.md" },
    { type: "delete", path: "e.md" },
  ];
  await http.send("POST", `${DOCUMENTS}/batch-ops`, { ops, reason: "why", author: "me" });
  await deleteBrain();
  const events = await one.all;
  assert.deepEqual(events[0], { name: "ready", id: NaN, data: "ok" });
  assert.deepEqual(changesIn(events), [
    { kind: "created", path: "a.md" },
    { kind: "updated", path: "a.md" },
    { kind: "created", path: "_h.md" },
    { kind: "renamed", path: "_h.md", old_path: "a.md" },
    { kind: "created", path: "b.md" },
    { kind: "updated", path: "b.md" },
    { kind: "created", path: "c.md" },
    { kind: "deleted", path: "b.md" },
    { kind: "created", path: "d.md", reason: "why" },
    { kind: "updated", path: "d.md", reason: "why" },
    { kind: "renamed", path: "e.md", old_path: "d.md", reason: "why" },
    { kind: "deleted", path: "e.md", reason: "why" },
  ]);
  const ids = events.slice(1).map(({ id }) => id);
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
  );
  assert.deepEqual(await two.all, events);
});

test("rejected edits, edits without effect and other brains publish nothing", async () => {
  await put("a.md");
  await http.send("POST", "/v1/brains", { brainId: "other" });
  const { all } = await subscribe();
  await put("a.md/b");
  await put("..");
  await http.send("DELETE", `${DOCUMENTS}?path=missing`);
  await http.send("POST", `${DOCUMENTS}/rename`, { from: "a.md", to: "a.md" });
  const ops = [
    { type: "delete", path: "a.md" },
    { type: "delete", path: "a.md" },
  ];
  await http.send("POST", `${DOCUMENTS}/batch-ops`, { ops });
  await http.send("PUT", "/v1/brains/other/documents?path=a", "x");
  await http.send("DELETE", "/v1/brains/other", undefined, {
    headers: { "X-Confirm-Delete": "yes" },
  });
  await deleteBrain();
  assert.deepEqual(changesIn(await all), []);
});

test("an unknown brain has no events, and HEAD is not allowed", async () => {
  assert.equal((await http.send("GET", "/v1/brains/unknown/events")).status, 404);
  assert.equal((await http.send("HEAD", `${BRAIN}/events`)).status, 405);
});

test("a stop ends a stream", async () => {
  const other = await TestDaemon.start(FAKES);
  await other.send("POST", "/v1/brains", { brainId: "b" });
  const response = await other.fetch("GET", `${BRAIN}/events`);
  // A stream that is still open after the grace period is cut, and its text fails.
  await Promise.all([other.stop(), response.text()]);
});

test("a client that disconnects is removed", async (t) => {
  const ended = t.mock.method(ChangeStream.prototype, "_destroy").mock;
  const client = new AbortController();
  const response = await http.fetch("GET", `${BRAIN}/events`, undefined, { signal: client.signal });
  await response.body?.getReader().read();
  assert.equal(ended.callCount(), 0);
  client.abort();
  await until(() => ended.callCount() > 0);
  assert.equal(ended.callCount(), 1);
});

test("sends a ping after silence", async () => {
  const stream = new ChangeStream(new Feed(), 20);
  const events: string[] = [];
  for await (const event of stream) {
    events.push(String(event));
    if (events.length === 3) break;
  }
  assert.deepEqual(events, [
    "event: ready\ndata: ok\n\n",
    ...Array<string>(2).fill("event: ping\ndata: ok\n\n"),
  ]);
});

test("a client that does not read is cut off and delays nobody", async () => {
  const changes = new Feed();
  const [slow, quick] = [new ChangeStream(changes), new ChangeStream(changes)];
  let read = 0;
  quick.on("data", () => read++);
  for (let i = 0; i < 3000; i++) {
    changes.publish([{ kind: "created", path: `${i}.md` }], undefined);
    if (i % 500 === 0) await setImmediate();
  }
  await until(() => read === 3001);
  assert.equal(read, 3001);
  quick.end();
  // No change is missing before the end, and none comes after it.
  const late = changesIn(await allOf(slow));
  assert.deepEqual(
    late,
    late.map((_, i) => ({ kind: "created", path: `${i}.md` })),
  );
  assert.ok(late.length >= 1024 && late.length < 1100, String(late.length));
});

test("one large batch ends no stream", async () => {
  const changes = new Feed();
  const stream = new ChangeStream(changes);
  const batch = Array.from({ length: 1024 }, () => ({ kind: "created", path: "a" }) as const);
  changes.publish(batch.slice(1), undefined);
  changes.publish(batch, undefined);
  stream.end();
  assert.equal(changesIn(await allOf(stream)).length, 1023 + 1024);
});

test("a client that reads nothing for long is disconnected", async () => {
  const changes = new Feed();
  const stream = new ChangeStream(changes, 5);
  stream.read();
  for (let i = 0; i < 3; i++) changes.publish([{ kind: "created", path: "a" }], undefined);
  changes.end();
  await until(() => stream.destroyed);
  assert.ok(stream.destroyed);
});
