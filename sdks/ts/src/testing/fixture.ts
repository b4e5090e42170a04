import { after, afterEach, before } from "node:test";

import { type Answer, document, TestDaemon } from "./daemon.js";
import { upstreamEnv, ScriptedUpstream, silence } from "./upstream.js";

/** A daemon for each test of a file; all of them use the same scripted upstream. */
export class UpstreamFixture {
  upstream!: ScriptedUpstream;
  daemon!: TestDaemon;

  constructor() {
    before(async () => {
      this.upstream = await ScriptedUpstream.start(silence);
    });
    after(() => this.upstream.stop());
    afterEach(() => this.daemon.stop());
  }

  async start(env: Record<string, string>): Promise<void> {
    this.daemon = await TestDaemon.start(upstreamEnv(this.upstream, env));
    await this.daemon.send("POST", "/v1/brains", { brainId: "b" });
  }

  ingest(path: string, text: string): Promise<Answer> {
    return this.daemon.send("POST", "/v1/brains/b/ingest/file", document(path, text));
  }
}
