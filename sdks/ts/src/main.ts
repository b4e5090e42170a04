#!/usr/bin/env node
import { destination, pino } from "pino";

import { parseCommand, USAGE, UsageError } from "./cli.js";
import { ConfigError, configFromEnv } from "./config.js";
import { serve, StartError } from "./daemon/daemon.js";

async function main(): Promise<number> {
  const options = parseCommand(process.argv.slice(2), process.env.JB_HOME);
  if (options === undefined) {
    process.stdout.write(USAGE);
    return 0;
  }
  const config = configFromEnv({
    ...process.env,
    ...(options.authToken !== undefined && { JB_AUTH_TOKEN: options.authToken }),
  });
  const log = pino({ name: "memory" }, destination(process.stderr.fd));
  const daemon = await serve(options, config, log);
  process.stdout.write(`listening on ${daemon.address}\n`);
  const signal = await new Promise<string>((resolve) => {
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
  });
  log.info({ signal }, "stopping");
  await daemon.stop();
  return 0;
}

function reportFailure(error: unknown): number {
  if (error instanceof UsageError || error instanceof ConfigError) {
    process.stderr.write(`memory: ${error.message}\n${error instanceof UsageError ? USAGE : ""}`);
    return 2;
  }
  if (error instanceof StartError) {
    process.stderr.write(`memory: ${error.message}\n`);
    return 1;
  }
  throw error;
}

// Idle keep-alive connections to upstreams would keep the process running.
process.exit(await main().catch(reportFailure));
