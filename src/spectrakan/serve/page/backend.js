// The static page's numbers, all made inside the browser, by workers that have the models and the solvers.

export class LostConnection extends Error {}
export const kind = "browser";

let known = null;
export async function models() {
  known ??= await (await fetch("models.json")).json();
  return known;
}

const waiting = new Map();
const workers = {};
let count = 0;
function settle(id, act) {
  act(waiting.get(id));
  waiting.delete(id);
}

// One for each model, so that a gas that is still being solved holds up no water.
function workerOf(name) {
  if (workers[name]) return workers[name];
  const made = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  made.onmessage = ({ data: { id, found, problem } }) => settle(id, ({ done, fail }) => (found ? done(found) : fail(new Error(problem))));
  made.onerror = (event) => {
    for (const [id, { asked }] of waiting)
      if (asked === name) settle(id, ({ fail }) => fail(new Error(event.message || "the model could not be loaded")));
  };
  return (workers[name] = made);
}

export async function compare(name, ...rest) {
  const { task } = (await models())[name], id = (count += 1);
  return new Promise((done, fail) => {
    waiting.set(id, { asked: name, done, fail });
    workerOf(name).postMessage({ id, asked: [task, name, ...rest] });
  });
}

const none = async () => {
  throw new Error("runs are shown by `spectrakan serve`");
};
export const sample = none, inside = none;
export const alive = async () => {};
