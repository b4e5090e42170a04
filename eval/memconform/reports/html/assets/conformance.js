const BAD_RESULTS = ["fail", "error", "untestable", "xpass", "warn", "xfail"];
const RULES_SHOWN = 100;

/** The rules of the contract with the checks of each SDK. */
function showConformance({ rules, sdks, results }, parameters) {
  const form = document.getElementById("rule-filters");
  fillSelect(form.elements.namedItem("sdk"), [["", "any"], ...sdks.map((sdk) => [sdk.name, sdk.name])], parameters.get("sdk") ?? "");
  form.elements.namedItem("only").value = parameters.get("only") || "failed";
  const text = form.elements.namedItem("q");
  if (text !== document.activeElement) text.value = parameters.get("q") ?? "";
  const chosen = sdks.filter((sdk) => !parameters.get("sdk") || sdk.name === parameters.get("sdk"));
  const byRule = new Map(rules.map((rule) => [rule.id, []]));
  for (const sdk of chosen) {
    for (const check of sdk.checks) {
      for (const rule of check.rules) byRule.get(rule)?.push([sdk, check]);
    }
  }
  const only = parameters.get("only") || "failed";
  const isBad = ([, check]) => BAD_RESULTS.includes(results[check.result]);
  const wanted = {
    failed: (checks) => checks.some(isBad),
    regressed: (checks) => checks.some(([, check]) => check.regressed),
    all: () => true,
    untested: (checks) => checks.every(([, check]) => results[check.result] === "not_applicable"),
  }[only] ?? (() => true);
  const search = (parameters.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (rule, checks) => {
    if (search.length === 0) return true;
    const said = checks.filter(isBad).map(([, check]) => [check.id, check.title, ...check.got, ...check.causes].join("\n"));
    const all = [rule.id, rule.text, rule.profile, ...said].join("\n").toLowerCase();
    return search.every((word) => all.includes(word));
  };
  const shown = rules.filter((rule) => wanted(byRule.get(rule.id)) && matches(rule, byRule.get(rule.id)));
  document.getElementById("rule-count").textContent = `${count(shown.length, "rule")} of ${NUMBER.format(rules.length)}`;
  const parts = shown.slice(0, RULES_SHOWN).map((rule) => ruleDetails(rule, byRule.get(rule.id), results, isBad, shown.length === 1));
  if (shown.length > RULES_SHOWN) parts.push(el("p", { class: "note" }, `and ${shown.length - RULES_SHOWN} more: filter by text`));
  document.getElementById("rules").replaceChildren(...parts);
}

function ruleDetails(rule, checks, results, isBad, isOpen) {
  const bad = checks.filter(isBad);
  const counts = `${count(checks.length, "check")}${bad.length ? `, ${bad.length} not passed` : ""}`;
  const has = (...names) => checks.some(([, check]) => names.includes(results[check.result]));
  const kind = has("fail", "xpass") ? "bad" : bad.length || !has("pass") ? "unknown" : "good";
  const isTested = has("pass", "warn", "fail", "xpass", "xfail");
  const element = el(
    "details",
    { class: "rule", open: isOpen },
    el("summary", {}, el("code", {}, rule.id), el("span", { class: `badge grade-${kind}` }, isTested || bad.length ? counts : "not tested"), el("span", { class: "note" }, `${rule.profile} ${rule.level.toUpperCase()}`)),
  );
  const fill = () => {
    if (element.childElementCount > 1) return;
    element.append(el("p", {}, rule.text), ...bad.map(([sdk, check]) => checkDetails(sdk, check, results)));
    const passed = checks.filter(([, check]) => results[check.result] === "pass");
    if (passed.length) {
      const list = [...new Set(passed.map(([sdk, check]) => `${sdk.name}: ${check.id}`))];
      element.append(el("details", {}, el("summary", {}, `${count(passed.length, "check")} passed`), el("p", { class: "note" }, list.join(" · "))));
    }
  };
  element.addEventListener("toggle", fill);
  if (isOpen) fill();
  return element;
}

function checkDetails(sdk, check, results) {
  const facts = el("dl", { class: "pairs" });
  const add = (name, value) => value && facts.append(el("dt", {}, name), el("dd", {}, value));
  add("case", check.title);
  add("expected", check.expected);
  for (const line of check.got) add("got", line);
  add("step", check.step);
  add("known", check.known);
  const result = results[check.result];
  const kind = ["fail", "xpass"].includes(result) ? "bad" : "unknown";
  return el(
    "article",
    { class: "finding" },
    el("h3", {}, `${sdk.name}: `, el("code", {}, check.id), " ", el("span", { class: `badge grade-${kind}` }, result), check.regressed ? " regressed" : null),
    facts,
    check.curl ? command(check.curl) : null,
    command(`memconform conform --sdk ${quoted(sdk.reference)} --case ${quoted(check.id.split("#")[0].split("[")[0])}`),
  );
}
