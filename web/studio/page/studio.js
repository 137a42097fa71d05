// The studio page: puts what the worker says into its places, and takes what is changed and pressed.
import { at, download, make, show, text } from "./dom.js";
import { against, heat, learning } from "./plots.js";
import { forget, kept } from "./store.js";

// The one script that is loaded by its address: the policy of the page wants that said.
const scripts = globalThis.trustedTypes?.createPolicy("studio", { createScriptURL: (address) => address });
const address = new URL("worker.js", import.meta.url).href;
const worker = new Worker(scripts ? scripts.createScriptURL(address) : address, { type: "module" });

let asked = 0;
const waiting = new Map();
// Asks the worker for something, and waits for it.
const ask = (what, more = {}) => new Promise((resolve, reject) => {
  asked += 1;
  waiting.set(asked, [resolve, reject]);
  worker.postMessage({ id: asked, what, ...more });
});

const trouble = (what) => { text("trouble", what); show("trouble", Boolean(what)); };
const status = (what) => text("status", what);

// Does something, and says what is wrong with it at its place.
const attempt = async (place, work) => {
  text(place, "");
  document.body.setAttribute("aria-busy", "true");
  try {
    return await work();
  } catch (error) {
    text(place, error.message);
    return undefined;
  } finally {
    document.body.removeAttribute("aria-busy");
  }
};

let state = { name: "", columns: [], prices: undefined, features: [], history: [], isTable: false };

// 1. A table, or a model.
const begin = (name, isTable) => {
  for (const id of ["kept", "looking", "training", "result", "progress", "source-words"]) show(id, false);
  for (const id of ["look-refusal", "train-refusal", "result-refusal"]) text(id, "");
  clearResult();
  trouble("");
  buttons(false, false);
  state = { name, columns: [], prices: undefined, features: [], history: [], isTable };
};

const take = (file, target, prices) => attempt("source-refusal", async () => {
  begin(file.name, true);
  state.prices = prices;
  text("source-words", `Reading ${file.name}…`);
  show("source-words", true);
  let header;
  try {
    header = await ask("read", { file });
  } finally {
    show("source-words", false);
  }
  // People put what is to be predicted last.
  const chosen = target ?? header.at(-1);
  at("target").replaceChildren(...header.map((name) => make("option", { value: name, selected: name === chosen }, name)));
  at("prices").value = "";
  text("source-words", `${file.name}: ${header.length} columns`);
  show("source-words", true);
  show("looking", true);
  await look();
});

// Instead of a table, a model: it is there to be asked, and a run that is kept can still be gone on with.
const openModel = (file) => attempt("source-refusal", async () => {
  const told = await ask("open", { file });
  begin(file.name, false);
  text("source-words", told.about);
  show("source-words", true);
  result(told);
  at("result-head").focus();
  status("The model is opened");
  await offer();
});

// A model is known by its name, or else by its first bytes.
const receive = (file) => attempt("source-refusal", async () => {
  if (/\.safetensors$/i.test(file.name)) { await openModel(file); return; }
  // What was there before is not for the new file, also while that is looked at.
  begin(file.name, true);
  if (await ask("recognize", { file })) await openModel(file); else await take(file);
});

const sample = async (name) => {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name} cannot be had: ${answer.status}`);
  return new File([await answer.blob()], name);
};

// 2. What can be asked.
const KINDS = ["numeric", "binary", "categorical", "ordinal", "date"];

const look = (edits) => attempt("look-refusal", async () => {
  show("training", false);
  at("columns").replaceChildren();
  text("look-words", "Looking at the table…");
  let found;
  try {
    found = await ask("look", { target: at("target").value, prices: state.prices });
  } finally {
    text("look-words", "");
  }
  const classes = found.classes.map(([name, rows]) => `${name} (${rows})`).slice(0, 8).join(", ");
  const more = found.classes.length > 8 ? ", …" : "";
  const split = found.split ? ` Split by ${found.split[0]}.` : "";
  text("look-words", found.number ? `${found.rows} rows. It is a number (${found.number}), cut into ranges: ${classes}${more}.${split}`
    : `${found.rows} rows, ${found.classes.length} classes: ${classes}${more}.${split}`);
  state.columns = found.columns.map((column, index) => ({ ...column, ...edits?.[index] }));
  drawColumns();
  show("training", true);
  show("problem", true);
  text("size", "");
});

// The words of a column in order, to be changed; not if one has what separates them.
const words = (column) => {
  if (!column.values || column.values.some((word) => word.includes("|"))) return [];
  const input = make("input", { type: "text", class: "words", autocomplete: "off", "aria-label": `Words of ${column.name}, in order` });
  input.value = column.values.join(" | ");
  input.addEventListener("change", () => { column.values = input.value.split("|").map((word) => word.trim()); });
  return [input];
};

const drawColumns = () => {
  const head = ["Column", "Kind", "Group", "Cost", "Unit", "Known", "Left out"];
  const rows = state.columns.map((column, index) => {
    const label = (what) => ({ "aria-label": `${what} of ${column.name}` });
    const field = (key, attributes, read) => {
      const input = make("input", { ...attributes, autocomplete: "off" });
      if (attributes.type === "checkbox") input.checked = column[key]; else input.value = column[key] ?? "";
      input.addEventListener("change", () => { column[key] = read(input); drawOut(); });
      return input;
    };
    const kind = make("select", label("Kind"), ...KINDS.map((name) => make("option", { value: name, selected: name === column.kind }, name)));
    kind.addEventListener("change", () => { column.kind = kind.value; });
    const name = make("td", { class: "name" }, make("strong", {}, column.name), make("span", { class: "soft" }, column.seen),
      ...words(column), ...column.doubts.map((doubt) => make("span", { class: "doubt" }, doubt)));
    const row = make("tr", { id: `column-${index}` }, name, make("td", {}, kind),
      make("td", {}, field("group", { type: "text", ...label("Group") }, (input) => input.value)),
      make("td", {}, field("cost", { type: "text", inputmode: "decimal", class: "cost", ...label("Cost") }, (input) => (input.value.trim() === "" ? NaN : Number(input.value.trim().replace(",", "."))))),
      make("td", {}, field("unit", { type: "text", class: "unit", ...label("Unit") }, (input) => input.value)),
      make("td", {}, field("known", { type: "checkbox", ...label("Known") }, (input) => input.checked)),
      make("td", {}, field("ignore", { type: "checkbox", ...label("Left out") }, (input) => input.checked)));
    const drawOut = () => row.classList.toggle("out", column.ignore);
    drawOut();
    return row;
  });
  at("columns").replaceChildren(make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, ...rows));
};

const edits = () => state.columns.map(({ name, kind, group, cost, unit, known, ignore, values }) => {
  if (!Number.isFinite(cost)) throw new Error(`the cost of ${name} is no number`);
  return { kind, group, cost, unit, known, ignore, values };
});

const sized = (size) => {
  const asks = size.features.length;
  text("size", `${size.train} rows train, ${size.validation} validate, ${size.test} test; ${asks} ${asks === 1 ? "feature" : "features"} can be asked for, ${size.classes.length} classes.`);
};

const prepare = async () => {
  if (state.isTable) sized(await ask("prepare", { edits: edits() }));
};

// 3. Training.
const SHORT = ["epoch_steps=90"];

const settings = () => [at("length").value === "short" ? SHORT.join("\n") : "", at("settings").value].join("\n").trim();

const start = (checkpoint) => attempt("train-refusal", async () => {
  show("result", false);
  clearResult();
  at("begin").disabled = true;
  try {
    await prepare();
    running(await ask("start", { engine: at("engine").value, settings: settings(), checkpoint }));
  } finally {
    at("begin").disabled = false;
  }
});

const buttons = (isRunning, canGo) => {
  show("begin", !isRunning && !canGo);
  show("stop", isRunning);
  show("go", canGo);
  for (const id of ["engine", "length", "settings"]) at(id).disabled = isRunning || canGo;
};

const running = (begun) => {
  state.features = begun.features;
  state.history = begun.history;
  text("engine-words", `Computed by: ${begun.engine} (${begun.why}).`);
  text("rate", "");
  text("epoch-words", "");
  at("heat").replaceChildren();
  show("progress", true);
  buttons(true, false);
  plots();
  status("Training has begun");
};

const plots = () => {
  // In the warm-up there is no policy to draw yet.
  learning(state.history);
  const passes = state.history.findLast((epoch) => epoch.judged !== null)?.passes ?? [];
  against(at("trade"), passes.map(({ cost, accuracy }) => ({ cost, score: accuracy })));
};

const duration = (seconds) => (seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`);

const events = {
  begun: running,
  note: ({ what }) => trouble(what),
  progress: (told) => {
    at("bar").value = told.share;
    const parts = [`epoch ${told.done + 1} of at most ${told.epochs}, step ${told.step} of ${told.steps}`];
    if (told.rate) parts.push(`${Math.round(told.rate)} instances a second`);
    if (told.left !== null) parts.push(`about ${duration(told.left)} left`);
    text("rate", parts.join("; "));
    if (told.epoch) {
      state.history.push(told.epoch);
      text("epoch-words", `${told.epoch.title}: ${told.epoch.line}`);
      plots();
    }
    if (told.paths) heat(told.paths, state.features);
  },
  failed: ({ what }) => { buttons(false, false); text("train-refusal", what); },
  finished: ({ report }) => {
    buttons(false, false);
    text("rate", `${state.history.length} epochs`);
    at("bar").value = 1;
    result(report);
    at("result-head").focus();
    status("The model is trained");
  },
};

worker.addEventListener("message", ({ data }) => {
  if (data.event) { events[data.event](data); return; }
  const [resolve, reject] = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.error === undefined) resolve(data.value); else reject(new Error(data.error));
});
worker.addEventListener("error", (event) => trouble(`This page cannot be used here: ${event.message ?? "its worker does not start"}. It needs a browser of 2023 or later.`));

// 4. The model.
const result = (report) => {
  const cells = (tag, of) => make("tr", {}, ...of.map((cell) => make(tag, tag === "th" ? { scope: "col" } : {}, cell)));
  const number = (value) => value.toFixed(3);
  const many = report.curve.length > 0 ? " α is what a unit of cost is worth in nats of loss; the page that asks has a slider for it." : "";
  text("result-words", report.tested.length > 0 ? `What it does on the ${report.rows} rows.${many}`
    : "What it does on the validation rows is not part of its file.");
  at("tested").replaceChildren();
  if (report.tested.length > 0) {
    at("tested").append(make("thead", {}, cells("th", ["Trade-off", "α", "asked", "cost", report.metric])),
      make("tbody", {}, ...report.tested.map((point) => cells("td", [point.name, point.alpha.toPrecision(2), point.asked.toFixed(2), point.cost.toFixed(2), number(point.score)]))));
  }
  show("results", report.tested.length > 0);
  text("curve-head", `Its curve: ${report.metric} on the validation rows against cost, each α a dot`);
  against(at("curve"), report.curve);
  show("along", report.curve.length > 0);
  // A model from elsewhere is without the rows that a report is about.
  for (const id of ["report", "save-report"]) show(id, Boolean(report.engine));
  show("result", true);
};

// Pages that are made here are shown in frames of the page, each at its place.
const clearResult = () => {
  for (const place of ["asking-here", "report-here"]) { at(place).replaceChildren(); show(place, false); }
  if (reportAddress) URL.revokeObjectURL(reportAddress);
  [reportText, reportAddress] = [undefined, undefined];
};

const askHere = () => attempt("result-refusal", async () => {
  const page = URL.createObjectURL(new Blob([await ask("page")], { type: "text/html" }));
  const frame = make("iframe", { title: "The page that asks", src: page });
  frame.addEventListener("load", () => URL.revokeObjectURL(page), { once: true });
  at("asking-here").replaceChildren(frame);
  show("asking-here", true);
});

// The report is made once: of many rows it takes a while.
let reportText;
let reportAddress;
const reportPage = async () => {
  if (reportText === undefined) {
    text("result-note", "Testing the model along its curve, and drawing it…");
    try {
      reportText = await ask("report");
    } finally {
      text("result-note", "");
    }
  }
  return reportText;
};

const showReport = () => attempt("result-refusal", async () => {
  reportAddress ??= URL.createObjectURL(new Blob([await reportPage()], { type: "text/html" }));
  at("report-here").replaceChildren(
    make("p", { class: "soft" }, make("a", { href: reportAddress, target: "_blank", rel: "noopener" }, "The report in a tab of its own")),
    make("iframe", { title: "The report", src: reportAddress }),
  );
  show("report-here", true);
  status("The report is drawn");
});

// A run of an earlier visit.
const goOn = (run) => attempt("source-refusal", async () => {
  const { source, target, prices } = run;
  show("kept", false);
  if (source.synthetic) {
    begin(source.synthetic, false);
    sized(await ask("synthetic", { name: source.synthetic }));
  } else {
    await take(source.file, target, prices);
    if (at("look-refusal").textContent) return;
    state.columns = state.columns.map((column, index) => ({ ...column, ...run.edits[index] }));
    drawColumns();
  }
  show("training", true);
  if (run.model) {
    await prepare();
    result(await ask("reopen", { kept: run }));
    return;
  }
  at("engine").value = run.engine;
  at("length").value = "whole";
  at("settings").value = run.settings;
  await start(run.checkpoint ?? undefined);
});

let offered;
const offer = async () => {
  const run = await kept().catch(() => undefined);
  if (!run?.source || !(run.model || run.batch)) return;
  offered = run;
  const name = run.source.synthetic ?? run.source.file.name;
  text("kept-words", run.model ? `${name}: its model is trained.` : `${name}: ${run.epochs} epochs are done.`);
  text("kept-go", run.model ? "Open it" : "Go on");
  show("kept", true);
};

const listen = () => {
  const press = (id, what) => at(id).addEventListener("click", what);
  press("kept-go", () => goOn(offered));
  press("kept-drop", () => { forget(); show("kept", false); });
  at("file").addEventListener("change", () => { if (at("file").files[0]) receive(at("file").files[0]); });
  const drop = at("drop");
  for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) receive(event.dataTransfer.files[0]);
  });
  press("clinic", () => attempt("source-refusal", async () => take(await sample("clinic.csv"), "diagnosis", await sample("prices.csv"))));
  press("syn1", () => attempt("source-refusal", async () => {
    begin("syn1", false);
    sized(await ask("synthetic", { name: "syn1" }));
    show("problem", false);
    show("training", true);
  }));
  at("target").addEventListener("change", () => look());
  at("prices").addEventListener("change", () => { [state.prices] = at("prices").files; look(); });
  press("begin", () => start());
  press("stop", async () => {
    await ask("stop");
    // It may have come to its end by itself.
    if (at("stop").hidden) return;
    buttons(false, true);
    status("Stopped");
  });
  press("go", () => { buttons(true, false); ask("go"); });
  press("problem", () => attempt("train-refusal", async () => { await prepare(); download("problem.toml", await ask("problem"), "application/toml"); }));
  press("ask", askHere);
  press("report", showReport);
  press("save-report", () => attempt("result-refusal", async () => download("report.html", await reportPage(), "text/html")));
  press("save-model", () => attempt("result-refusal", async () => download("model.safetensors", await ask("model"), "application/octet-stream")));
  press("save-page", () => attempt("result-refusal", async () => download("ask.html", await ask("page"), "text/html")));
};

listen();
offer();
