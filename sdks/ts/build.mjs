// Builds the daemon into a folder: node build.mjs FOLDER

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

/** Of sysexits.h: not the sources are at fault, this machine lacks what they need. */
const EX_UNAVAILABLE = 69;

const here = import.meta.dirname;
const target = resolve(process.argv[2] ?? "build");

/** Announced, because whoever waits for a build is shown its last line. */
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
  // What is only for developers is left out, and no package has to run a script of its own.
  run("npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund");
} catch {
  process.stderr.write("npm ci failed: is there a network?\n");
  process.exit(EX_UNAVAILABLE);
}
run("npm", "run", "--silent", "build");
