/** The command line: `memory serve` and its options. */

import { parseArgs } from "node:util";

export const USAGE = `usage: memory serve [--addr HOST:PORT] [--root DIR] [--auth-token TOKEN]

  --addr         listen address; default 127.0.0.1:18850, port 0 picks a free port
  --root         state folder; default $JB_HOME
  --auth-token   bearer token required by every route but /healthz; default $JB_AUTH_TOKEN
`;

/** The command line is invalid; the message is for the user. */
export class UsageError extends Error {}

export interface Options {
  host: string;
  port: number;
  root: string;
  authToken: string | undefined;
}

/**
 * Parse the command line; `home` is the default of `--root`.
 *
 * @returns Undefined if help was requested.
 * @throws UsageError for any other command, an unknown option, a bad address or no state folder.
 */
export function parseCommand(argv: string[], home: string | undefined): Options | undefined {
  const { values, positionals } = parseArguments(argv);
  if (values.help) return undefined;
  if (positionals.length !== 1 || positionals[0] !== "serve") {
    throw new UsageError("unknown command; the only one is serve");
  }
  const root = values.root ?? home;
  if (!root) throw new UsageError("no state folder: set --root or JB_HOME");
  return { ...parseAddress(values.addr), root, authToken: values["auth-token"] };
}

function parseArguments(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        addr: { type: "string", default: "127.0.0.1:18850" },
        root: { type: "string" },
        "auth-token": { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function parseAddress(value: string): { host: string; port: number } {
  const [, host, digits] = /^(.+):([0-9]{1,5})$/.exec(value) ?? [];
  const port = Number(digits);
  if (host === undefined || port > 65_535) {
    throw new UsageError(`--addr ${value}: must be HOST:PORT`);
  }
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port };
}
