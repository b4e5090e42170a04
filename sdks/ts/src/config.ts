/** The daemon's configuration, from the `JB_*` variables. */

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable has a value that this daemon cannot serve; the message is for the user. */
export class ConfigError extends Error {}

type LlmProvider = "openai" | "anthropic" | "ollama";

/** Built into the daemon, or none: there is nothing to configure. */
type BuiltIn = { provider: "none" } | { provider: "fake" };

/** A model of a vendor, and what is needed to call it. */
export interface Service<P extends LlmProvider = LlmProvider> {
  provider: P;
  model: string;
  /** Undefined for a service that needs none. */
  apiKey: string | undefined;
  /** Undefined for the client's default. */
  baseURL: string | undefined;
}

export interface HttpRerank {
  provider: "http";
  url: string;
  model: string | undefined;
  apiKey: string | undefined;
}

/** A validated configuration: complete for the providers that it names. */
export interface Config {
  embed: BuiltIn | Service<"openai" | "ollama">;
  llm: BuiltIn | Service;
  rerank: { provider: "none" } | HttpRerank | { provider: "llm"; llm: Service };
  queryPrefix: string;
  /** How long an upstream may be silent. */
  upstreamSeconds: number;
  /** How long a request may take to arrive completely. */
  requestSeconds: number;
  runId: string | undefined;
  /** The bearer token that requests must send; undefined if the daemon is open to all. */
  authToken: string | undefined;
}

/**
 * Read the configuration from `env`.
 *
 * @throws ConfigError for an unknown provider, a missing model, key or address, or an invalid
 *   address, timeout or token. Its message never repeats keys, tokens or addresses with a password.
 */
export function configFromEnv(env: Environment): Config {
  const variables = new Variables(env);
  const upstreamSeconds = variables.seconds("JB_UPSTREAM_TIMEOUT", "30");
  const embed = variables.model("JB_EMBED", ["openai", "ollama"]);
  const llm = variables.model("JB_LLM", ["openai", "anthropic", "ollama"]);
  return {
    embed,
    llm,
    rerank: rerankConfig(variables, llm),
    queryPrefix: variables.get("JB_EMBED_QUERY_PREFIX") ?? "",
    upstreamSeconds,
    requestSeconds: variables.seconds("JB_REQUEST_TIMEOUT", "60"),
    runId: variables.get("MEMCONFORM_RUN_ID"),
    authToken: authToken(env),
  };
}

function rerankConfig(variables: Variables, llm: Config["llm"]): Config["rerank"] {
  const provider = variables.choice("JB_RERANK_PROVIDER", ["none", "http", "llm"]);
  if (provider === "none") return { provider };
  const model = variables.get("JB_RERANK_MODEL");
  if (provider === "http") {
    const apiKey = variables.key("JB_RERANK_API_KEY");
    return { provider, url: variables.address("JB_RERANK_URL"), model, apiKey };
  }
  if (!("model" in llm)) {
    throw new ConfigError(
      `JB_RERANK_PROVIDER=llm: JB_LLM_PROVIDER=${llm.provider} is not a language model`,
    );
  }
  return { provider, llm: { ...llm, model: model ?? llm.model } };
}

/** An empty token is an error, not "no token": it would leave open a daemon believed protected. */
function authToken({ JB_AUTH_TOKEN: token }: Environment): string | undefined {
  if (token !== undefined && !/^[!-~]+$/.test(token)) {
    throw new ConfigError("the token of --auth-token or JB_AUTH_TOKEN must be visible ASCII");
  }
  return token;
}

/** The environment; an empty variable counts as unset. */
class Variables {
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  get(name: string): string | undefined {
    return this.#env[name] === "" ? undefined : this.#env[name];
  }

  required(name: string): string {
    const value = this.get(name);
    if (value === undefined)
      throw new ConfigError(`${name} is not set, but the selected provider needs it`);
    return value;
  }

  /** A key, without white space around it. */
  key(name: string): string | undefined {
    const key = this.get(name)?.trim();
    if (key === "") throw new ConfigError(`${name} is blank`);
    return key;
  }

  /** One of `choices`; the first one is the default. */
  choice<T extends string>(name: string, choices: readonly [T, ...T[]]): T {
    const value = this.get(name);
    const choice = value === undefined ? choices[0] : choices.find((one) => one === value);
    if (choice === undefined) {
      throw new ConfigError(`${name}=${value ?? ""}: must be one of ${choices.join(", ")}`);
    }
    return choice;
  }

  address(name: string): string {
    const value = this.required(name);
    if (!isHttp(value))
      throw new ConfigError(`${name} must be an http(s) address without a password`);
    return value;
  }

  seconds(name: string, missing: string): number {
    const value = this.get(name) ?? missing;
    // Number() also accepts signs, exponents, hexadecimal digits and white space.
    const seconds = /^[0-9]+(\.[0-9]+)?$/.test(value) ? Number(value) : NaN;
    // Node's timers fire at once for delays over 2^31 - 1 ms.
    if (!(seconds > 0 && seconds <= 1_000_000)) {
      throw new ConfigError(
        `${name}=${value}: must be a decimal number of seconds, more than 0 and at most 1000000`,
      );
    }
    return seconds;
  }

  /** What is built in, or one of `services`. */
  model<P extends LlmProvider>(prefix: string, services: readonly P[]) {
    const choices = ["none", "fake", ...services] as const;
    const provider = this.choice<(typeof choices)[number]>(`${prefix}_PROVIDER`, choices);
    if (provider === "none" || provider === "fake") return { provider };
    return this.#service(provider, `${prefix}_MODEL`);
  }

  #service<P extends LlmProvider>(provider: P, modelVariable: string): Service<P> {
    if (provider === "ollama") {
      const baseURL = this.#ollamaUrl();
      return { provider, model: this.required(modelVariable), apiKey: undefined, baseURL };
    }
    const prefix = provider.toUpperCase();
    this.required(`${prefix}_API_KEY`);
    const apiKey = this.key(`${prefix}_API_KEY`);
    const base = `${prefix}_BASE_URL`;
    const baseURL = this.get(base) === undefined ? undefined : this.address(base);
    return { provider, model: this.required(modelVariable), apiKey, baseURL };
  }

  /** The base URL of the API; `OLLAMA_HOST` is `host`, `host:port` or an address. */
  #ollamaUrl(): string {
    const host = this.get("OLLAMA_HOST") ?? "127.0.0.1:11434";
    const bare = !host.includes("://");
    const address = bare ? `http://${host}` : host;
    if (!isHttp(address))
      throw new ConfigError("OLLAMA_HOST must be HOST, HOST:PORT or an address without a password");
    const url = new URL(address);
    if (bare && !/:\d+\/*$/.test(host)) url.port = "11434";
    return `${url.href.replace(/\/+$/, "")}/v1`;
  }
}

/** Whether `value` is an http(s) address without a password, which error messages would leak. */
function isHttp(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === "" && password === "";
}
