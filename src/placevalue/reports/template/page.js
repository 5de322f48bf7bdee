"use strict";
(() => {
  const PAGE = 20;
  const OUTCOMES = [["", "all"], ["right", "right"], ["wrong", "wrong"], ["fixed", "fixed"], ["broken", "broken"]];
  const COPY = ["", "copies a training question", "rewords a training question"];
  const SEEN = { unseen: [0], seen: [1, 2], repeated: [1], reworded: [2] };
  const SEEN_OPTIONS = [["", "all"], ["unseen", "unseen"], ["seen", "seen"], ["repeated", "seen word for word"], ["reworded", "seen reworded"]];
  const experiments = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filters");
  const fields = ["experiment", "method", "seed", "set", "operation", "seen", "outcome", "text"];
  let page = 0;

  // The only way to create elements: text is always set as text, never as HTML.
  function make(name, kind, text) {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function fill(name, options) {
    const select = form.elements[name], before = select.value;
    select.replaceChildren(...options.map(([value, label]) => new Option(label, value)));
    if (options.some(([value]) => value === before)) select.value = before;
  }

  const unique = (values) => [...new Set(values)];
  const current = () => experiments.find((each) => each.name === form.elements.experiment.value) || experiments[0];

  function fillAll() {
    const shown = current();
    fill("method", [["", "any"], ...unique(shown.runs.map((run) => run.method)).map((name) => [name, name + (name === shown.baseline ? " (baseline)" : "")])]);
    fill("seed", [["", "all"], ...unique(shown.runs.map((run) => String(run.seed))).map((seed) => [seed, seed])]);
    fill("set", [["", "all"], ...shown.sets]);
    fill("operation", [["", "all"], ...shown.operations.map((name) => [name, name])]);
    fill("seen", shown.seen ? SEEN_OPTIONS : [["", "unknown"]]);
    form.elements.seen.disabled = !shown.seen;
  }

  // "fixed" or "broken" if the baseline with the same seed had the opposite outcome on a problem.
  function turn(shown, run, index) {
    const base = shown.runs.find((each) => each.method === shown.baseline && each.seed === run.seed);
    if (!base || base === run || base.right[index] === run.right[index]) return "";
    return run.right[index] === "1" ? "fixed" : "broken";
  }

  function fits(shown, run, index, outcome) {
    if (!outcome) return true;
    if (outcome === "right" || outcome === "wrong") return (run.right[index] === "1") === (outcome === "right");
    return turn(shown, run, index) === outcome;
  }

  function find() {
    const shown = current(), wanted = Object.fromEntries(fields.map((name) => [name, form.elements[name].value]));
    const runs = shown.runs.filter((run) => !wanted.seed || String(run.seed) === wanted.seed);
    const judged = runs.filter((run) => !wanted.method || run.method === wanted.method);
    const set = shown.sets.findIndex(([name]) => name === wanted.set), operation = shown.operations.indexOf(wanted.operation);
    const text = wanted.text.trim().toLowerCase();
    const counts = { fixed: 0, broken: 0 }, found = [];
    for (let index = 0; index < shown.ids.length; index++) {
      if (set >= 0 && shown.set[index] !== set) continue;
      if (operation >= 0 && shown.operation[index] !== operation) continue;
      if (wanted.seen && shown.seen && !SEEN[wanted.seen].includes(shown.seen[index])) continue;
      if (text && ![shown.ids[index], shown.questions ? shown.questions[index] : "", shown.answers[index], ...judged.map((run) => run.texts[index])]
        .some((each) => each && each.toLowerCase().includes(text))) continue;
      if (wanted.method) for (const run of judged) { const way = turn(shown, run, index); if (way) counts[way]++; }
      if (judged.some((run) => fits(shown, run, index, wanted.outcome))) found.push(index);
    }
    return { shown, wanted, runs, judged, found, counts };
  }

  function answer(shown, runs, index) {
    const right = runs.filter((run) => run.right[index] === "1").length;
    const made = make("span", `answer ${runs[0].colour}`), said = new Map();
    made.append(make("i"), make("span", "who", runs[0].method));
    for (const run of runs) {
      const text = run.texts[index], known = said.get(text) || { count: 0, right: run.right[index] === "1" };
      said.set(text, { ...known, count: known.count + 1 });
    }
    for (const [text, { count, right: fits }] of [...said].sort((one, other) => other[1].count - one[1].count)) {
      const times = count > 1 && said.size > 1 ? ` ×${count}` : "";
      made.append(make("span", `said ${fits ? "right" : "wrong"}`, (text.trim() || "nothing") + times));
    }
    if (runs.length > 1) made.append(make("span", "who", `${right}/${runs.length}`));
    for (const way of ["fixed", "broken"]) {
      const count = runs.filter((run) => turn(shown, run, index) === way).length;
      if (count) made.append(make("span", `turn ${way}`, runs.length > 1 ? `${way} ${count}` : way));
    }
    return made;
  }

  function problem(shown, runs, index, chosen) {
    const item = make("li"), about = make("p", "about"), answers = make("div", "answers"), gold = make("span");
    const question = shown.questions && shown.questions[index];
    item.append(make("p", "question", question || shown.ids[index]));
    gold.append("answer ", make("b", "", shown.answers[index]));
    about.append(gold, make("span", "", shown.sets[shown.set[index]][1]));
    if (shown.operation[index] >= 0) about.append(make("span", "", shown.operations[shown.operation[index]]));
    if (question) about.append(make("span", "", shown.ids[index]));
    if (shown.seen && shown.seen[index]) about.append(make("span", "copy", COPY[shown.seen[index]]));
    for (const method of unique(runs.map((run) => run.method))) {
      const made = answer(shown, runs.filter((run) => run.method === method), index);
      made.classList.toggle("chosen", method === chosen);
      answers.append(made);
    }
    item.append(about, answers);
    return item;
  }

  function show() {
    const { shown, wanted, runs, found, counts } = find();
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    document.getElementById("list").replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map((index) => problem(shown, runs, index, wanted.method)));
    let text = `${found.length.toLocaleString("en")} of ${shown.ids.length.toLocaleString("en")} problems`;
    if (wanted.method && wanted.method !== shown.baseline) text += `; against ${shown.baseline}, ${wanted.method} fixed ${counts.fixed} and broke ${counts.broken}` + (wanted.seed ? "" : ", over all seeds");
    if (shown.unlisted) text += `; ${shown.unlisted} runs of other seeds are not listed`;
    document.getElementById("count").textContent = text + ".";
    document.getElementById("page").textContent = `page ${page + 1} of ${pages}`;
    document.getElementById("previous").disabled = page === 0;
    document.getElementById("next").disabled = page >= pages - 1;
  }

  // Save a text as a file, without any request.
  function save(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = name.replace(/[^\w.-]+/g, "-");
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // The problems that the filters leave, with a line for each answer.
  function saveFound() {
    const { shown, judged, found } = find();
    const quote = (value) => /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
    const lines = [["id", "set", "operation", "copy", "question", "answer", "method", "seed", "prediction", "right"]];
    for (const index of found) for (const run of judged) lines.push([
      shown.ids[index], shown.sets[shown.set[index]][0], shown.operations[shown.operation[index]] || "",
      shown.seen ? ["no", "repeated", "reworded"][shown.seen[index]] : "", (shown.questions && shown.questions[index]) || "",
      shown.answers[index], run.method, String(run.seed), run.texts[index], run.right[index],
    ]);
    save(`${shown.name}-predictions.csv`, lines.map((line) => line.map(quote).join(",") + "\n").join(""));
  }

  function beginDownloads() {
    document.getElementById("save").addEventListener("click", saveFound);
    for (const button of document.querySelectorAll("[data-file]")) button.addEventListener("click", () => {
      const { name, files } = experiments[button.dataset.experiment];
      save(`${name}-${button.dataset.file}`, files[button.dataset.file]);
    });
  }

  // Keep the filters in the address, so that a link shows the same view.
  function write() {
    const parts = fields.filter((name) => form.elements[name].value && !(name === "experiment" && experiments.length === 1))
      .map((name) => `${name}=${encodeURIComponent(form.elements[name].value)}`);
    if (page) parts.push(`page=${page + 1}`);
    history.replaceState(null, "", "#" + ["predictions", ...parts].join("&"));
  }

  function read() {
    const [place, ...parts] = location.hash.slice(1).split("&");
    const given = {};
    for (const part of parts) {
      const at = part.indexOf("=");
      try { given[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1)); } catch { /* not one of our links */ }
    }
    if (given.theme) document.documentElement.dataset.theme = given.theme;
    if (place !== "predictions") return false;
    const set = (name) => {
      const field = form.elements[name], value = given[name] || "";
      field.value = value;
      if (field.tagName === "SELECT" && field.selectedIndex < 0) field.selectedIndex = 0;
    };
    set("experiment");
    fillAll();
    fields.slice(1).forEach(set);
    page = Math.max(0, (parseInt(given.page, 10) || 1) - 1);
    return true;
  }

  function begin() {
    fill("experiment", experiments.map((each) => [each.name, each.name]));
    fill("outcome", OUTCOMES);
    fillAll();
    const asked = read();
    show();
    if (asked) document.getElementById("predictions").scrollIntoView({ behavior: "instant" });
    form.addEventListener("input", (event) => { if (event.target.name === "experiment") fillAll(); page = 0; show(); write(); });
    form.addEventListener("reset", () => setTimeout(() => { fillAll(); page = 0; show(); write(); }));
    form.addEventListener("submit", (event) => event.preventDefault());
    const leaf = (by) => () => { page += by; show(); write(); form.scrollIntoView(); };
    document.getElementById("previous").addEventListener("click", leaf(-1));
    document.getElementById("next").addEventListener("click", leaf(1));
    addEventListener("hashchange", () => { if (read()) { show(); document.getElementById("predictions").scrollIntoView(); } });
  }

  function beginTheme() {
    const root = document.documentElement;
    try { if (localStorage.theme && !root.dataset.theme) root.dataset.theme = localStorage.theme; } catch { /* no storage */ }
    document.getElementById("theme").addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.theme = root.dataset.theme; } catch { /* no storage */ }
    });
  }

  function beginKeys() {
    for (const key of document.querySelectorAll("[data-key]")) key.addEventListener("click", () => {
      const on = key.getAttribute("aria-pressed") !== "true";
      key.setAttribute("aria-pressed", String(on));
      for (const mark of key.closest("section").querySelectorAll("[data-method]")) if (mark.dataset.method === key.dataset.key) mark.classList.toggle("hidden", !on);
    });
  }

  function beginPlace() {
    const links = [...document.querySelectorAll(".bar nav a")];
    const watch = new IntersectionObserver((seen) => {
      for (const each of seen) if (each.isIntersecting) for (const link of links) link.classList.toggle("here", link.getAttribute("href") === "#" + each.target.id);
    }, { rootMargin: "-20% 0px -70% 0px" });
    for (const link of links) watch.observe(document.getElementById(link.getAttribute("href").slice(1)));
  }

  begin();
  beginTheme();
  beginKeys();
  beginPlace();
  beginDownloads();
})();
