const TITLE = document.title;
/** Rows that are printed in full. */
const LONGEST_PRINT = 5_000;
let questionTable = null;
let drawn = "";
let wantsSearch = false;

/** Counts changes of the address: what an earlier one still waits for is not shown. */
let turns = 0;

/** Show the view that the address names. */
async function route() {
  turns += 1;
  const turn = turns;
  const { view, parameters } = readAddress();
  const known = document.querySelector(`section[data-view="${CSS.escape(view)}"]`) !== null;
  const name = known ? view : "overview";
  const show = await prepared(name, parameters);
  if (turn !== turns) return;
  for (const notice of document.querySelectorAll("[data-error]")) notice.remove();
  for (const section of document.querySelectorAll("section[data-view]")) section.hidden = section.dataset.view !== name;
  for (const link of document.querySelectorAll("[data-nav]")) {
    const isCurrent = link.dataset.nav === (name === "question" ? "questions" : name);
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  show();
  const heading = document.querySelector(`section[data-view="${name}"] h1`);
  document.title = name === "overview" ? TITLE : `${heading.textContent.slice(0, 80)} · memconform`;
  // A reader that moves to another page begins at its heading; a changed filter leaves the focus.
  const page = `${name} ${name === "question" ? parameters.get("id") : ""}`;
  if (drawn && drawn !== page) {
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  drawn = page;
  if (wantsSearch && name === "questions") document.querySelector("#filters [name=q]").focus();
  wantsSearch = false;
}

/** Decode what a view needs; the function that is returned shows it at once. */
async function prepared(name, parameters) {
  if (name === "questions") return preparedQuestions(parameters);
  if (name === "conformance") {
    const data = await block("conformance");
    return () => showConformance(data, parameters);
  }
  if (name === "question") {
    const [title, parts] = await questionPage(parameters);
    return () => {
      document.getElementById("h-question").textContent = visible(title);
      document.getElementById("question-page").replaceChildren(...parts);
    };
  }
  return () => {};
}

async function preparedQuestions(parameters) {
  const questions = await questionsOf(await groupNumber(parameters));
  if (parameters.get("q")) await questions.searchText();
  const order = selectQuestions(questions, parameters);
  return () => {
    showFilters(document.getElementById("filters"), questions, parameters);
    questionTable ??= new QuestionTable(document.getElementById("question-table"));
    document.getElementById("match-count").textContent = `${NUMBER.format(order.length)} of ${count(questions.size, "question")}`;
    questionTable.show(questions, order, parameters);
  };
}

/** Filters replace the address, so that Back leads to the page before. */
function filter(view, parameters) {
  history.replaceState(null, "", address(view, parameters));
  void guarded();
}

function listen() {
  const filters = document.getElementById("filters");
  if (filters !== null) {
    const change = () => filter("questions", readFilters(filters, readAddress().parameters));
    filters.addEventListener("input", change);
    filters.addEventListener("submit", (event) => event.preventDefault());
    filters.addEventListener("reset", (event) => {
      event.preventDefault();
      filters.elements.namedItem("q").value = "";
      filter("questions", { g: filters.elements.namedItem("g").value });
    });
    filters.elements.namedItem("g").addEventListener("change", (event) => {
      event.stopPropagation();
      filter("questions", { g: event.target.value });
    });
  }
  const rules = document.getElementById("rule-filters");
  if (rules !== null) {
    rules.addEventListener("input", () => {
      const value = (name) => rules.elements.namedItem(name).value;
      filter("conformance", { q: value("q").trim(), sdk: value("sdk"), only: value("only") });
    });
    rules.addEventListener("submit", (event) => event.preventDefault());
  }
  addEventListener("keydown", (event) => {
    if (event.target instanceof Element && event.target.closest("input, select, textarea, button")) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") document.querySelector("section:not([hidden]) a[rel=next]")?.click();
    if (event.key === "k") document.querySelector("section:not([hidden]) a[rel=prev]")?.click();
    if (event.key === "/" && filters !== null) {
      event.preventDefault();
      wantsSearch = true;
      if (readAddress().view === "questions") void guarded();
      else location.hash = "#/questions";
    }
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    // The fragment of an address is a view's here.
    event.preventDefault();
    document.getElementById("main").focus();
  });
  addEventListener("hashchange", () => void guarded());
  addEventListener("beforeprint", () => {
    if (readAddress().view === "questions" && questionTable?.order.length <= LONGEST_PRINT) questionTable.drawAll();
    if (readAddress().view !== "overview") return;
    for (const section of document.querySelectorAll("section[data-view]")) section.hidden = ["questions", "question"].includes(section.dataset.view);
  });
  addEventListener("afterprint", () => void guarded());
}

async function guarded() {
  try {
    await route();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const notice = el("p", { class: "notice", role: "alert", "data-error": true }, `This page could not be shown: ${message}`);
    document.getElementById("main").prepend(notice);
    scrollTo(0, 0);
    throw error;
  }
}

document.getElementById("without-script")?.remove();
listen();
void guarded();
