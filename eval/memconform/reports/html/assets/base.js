"use strict";

/** Characters that control a terminal, reorder text or are invisible: shown as their escapes. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Text as it may be shown: every hidden character becomes its escape. */
function visible(text) {
  return text.replace(HIDDEN, (character) => {
    const code = character.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/**
 * Create an element. Strings become text nodes, never markup, so that no data can act.
 * @param {string} name
 * @param {Record<string, unknown>} [attributes] `on…` keys are listeners; false and null are omitted
 * @param {...(Node | string | null | undefined)} children
 */
function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : SHOWN.has(key) ? visible(String(value)) : String(value));
  }
  addAll(element, children);
  return element;
}

/** Attributes that are shown or spoken. */
const SHOWN = new Set(["title", "aria-label", "placeholder"]);

/** Append children one by one: a call with a hundred thousand arguments would overflow the stack. */
function addAll(element, children) {
  for (const child of children) {
    if (child === null || child === undefined) continue;
    element.append(typeof child === "string" ? visible(child) : child);
  }
}

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** The view and the parameters in the address: `#/questions?g=0&q=word`. */
function readAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path || "overview", parameters: new URLSearchParams(query) };
}

/** An address for a link. Parameters that are empty are omitted. */
function address(view, parameters) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== "" && value !== null && value !== undefined && value !== false) query.set(key, String(value));
  }
  const text = query.toString();
  return `#/${view}${text ? `?${text}` : ""}`;
}

function say(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = visible(text);
}

const NUMBER = new Intl.NumberFormat("en");

function count(number, noun) {
  return `${NUMBER.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A command with a button that copies it. */
function command(raw) {
  // What is copied is what is shown: a hidden character could end a quoted word at a terminal.
  const text = visible(raw);
  const shown = el("pre", { tabindex: "0" }, text);
  const button = el("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
      button.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(shown);
      say("Selected; press Ctrl+C");
    }
  });
  return el("div", { class: "command" }, shown, button);
}

/** A word for bash and zsh; hidden characters are escapes inside `$'…'`. */
function quoted(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (visible(text) === text) return `'${text.replaceAll("'", `'"'"'`)}'`;
  return `$'${visible(text.replaceAll("\\", "\\\\").replaceAll("'", "\\'"))}'`;
}
