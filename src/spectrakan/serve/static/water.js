// The pool's arithmetic, the same as in tools/pool.py: states are Float32Array (n, n, 3) of depth and velocities.

export const FINE = 128;
export const FRAME = 0.02;
const HIGHEST = 4;

export function still(cells, level = 1) {
  const state = new Float32Array(3 * cells * cells);
  for (let k = 0; k < state.length; k += 3) state[k] = level;
  return state;
}

// The depth that a drop {x, y, h, w} adds on the fine grid; its water is taken evenly from the pool.
export function dropShape(fine, { x, y, h, w }) {
  const clamp = (v) => Math.min(FINE - 1, Math.max(0, Math.floor(v * FINE)));
  const under = fine[3 * (clamp(x) * FINE + clamp(y))];
  const height = Math.min(h, Math.max(0, HIGHEST - under));
  const profile = (c) => Float64Array.from({ length: FINE }, (_, k) => Math.exp(-(((k + 0.5) / FINE - c) ** 2) / w));
  const px = profile(x), py = profile(y), shape = new Float32Array(FINE * FINE);
  let total = 0;
  for (let i = 0; i < FINE; i++) for (let j = 0; j < FINE; j++) total += shape[i * FINE + j] = height * px[i] * py[j];
  const mean = total / shape.length;
  return shape.map((value) => value - mean);
}

export const damShape = (fine) => {
  // Deep water on one side, shallow on the other: nothing like a drop.
  const shape = new Float32Array(FINE * FINE);
  for (let i = 0; i < FINE; i++)
    for (let j = 0; j < FINE; j++) shape[i * FINE + j] = (i < FINE / 2 ? 2.3 : 0.45) - fine[3 * (i * FINE + j)];
  return shape;
};

// Depth is added, momentum stays.
export function addDepth(state, cells, shape) {
  const factor = FINE / cells, added = meanOf(shape, FINE, factor, 1, 0), out = new Float32Array(state.length);
  for (let k = 0; k < cells * cells; k++) {
    const before = state[3 * k], after = Math.max(0.05, before + added[k]);
    out[3 * k] = after;
    out[3 * k + 1] = state[3 * k + 1] * before / after;
    out[3 * k + 2] = state[3 * k + 2] * before / after;
  }
  return out;
}

function meanOf(values, cells, factor, channels, channel) {
  const coarse = cells / factor, out = new Float32Array(coarse * coarse);
  for (let i = 0; i < cells; i++)
    for (let j = 0; j < cells; j++)
      out[Math.floor(i / factor) * coarse + Math.floor(j / factor)] += values[channels * (i * cells + j) + channel];
  return out.map((value) => value / (factor * factor));
}

// Means of mass and momenta over larger cells.
export function averaged(state, cells) {
  if (cells === FINE) return state.slice();
  const factor = FINE / cells, out = new Float32Array(3 * cells * cells);
  for (let i = 0; i < FINE; i++)
    for (let j = 0; j < FINE; j++) {
      const from = 3 * (i * FINE + j), to = 3 * (Math.floor(i / factor) * cells + Math.floor(j / factor));
      out[to] += state[from];
      out[to + 1] += state[from] * state[from + 1];
      out[to + 2] += state[from] * state[from + 2];
    }
  for (let k = 0; k < out.length; k += 3) {
    out[k + 1] /= out[k];
    out[k + 2] /= out[k];
    out[k] /= factor * factor;
  }
  return out;
}

export function depthOf(state) {
  const out = new Float32Array(state.length / 3);
  for (let k = 0; k < out.length; k++) out[k] = state[3 * k];
  return out;
}

// Relative L2 error of the depth, the map of differences, the mean depth, and whether all is finite.
export function judged(model, truth) {
  const cells = truth.length / 3, map = new Float32Array(cells);
  let wrong = 0, size = 0, mass = 0, finite = true;
  for (let k = 0; k < cells; k++) {
    const difference = model[3 * k] - truth[3 * k];
    map[k] = difference;
    wrong += difference * difference;
    size += truth[3 * k] ** 2;
    mass += model[3 * k] / cells;
    finite &&= Number.isFinite(model[3 * k] + model[3 * k + 1] + model[3 * k + 2]);
  }
  return { error: Math.sqrt(wrong / size), map, mass, finite };
}

export function massOf(state) {
  let sum = 0;
  for (let k = 0; k < state.length; k += 3) sum += state[k];
  return sum / (state.length / 3);
}

// Whether a state lies inside the ranges [[low, high], ...] of the training data.
export function insideRange(state, ranges) {
  if (!ranges) return true;
  for (let k = 0; k < state.length; k++) {
    const [low, high] = ranges[k % 3];
    const slack = 0.02 * (high - low);
    if (state[k] < low - slack || state[k] > high + slack) return false;
  }
  return true;
}
