// The studio's work, beside the page so that the page stays responsive: the code is the library's, compiled to WebAssembly.
import init, { Opened, Studio, is_model } from "./code.js";
import { keep } from "./store.js";

// How long a slice of the training takes, about, in milliseconds: between two, the page is listened to.
const SLICE = 60;
// More than this is for the command: all of the file is in memory here, more than once.
const MOST_BYTES = 512e6;

let studio;
let isRunning = false;
// The run that is going on, to wait for its end before another takes its place.
let going = Promise.resolve();
// All that is needed to go on in another tab: where the rows are from, what was changed, and the newest checkpoint.
let run = {};
// What was said of the table since: a run that is going on keeps what it began with.
let draft = {};

const ready = init({ module_or_path: new URL("code_bg.wasm", import.meta.url) }).then(() => { studio = new Studio(); });
const tell = (what) => postMessage(what);
// A task of its own, so that messages get in between.
const pause = () => new Promise((resolve) => { setTimeout(resolve, 0); });

// The bytes of a file; of one that is too large, what else can be done with it.
const TABLES = "`querent init` and `querent train` read tables of any size";
const MODELS = "`querent ask` and `querent page` read models of any size";
const read = async (file, instead = TABLES) => {
  if (file.size > MOST_BYTES) {
    throw new Error(`${file.name} has ${Math.round(file.size / 1e6)} MB, and ${MOST_BYTES / 1e6} MB are the most that a page can take: ${instead}`);
  }
  return new Uint8Array(await file.arrayBuffer());
};

const save = async () => {
  try {
    await keep(run);
  } catch (error) {
    tell({ event: "note", what: `The run cannot be kept in the browser's storage: ${error?.message ?? error}. If the tab is closed, it is lost.` });
  }
};

const finish = async () => {
  const report = JSON.parse(studio.finish());
  run = { ...run, checkpoint: null, model: studio.model(), report };
  await save();
  tell({ event: "finished", report });
};

// How fast the run goes, by what was done in the last so many seconds: its phases differ.
const RECENT = 20;
const speed = () => {
  let seen = [];
  return (told) => {
    // Epochs that early stopping skips count as done for the time that is left.
    const share = Math.min(1, (told.behind + told.step / told.steps) / told.epochs);
    const now = { at: performance.now() / 1000, done: told.done * told.steps + told.step, share };
    seen = [...seen.filter(({ at, done }) => now.at - at < RECENT && done <= now.done), now];
    const [first] = seen;
    const spent = now.at - first.at;
    return {
      share,
      rate: spent > 0.5 ? ((now.done - first.done) * run.batch) / spent : null,
      left: spent > 2 && share > first.share ? (spent * (1 - share)) / (share - first.share) : null,
    };
  };
};

const train = async () => {
  isRunning = true;
  const measured = speed();
  let kept = 0;
  try {
    while (isRunning) {
      const told = JSON.parse(studio.step(SLICE));
      if (told.again) tell({ event: "begun", ...told.again });
      const paths = told.epoch ? await studio.paths() : undefined;
      if (told.checkpoints > kept) {
        kept = told.checkpoints;
        run = { ...run, checkpoint: studio.checkpoint(), epochs: told.done };
        await save();
      }
      tell({ event: "progress", ...told, ...measured(told), paths });
      if (told.finished) { isRunning = false; await finish(); return; }
      await studio.done();
      await pause();
    }
  } catch (error) {
    isRunning = false;
    tell({ event: "failed", what: error.message });
  }
};

const halt = async () => {
  isRunning = false;
  await going;
};

// What the page can ask for; each gives what it is answered.
const answers = {
  read: async ({ file }) => {
    await halt();
    [run, draft] = [{ source: { file } }, {}];
    return JSON.parse(studio.read(file.name, await read(file)));
  },
  look: async ({ target, prices }) => {
    draft = { ...draft, target, prices };
    return JSON.parse(studio.look(target, prices ? await read(prices) : undefined));
  },
  prepare: ({ edits }) => {
    draft = { ...draft, edits };
    return JSON.parse(studio.prepare(JSON.stringify(edits)));
  },
  synthetic: async ({ name }) => {
    await halt();
    [run, draft] = [{ source: { synthetic: name } }, {}];
    return JSON.parse(studio.synthetic(name));
  },
  start: async ({ engine, settings, checkpoint }) => {
    await halt();
    const begun = JSON.parse(studio.take(await studio.start(engine, settings, checkpoint)));
    run = { ...run, ...draft, engine, settings, checkpoint, model: null, batch: begun.batch, epochs: begun.behind };
    await save();
    going = train();
    return begun;
  },
  stop: halt,
  go: async () => {
    await halt();
    going = train();
  },
  // Whether a file that was dropped is a model.
  recognize: async ({ file }) => is_model(new Uint8Array(await file.slice(0, 9).arrayBuffer())),
  // A model instead of a table. One that is refused changes nothing: only then does a run that is going on make room, and
  // what is kept of it stays in the storage.
  open: async ({ file }) => {
    const opened = Opened.read(file.name, await read(file, MODELS));
    await halt();
    [run, draft] = [{}, {}];
    return JSON.parse(studio.hold(opened));
  },
  reopen: ({ kept }) => {
    studio.reopen(kept.model, kept.report.engine, kept.report.epochs ?? 0);
    run = kept;
    return kept.report;
  },
  problem: () => studio.problem(),
  model: () => studio.model(),
  page: () => studio.page(),
  report: () => studio.report(),
};

addEventListener("message", async ({ data }) => {
  try {
    await ready;
    tell({ id: data.id, value: await answers[data.what](data) });
  } catch (error) {
    tell({ id: data.id, error: error?.message ?? String(error) });
  }
});
