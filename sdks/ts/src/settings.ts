/** Settings from the `JB_*` variables, with the providers that they select. */

import type { Embedder } from "./embedding/embedder.js";
import { FeatureHash } from "./embedding/featureHash.js";
import { FakeReader } from "./reading/fakeReader.js";
import { ModelReader } from "./reading/modelReader.js";
import type { Reader } from "./reading/reader.js";
import { HttpReranker } from "./reranking/httpReranker.js";
import { ModelReranker } from "./reranking/modelReranker.js";
import type { Reranker } from "./reranking/reranker.js";
import { AnthropicChat } from "./upstream/anthropic.js";
import type { ChatModel } from "./upstream/chatModel.js";
import { type Connection, OpenAIChat, OpenAIEmbedder } from "./upstream/openai.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable has a value that this daemon cannot serve; the message is for the user. */
export class SettingsError extends Error {}

export interface Settings {
  embedder: Embedder | undefined;
  queryPrefix: string;
  reader: Reader | undefined;
  reranker: Reranker | undefined;
  runId: string | undefined;
  /** How long a request may take to arrive completely. */
  requestSeconds: number;
  /** The bearer token that requests must send; undefined if the daemon is open to all. */
  authToken: string | undefined;
}

/**
 * Read the settings from `env`.
 *
 * @throws SettingsError for an unknown provider, a missing model, key or address, or an invalid
 *   address, timeout or token. Its message never repeats keys, tokens or addresses with a password.
 */
export function settingsFrom(env: Environment): Settings {
  const variables = new Variables(env);
  return {
    embedder: embedder(variables),
    queryPrefix: variables.get("JB_EMBED_QUERY_PREFIX") ?? "",
    reader: reader(variables),
    reranker: reranker(variables),
    runId: variables.get("MEMCONFORM_RUN_ID"),
    requestSeconds: variables.secondsOf("JB_REQUEST_TIMEOUT", "60"),
    authToken: authToken(env),
  };
}

function embedder(variables: Variables): Embedder | undefined {
  const choices = ["none", "fake", "openai", "ollama"] as const;
  const provider = variables.choice("JB_EMBED_PROVIDER", choices);
  if (provider === "none") return undefined;
  if (provider === "fake") return new FeatureHash();
  return new OpenAIEmbedder(variables.connection(provider), variables.required("JB_EMBED_MODEL"));
}

const READERS = ["none", "fake", "openai", "anthropic", "ollama"] as const;

function reader(variables: Variables): Reader | undefined {
  const provider = variables.choice("JB_LLM_PROVIDER", READERS);
  if (provider === "none") return undefined;
  if (provider === "fake") return new FakeReader();
  return new ModelReader(chat(provider, variables), variables.required("JB_LLM_MODEL"));
}

function reranker(variables: Variables): Reranker | undefined {
  const provider = variables.choice("JB_RERANK_PROVIDER", ["none", "http", "llm"]);
  if (provider === "none") return undefined;
  const model = variables.get("JB_RERANK_MODEL");
  if (provider === "http") {
    return new HttpReranker({
      url: variables.address("JB_RERANK_URL"),
      model,
      apiKey: variables.get("JB_RERANK_API_KEY")?.trim(),
      seconds: variables.seconds,
    });
  }
  const llm = variables.choice("JB_LLM_PROVIDER", READERS);
  if (llm === "none" || llm === "fake") {
    throw new SettingsError(
      `JB_RERANK_PROVIDER=llm: JB_LLM_PROVIDER=${llm} is not a language model`,
    );
  }
  return new ModelReranker(chat(llm, variables), model ?? variables.required("JB_LLM_MODEL"));
}

function chat(provider: "openai" | "anthropic" | "ollama", variables: Variables): ChatModel {
  const connection = variables.connection(provider);
  return provider === "anthropic" ? new AnthropicChat(connection) : new OpenAIChat(connection);
}

/** An empty token is an error, not "no token": it would leave open a daemon believed protected. */
function authToken({ JB_AUTH_TOKEN: token }: Environment): string | undefined {
  if (token !== undefined && !/^[!-~]+$/.test(token)) {
    throw new SettingsError("the token of --auth-token or JB_AUTH_TOKEN must be visible ASCII");
  }
  return token;
}

/** The environment; an empty variable counts as unset. */
class Variables {
  readonly #env: Environment;
  /** How long an upstream may be silent. */
  readonly seconds: number;

  constructor(env: Environment) {
    this.#env = env;
    this.seconds = this.secondsOf("JB_UPSTREAM_TIMEOUT", "30");
  }

  get(name: string): string | undefined {
    return this.#env[name] === "" ? undefined : this.#env[name];
  }

  required(name: string): string {
    const value = this.get(name);
    if (value === undefined)
      throw new SettingsError(`${name} is not set, but the selected provider needs it`);
    return value;
  }

  /** One of `choices`; the first one is the default. */
  choice<T extends string>(name: string, choices: readonly [T, ...T[]]): T {
    const value = this.get(name);
    const choice = value === undefined ? choices[0] : choices.find((one) => one === value);
    if (choice === undefined) {
      throw new SettingsError(`${name}=${value ?? ""}: must be one of ${choices.join(", ")}`);
    }
    return choice;
  }

  address(name: string): string {
    const value = this.required(name);
    if (!isHttp(value))
      throw new SettingsError(`${name} must be an http(s) address without a password`);
    return value;
  }

  secondsOf(name: string, missing: string): number {
    const value = this.get(name) ?? missing;
    // Number() also accepts signs, exponents, hexadecimal digits and white space.
    const seconds = /^[0-9]+(\.[0-9]+)?$/.test(value) ? Number(value) : NaN;
    // Node's timers fire at once for delays over 2^31 - 1 ms.
    if (!(seconds > 0 && seconds <= 1_000_000)) {
      throw new SettingsError(
        `${name}=${value}: must be a decimal number of seconds, more than 0 and at most 1000000`,
      );
    }
    return seconds;
  }

  connection(provider: "openai" | "anthropic" | "ollama"): Connection {
    const name = provider;
    const { seconds } = this;
    if (provider === "ollama") {
      return { name, apiKey: "ollama", baseURL: this.#ollamaUrl(), seconds };
    }
    const prefix = provider.toUpperCase();
    const apiKey = this.required(`${prefix}_API_KEY`).trim();
    const base = `${prefix}_BASE_URL`;
    const baseURL = this.get(base) === undefined ? undefined : this.address(base);
    return { name, apiKey, baseURL, seconds };
  }

  /** The base URL of the API; `OLLAMA_HOST` is `host`, `host:port` or an address. */
  #ollamaUrl(): string {
    const host = this.get("OLLAMA_HOST") ?? "127.0.0.1:11434";
    const bare = !host.includes("://");
    const address = bare ? `http://${host}` : host;
    if (!isHttp(address))
      throw new SettingsError(
        "OLLAMA_HOST must be HOST, HOST:PORT or an address without a password",
      );
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
