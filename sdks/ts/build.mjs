// Builds the daemon into a folder: node build.mjs FOLDER

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Of sysexits.h: not the sources are at fault, this machine lacks what they need. */
const EX_UNAVAILABLE = 69;

const here = import.meta.dirname;
const target = resolve(process.argv[2] ?? "build");
const prefix = dirname(dirname(process.execPath));

const env = { ...process.env };
// Without the internet node-gyp finds no headers to compile against; Node may have brought its own.
if (existsSync(join(prefix, "include", "node", "node.h"))) env.npm_config_nodedir ??= prefix;

function run(command, ...args) {
  execFileSync(command, args, { cwd: target, env, stdio: ["ignore", "inherit", "inherit"] });
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

process.stdout.write("better-sqlite3 is compiled where no binary can be fetched: about a minute\n");
try {
  run("npm", "ci", "--no-audit", "--no-fund");
} catch {
  process.stderr.write(
    "npm ci failed: is there a network, and a C++ compiler for better-sqlite3?\n",
  );
  process.exit(EX_UNAVAILABLE);
}
run("npm", "run", "build");
// Nothing is compiled again: what stays is as it was.
run("npm", "prune", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund");
