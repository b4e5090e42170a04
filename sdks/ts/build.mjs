// Builds the daemon into a folder: node build.mjs FOLDER

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

/** From sysexits.h: the machine lacks something the build needs; the sources are not at fault. */
const EX_UNAVAILABLE = 69;

const here = import.meta.dirname;
const target = resolve(process.argv[2] ?? "build");

/** Run a command and print it first: the last line of output is shown to whoever waits. */
function run(...command) {
  const [program, ...args] = command;
  process.stdout.write(`${command.join(" ")}\n`);
  execFileSync(program, args, { cwd: target, stdio: ["ignore", "inherit", "inherit"] });
}

mkdirSync(target, { recursive: true });
for (const name of [
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "src",
]) {
  cpSync(join(here, name), join(target, name), { recursive: true });
}

try {
  // Without devDependencies; no package needs to run an install script.
  run("npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund");
} catch {
  process.stderr.write("npm ci failed: check the network connection and the npm registry\n");
  process.exit(EX_UNAVAILABLE);
}
run("npm", "run", "--silent", "build");
