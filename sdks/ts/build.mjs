// Builds the daemon, or the client, into a folder: node build.mjs FOLDER [client]

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

/** From sysexits.h: the machine lacks something the build needs; the sources are not at fault. */
const EX_UNAVAILABLE = 69;

const here = import.meta.dirname;
const target = resolve(process.argv[2] ?? "build");
const isClient = process.argv[3] === "client";
const DAEMON = ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json", "src"];
const CLIENT = ["tsconfig.json", "client"];

/** Run a command and print it first: the last line of output is shown to whoever waits. */
function run(...command) {
  const [program, ...args] = command;
  process.stdout.write(`${command.join(" ")}\n`);
  const cwd = isClient ? join(target, "client") : target;
  execFileSync(program, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
}

mkdirSync(target, { recursive: true });
for (const name of isClient ? CLIENT : DAEMON) {
  cpSync(join(here, name), join(target, name), { recursive: true });
}

try {
  // The daemon's devDependencies only check it; those of the client compile it. No package needs an install script.
  const omitted = isClient ? [] : ["--omit=dev"];
  run("npm", "ci", ...omitted, "--ignore-scripts", "--no-audit", "--no-fund");
} catch {
  process.stderr.write("npm ci failed: check the network connection and the npm registry\n");
  process.exit(EX_UNAVAILABLE);
}
run("npm", "run", "--silent", "build");
