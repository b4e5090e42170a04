/** The command line: `memory serve` and its options. */

import { parseArgs } from "node:util";

export const USAGE = `usage: memory serve [--addr HOST:PORT] [--root DIR] [--auth-token TOKEN]

  --addr         where to listen; default 127.0.0.1:18850, with port 0 any free port
  --root         the state folder; default $JB_HOME
  --auth-token   asked of every request but /healthz; default $JB_AUTH_TOKEN, else none is
`;

export class UsageError extends Error {}

export interface Options {
  host: string;
  port: number;
  root: string;
  authToken: string | undefined;
}

/**
 * Undefined where help was asked for.
 *
 * @throws UsageError
 */
export function parseCommand(argv: string[], home: string | undefined): Options | undefined {
  const { values, positionals } = parsed(argv);
  if (values.help) return undefined;
  if (positionals.length !== 1 || positionals[0] !== "serve") {
    throw new UsageError("the only command is serve");
  }
  const root = values.root ?? home;
  if (!root) throw new UsageError("where is the state folder? give --root or JB_HOME");
  return { ...parseAddress(values.addr), root, authToken: values["auth-token"] };
}

function parsed(argv: string[]) {
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
    throw new UsageError(`--addr ${value}: is not HOST:PORT`);
  }
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port };
}
