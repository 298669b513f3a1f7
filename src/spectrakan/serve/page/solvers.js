// The three solvers in JavaScript, double precision, each checked against its Python original by the tests.

// droplet2d on 128² cells, one frame of 0.02 s: Lax-Friedrichs between reflecting walls, as pde/droplet2d.py.
export function advanceWater(fields, cells = 128, frame = 0.02, gravity = 9.81) {
  const longest = 0.002 * 32 / cells, steps = Math.ceil(frame / longest - 1e-6), ratio = frame / steps * cells;
  const size = cells * cells, half = 0.5 * ratio;
  let mass = new Float64Array(size), mx = new Float64Array(size), my = new Float64Array(size);
  let next = [0, 1, 2].map(() => new Float64Array(size));
  for (let k = 0; k < size; k++) {
    mass[k] = fields[3 * k];
    mx[k] = mass[k] * fields[3 * k + 1];
    my[k] = mass[k] * fields[3 * k + 2];
  }
  for (let step = 0; step < steps; step++) {
    const [rho, px, py] = next;
    rho.fill(0);
    px.fill(0);
    py.fill(0);
    for (let i = 0; i < cells; i++)
      for (let j = 0; j < cells; j++) {
        const k = i * cells + j, a = mass[k], b = mx[k], c = my[k], u = b / a, v = c / a, p = 0.5 * gravity * a * a;
        const qa = 0.25 * a, qb = 0.25 * b, qc = 0.25 * c;
        let fa = half * b, fb = half * (b * u + p), fc = half * c * u;
        // What a wall gets comes back with its normal momentum reversed.
        let to = i + 1 < cells ? k + cells : k, turn = i + 1 < cells ? 1 : -1;
        rho[to] += qa + fa;
        px[to] += turn * (qb + fb);
        py[to] += qc + fc;
        to = i > 0 ? k - cells : k;
        turn = i > 0 ? 1 : -1;
        rho[to] += qa - fa;
        px[to] += turn * (qb - fb);
        py[to] += qc - fc;
        fa = half * c;
        fb = half * b * v;
        fc = half * (c * v + p);
        to = j + 1 < cells ? k + 1 : k;
        turn = j + 1 < cells ? 1 : -1;
        rho[to] += qa + fa;
        px[to] += qb + fb;
        py[to] += turn * (qc + fc);
        to = j > 0 ? k - 1 : k;
        turn = j > 0 ? 1 : -1;
        rho[to] += qa - fa;
        px[to] += qb - fb;
        py[to] += turn * (qc - fc);
      }
    next = [mass, mx, my];
    [mass, mx, my] = [rho, px, py];
  }
  const out = new Float32Array(3 * size);
  for (let k = 0; k < size; k++) {
    out[3 * k] = mass[k];
    out[3 * k + 1] = mx[k] / mass[k];
    out[3 * k + 2] = my[k] / mass[k];
  }
  return out;
}

// darcy2d: harmonic means at faces, zero pressure on the walls; conjugate gradients with a diagonal preconditioner.
export function solveRock(rock, cells, tolerance = 1e-9) {
  const size = cells * cells, scale = cells * cells;
  const east = new Float64Array(size), north = new Float64Array(size), west = new Float64Array(size), south = new Float64Array(size);
  const mean = (a, b) => 2 * a * b / (a + b) * scale;
  for (let i = 0; i < cells; i++)
    for (let j = 0; j < cells; j++) {
      const k = i * cells + j, wall = 2 * rock[k] * scale;
      west[k] = i ? mean(rock[k], rock[k - cells]) : wall;
      east[k] = i + 1 < cells ? mean(rock[k], rock[k + cells]) : wall;
      south[k] = j ? mean(rock[k], rock[k - 1]) : wall;
      north[k] = j + 1 < cells ? mean(rock[k], rock[k + 1]) : wall;
    }
  const apply = (u, out) => {
    for (let i = 0; i < cells; i++)
      for (let j = 0; j < cells; j++) {
        const k = i * cells + j;
        out[k] = (west[k] + east[k] + south[k] + north[k]) * u[k] - (i ? west[k] * u[k - cells] : 0)
          - (i + 1 < cells ? east[k] * u[k + cells] : 0) - (j ? south[k] * u[k - 1] : 0) - (j + 1 < cells ? north[k] * u[k + 1] : 0);
      }
  };
  const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
  const u = new Float64Array(size), r = new Float64Array(size).fill(1), z = new Float64Array(size), Ap = new Float64Array(size);
  const soften = () => {
    for (let k = 0; k < size; k++) z[k] = r[k] / (west[k] + east[k] + south[k] + north[k]);
  };
  soften();
  let p = z.slice(), rz = dot(r, z);
  const start = Math.sqrt(dot(r, r));
  for (let step = 0; step < 4 * cells * cells; step++) {
    apply(p, Ap);
    const alpha = rz / dot(p, Ap);
    for (let k = 0; k < size; k++) {
      u[k] += alpha * p[k];
      r[k] -= alpha * Ap[k];
    }
    if (Math.sqrt(dot(r, r)) < tolerance * start) break;
    soften();
    const later = dot(r, z), beta = later / rz;
    rz = later;
    for (let k = 0; k < size; k++) p[k] = z[k] + beta * p[k];
  }
  return Float32Array.from(u);
}

// cns1d: MUSCL with limited slopes, Rusanov fluxes and explicit viscosity, Heun's method, on four times the cells.
export function solveGas(start, cells, frames, frame, { gamma = 5 / 3, viscosity = 7 / 300, factor = 4 } = {}) {
  const n = cells * factor, dx = 2 / n, wrap = (k) => (k + n) % n;
  let state = [0, 1, 2].map(() => new Float64Array(n));
  for (let k = 0; k < n; k++) {
    // Lines between cell centres, so that the fine grid starts without steps.
    const at = (k + 0.5) / factor - 0.5, low = Math.floor(at), t = at - low;
    const value = (c) => (1 - t) * start[3 * ((low + cells) % cells) + c] + t * start[3 * ((low + 1) % cells) + c];
    const [rho, v, p] = [value(0), value(1), value(2)];
    state[0][k] = rho;
    state[1][k] = rho * v;
    state[2][k] = p / (gamma - 1) + 0.5 * rho * v * v;
  }
  const primitive = (s, k) => {
    const v = s[1][k] / s[0][k];
    return [s[0][k], v, (gamma - 1) * (s[2][k] - 0.5 * s[1][k] * v)];
  };
  const rate = (s) => {
    const w = [0, 1, 2].map(() => new Float64Array(n)), out = [0, 1, 2].map(() => new Float64Array(n));
    for (let k = 0; k < n; k++) primitive(s, k).forEach((value, c) => (w[c][k] = value));
    const slope = w.map((f) => f.map((value, k) => {
      const a = value - f[wrap(k - 1)], b = f[wrap(k + 1)] - value;
      return a * b <= 0 ? 0 : Math.sign(a) * Math.min(2 * Math.abs(a), 2 * Math.abs(b), Math.abs(a + b) / 2);
    }));
    const flux = ([rho, v, p]) => {
      const e = p / (gamma - 1) + 0.5 * rho * v * v;
      return { u: [rho, rho * v, e], f: [rho * v, rho * v * v + p, (e + p) * v], fast: Math.abs(v) + Math.sqrt(gamma * p / rho) };
    };
    for (let k = 0; k < n; k++) {
      const r = wrap(k + 1);
      const left = flux(w.map((f, c) => f[k] + 0.5 * slope[c][k])), right = flux(w.map((f, c) => f[r] - 0.5 * slope[c][r]));
      const fast = Math.max(left.fast, right.fast), stress = viscosity * (w[1][r] - w[1][k]) / dx;
      for (let c = 0; c < 3; c++) {
        let f = 0.5 * (left.f[c] + right.f[c]) - 0.5 * fast * (right.u[c] - left.u[c]);
        if (c === 1) f -= stress;
        if (c === 2) f -= stress * 0.5 * (w[1][k] + w[1][r]);
        out[c][k] -= f / dx;
        out[c][r] += f / dx;
      }
    }
    return out;
  };
  const result = new Float32Array(frames * cells * 3);
  for (let index = 0; index < frames; index++) {
    let left = frame;
    while (left > 1e-12) {
      let fast = 0, light = Infinity;
      for (let k = 0; k < n; k++) {
        const [rho, v, p] = primitive(state, k);
        fast = Math.max(fast, Math.abs(v) + Math.sqrt(gamma * p / rho));
        light = Math.min(light, rho);
      }
      const step = Math.min(left, 0.4 * dx / fast, 0.4 * dx * dx * light / viscosity);
      const one = rate(state), middle = state.map((f, c) => f.map((value, k) => value + step * one[c][k])), two = rate(middle);
      state = state.map((f, c) => f.map((value, k) => value + 0.5 * step * (one[c][k] + two[c][k])));
      left -= step;
    }
    for (let i = 0; i < cells; i++) {
      const sums = state.map((f) => {
        let sum = 0;
        for (let m = 0; m < factor; m++) sum += f[i * factor + m] / factor;
        return sum;
      });
      const v = sums[1] / sums[0];
      result.set([sums[0], v, (gamma - 1) * (sums[2] - 0.5 * sums[1] * v)], 3 * (index * cells + i));
    }
  }
  return result;
}
