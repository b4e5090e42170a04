import { connect } from "node:net";
import { after, before, test } from "node:test";

import { FAKES, TestDaemon } from "../testing/daemon.js";
import { until } from "../testing/until.js";

let http: TestDaemon;

before(async () => {
  // short limit: the requests are endless, and the check that the daemon lives is repeated.
  http = await TestDaemon.start({ ...FAKES, JB_REQUEST_TIMEOUT: "0.5" });
});

after(() => http.stop());

const START = "POST /v1/brains HTTP/1.1\r\nHost: localhost\r\n";

for (const request of ["POST /v1/br", START, `${START}Content-Length: 9\r\n\r\nzeb`]) {
  test(`never to its end: ${JSON.stringify(request)}`, { timeout: 60_000 }, async () => {
    const socket = connect(Number(new URL(http.daemon.address).port), "127.0.0.1");
    socket.write(request);
    socket.on("error", () => undefined); // a reset ends it, too
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
    const answers = () => http.send("GET", "/healthz").then(({ status }) => status === 200);
    await until(() => answers().catch(() => false));
  });
}
