// Works beside the static page, so that it draws and listens meanwhile: models by onnxruntime-web (WASM), solvers in
// JavaScript.

import * as ort from "./ort/ort.wasm.min.mjs";
import { advanceWater, solveGas, solveRock } from "./solvers.js";

ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = new URL("./ort/", import.meta.url).href;
const GAS = { cells: 128, frames: 20 };

const sessions = {};
const session = (name) => (sessions[name] ??= ort.InferenceSession.create(`models/${name}.onnx`, { executionProviders: ["wasm"] }));

async function predicted(name, values, shape) {
  const ready = await session(name);
  const begin = performance.now();
  const found = await ready.run({ x: new ort.Tensor("float32", values, shape) });
  const time = performance.now() - begin, weights = found.attention.data; // of every cell; times their number, 1 is uniform
  return { values: found.y.data, time, attention: weights.map((weight) => weight * weights.length) };
}

const joined = (...parts) => {
  const out = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (out.set(part, at), at + part.length), 0);
  return out;
};

async function compare(task, name, cells, ...parts) {
  if (task === "droplet2d") {
    const given = await predicted(name, parts[1], [1, 1, cells, cells, 3]);
    const begin = performance.now(), solved = advanceWater(parts[0]);
    return { numbers: joined(solved, given.values, given.attention), times: { solver: performance.now() - begin, model: given.time } };
  }
  if (task === "darcy2d") {
    const given = await predicted(name, parts[0], [1, 1, cells, cells, 1]);
    const begin = performance.now(), solved = solveRock(parts[0], cells);
    return { numbers: joined(solved, given.values), times: { solver: performance.now() - begin, model: given.time } };
  }
  const frames = [];
  let state = parts[0], spent = 0;
  for (let k = 0; k < GAS.frames; k++) {
    const given = await predicted(name, state, [1, 1, GAS.cells, 3]);
    state = Float32Array.from(given.values);
    frames.push(state);
    spent += given.time;
  }
  const begin = performance.now(), solved = solveGas(parts[0], GAS.cells, GAS.frames, 0.05);
  return { numbers: joined(solved, ...frames), times: { solver: performance.now() - begin, model: spent } };
}

onmessage = async ({ data: { id, asked } }) => {
  try {
    const found = await compare(...asked);
    postMessage({ id, found }, [found.numbers.buffer]);
  } catch (problem) {
    postMessage({ id, problem: String(problem.message ?? problem) });
  }
};
