import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";

import { MemoryClient } from "./client.js";

/** A client of a daemon that answers with `handle`. */
async function serve(context: TestContext, handle: RequestListener): Promise<MemoryClient> {
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return new MemoryClient(`http://127.0.0.1:${port}`);
}

test("a brain is one segment of the path", async (context) => {
  const targets: unknown[] = [];
  const client = await serve(context, (request, response) => {
    targets.push(request.url);
    response.setHeader("content-type", "application/json").end("{}");
  });
  for (const brain of ["..", "a/b?c", "灯"]) await client.search(brain, {});
  assert.deepEqual(targets, [
    "/v1/brains/../search",
    "/v1/brains/a%2Fb%3Fc/search",
    "/v1/brains/%E7%81%AF/search",
  ]);
});

test("a time that the program takes is no silence", async (context) => {
  let finish = (): void => undefined;
  const client = await serve(context, (_, response) => {
    response.setHeader("content-type", "text/event-stream");
    response.write("event: answer_delta\ndata: {}\n\n");
    finish = () => response.end('event: done\ndata: {"ok": true}\n\n');
  });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const names: string[] = [];
  for await (const { name } of client.ask("b", {})) {
    names.push(name);
    // More than the default for a silence, less than that of the deadline.
    if (name === "answer_delta") context.mock.timers.tick(120_000);
    finish();
  }
  assert.deepEqual(names, ["answer_delta", "done"]);
});

test("a signal ends the request, and its reason is thrown", async (context) => {
  const program = new AbortController();
  let ended: Promise<unknown> = Promise.resolve();
  const client = await serve(context, (_, response) => {
    ended = once(response, "close");
    response.setHeader("content-type", "text/event-stream");
    response.write("event: answer_delta\ndata: {}\n\n");
  });
  const reason = new Error("enough");
  await assert.rejects(async () => {
    for await (const event of client.ask("b", {}, { signal: program.signal })) {
      assert.equal(event.name, "answer_delta");
      program.abort(reason);
    }
  }, reason);
  await ended;
});

for (const url of ["", "localhost:80", "ftp://localhost"]) {
  test(`a URL that is not of HTTP is refused: ${url}`, () => {
    assert.throws(() => new MemoryClient(url), TypeError);
  });
}
