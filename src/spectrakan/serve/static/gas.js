// One-dimensional gas: a drawn first state, twenty frames solved and predicted.

import { chart, fitted, short } from "./chart.js";

const CELLS = 128, FRAMES = 20, FRAME = 0.05;
const FIELDS = [
  { name: "Density", low: 0.5, high: 12, flat: 4 },
  { name: "Velocity", low: -2, high: 2, flat: 0 },
  { name: "Pressure", low: 5, high: 120, flat: 40 },
];
const $ = (id) => document.getElementById(id);
const thousandths = (value, field) => Math.round(1000 * Math.min(1, Math.max(0, (value - FIELDS[field].low) / (FIELDS[field].high - FIELDS[field].low))));
const valueOf = (code, field) => FIELDS[field].low + Math.min(1000, code) / 1000 * (FIELDS[field].high - FIELDS[field].low);

export class Gas {
  constructor(backend, page) {
    Object.assign(this, { backend, page, field: 0, frame: 0, name: "cns1d-small", cursor: 64 });
    this.curves = FIELDS.map(({ flat }) => new Float32Array(CELLS).fill(flat));
    this.fresh(3);
    this.listen();
  }

  fresh(seed) {
    let state = seed * 2654435761 >>> 0;
    const draw = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32);
    FIELDS.forEach(({ low, high }, field) => {
      const waves = [1, 2, 3].map((k) => [k, draw() / k, 2 * Math.PI * draw()]);
      const middle = field === 1 ? 0 : low + (0.25 + 0.3 * draw()) * (high - low), size = (field === 1 ? 0.3 : 0.14) * (high - low);
      this.curves[field] = Float32Array.from({ length: CELLS }, (_, i) =>
        middle + size * waves.reduce((sum, [k, a, p]) => sum + a * Math.sin(2 * Math.PI * k * (i + 0.5) / CELLS + p), 0));
    });
  }

  listen() {
    const canvas = $("gas-draw");
    let last = null;
    const at = (event) => {
      const box = canvas.getBoundingClientRect(), { low, high } = FIELDS[this.field];
      const { left, right, top, bottom } = this.edges;
      const share = (event.clientX - box.left - left) / (box.width - left - right);
      const value = low + (1 - (event.clientY - box.top - top) / (box.height - top - bottom)) * (high - low);
      return [Math.round(share * CELLS - 0.5), Math.min(high, Math.max(low, value))];
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      last = at(event);
      this.pull(last, last);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      const place = at(event);
      this.pull(last, place);
      last = place;
    });
    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, () => {
        if (last) this.smooth();
        last = null;
      });
    canvas.addEventListener("keydown", (event) => {
      const { low, high } = FIELDS[this.field];
      if (event.key === "ArrowLeft" || event.key === "ArrowRight")
        this.cursor = (this.cursor + (event.key === "ArrowLeft" ? CELLS - 3 : 3)) % CELLS;
      else if (event.key === "ArrowUp" || event.key === "ArrowDown") this.bump((event.key === "ArrowUp" ? 0.05 : -0.05) * (high - low));
      else return;
      event.preventDefault();
      this.repaint();
    });
    for (const name of ["focus", "blur"]) canvas.addEventListener(name, () => this.repaint());
    for (const button of document.querySelectorAll("#gas [data-field]"))
      button.addEventListener("click", () => {
        this.field = Number(button.dataset.field);
        this.repaint();
        this.keep();
      });
    $("gas-new").addEventListener("click", () => {
      this.fresh(1 + Math.floor(Math.random() * 9999));
      this.changed();
    });
    $("gas-flat").addEventListener("click", () => {
      this.curves[this.field].fill(FIELDS[this.field].flat);
      this.changed();
    });
    $("gas-time").addEventListener("input", () => {
      this.frame = Number($("gas-time").value);
      this.repaint();
      this.keep();
    });
    $("gas-play").addEventListener("click", () => {
      this.playing = !this.playing;
      if (this.playing && this.frame >= FRAMES) this.frame = 0;
      this.repaint();
    });
  }

  // The curve follows the pointer from one place to the next.
  pull([a, va], [b, vb]) {
    const steps = Math.max(1, Math.abs(b - a));
    for (let k = 0; k <= steps; k++) {
      const cell = Math.round(a + (b - a) * k / steps);
      if (cell >= 0 && cell < CELLS) this.curves[this.field][cell] = va + (vb - va) * k / steps;
    }
    this.changed();
  }

  bump(size) {
    const { low, high } = FIELDS[this.field], curve = this.curves[this.field];
    for (let i = 0; i < CELLS; i++) {
      const away = Math.min(Math.abs(i - this.cursor), CELLS - Math.abs(i - this.cursor));
      curve[i] = Math.min(high, Math.max(low, curve[i] + size * Math.exp(-((away / 7) ** 2))));
    }
    this.changed();
  }

  // A hand draws corners; the training data have none this sharp.
  smooth() {
    const kernel = Array.from({ length: 13 }, (_, k) => Math.exp(-((k - 6) ** 2) / 10)), total = kernel.reduce((a, b) => a + b);
    const curve = this.curves[this.field];
    this.curves[this.field] = curve.map((_, i) => kernel.reduce((sum, w, k) => sum + w * curve[(i + k - 6 + CELLS) % CELLS], 0) / total);
    this.changed();
  }

  changed() {
    this.curves = this.curves.map((curve, k) => curve.map((value) => valueOf(thousandths(value, k), k))); // as a link keeps it
    this.again = true;
    this.repaint();
    this.keep();
    this.solve();
  }

  async solve() {
    if (this.busy) return;
    this.busy = true;
    $("gas-times").textContent = "solving …";
    while (this.again) {
      this.again = false;
      const state = new Float32Array(3 * CELLS);
      for (let i = 0; i < CELLS; i++) for (let c = 0; c < 3; c++) state[3 * i + c] = this.curves[c][i];
      try {
        const { numbers, times } = await this.backend.compare(this.name, 128, state);
        this.page.connected();
        const size = 3 * CELLS * FRAMES;
        this.found = { times, start: state, solver: numbers.subarray(0, size), model: numbers.subarray(size, 2 * size) };
        this.repaint();
      } catch (problem) {
        this.page.lost(problem);
      }
    }
    this.busy = false;
  }

  draw(now) {
    if (!this.playing || now - (this.turned ?? 0) < 110) return;
    this.turned = now;
    this.frame = this.frame + 1;
    if (this.frame >= FRAMES) [this.frame, this.playing] = [FRAMES, false];
    this.repaint();
    if (!this.playing) this.keep();
  }

  frameOf(which, frame) {
    const { start } = this.found, from = frame ? this.found[which].subarray(3 * CELLS * (frame - 1), 3 * CELLS * frame) : start;
    return Array.from({ length: CELLS }, (_, i) => [-1 + 2 * (i + 0.5) / CELLS, from[3 * i + this.field]]);
  }

  repaint() {
    const { low, high, name } = FIELDS[this.field];
    for (const button of document.querySelectorAll("#gas [data-field]")) button.setAttribute("aria-pressed", Number(button.dataset.field) === this.field);
    $("gas-title").textContent = `${name} at the start`;
    $("gas-play").textContent = this.playing ? "Pause" : "Play";
    $("gas-time").value = this.frame;
    $("gas-time-now").textContent = `t = ${(this.frame * FRAME).toFixed(2)}`;
    $("gas-later").textContent = `${name} at t = ${(this.frame * FRAME).toFixed(2)}`;
    const curve = Array.from(this.curves[this.field], (value, i) => [-1 + 2 * (i + 0.5) / CELLS, value]);
    const marks = document.activeElement === $("gas-draw") ? [-1 + 2 * (this.cursor + 0.5) / CELLS] : [];
    this.edges = chart($("gas-draw"), { x: [-1, 1], y: [low, high], xLabel: "x", lines: [{ colour: "--solver", points: curve, width: 3 }], marks });
    if (!this.found) return void fitted($("gas-show"));
    const every = [];
    for (let k = 0; k < FRAMES; k++) every.push(...this.frameOf("solver", k).map((point) => point[1]));
    const [least, most] = [Math.min(...every), Math.max(...every)], space = 0.12 * (most - least) + 1e-3;
    chart($("gas-show"), {
      x: [-1, 1], y: [least - space, most + space], xLabel: "x",
      lines: [
        { colour: "--solver", points: this.frameOf("solver", this.frame), width: 3.5 },
        { colour: "--model", points: this.frameOf("model", this.frame), width: 2, dash: [6, 4] },
      ],
    });
    const errors = [[0, 0]], masses = { solver: [], model: [] };
    for (let k = 0; k <= FRAMES; k++) {
      const field = this.field;
      const [truth, given] = ["solver", "model"].map((which) => this.frameOf(which, k).map((point) => point[1]));
      const wrong = Math.sqrt(given.reduce((sum, value, i) => sum + (value - truth[i]) ** 2, 0));
      const size = Math.sqrt(truth.reduce((sum, value) => sum + value * value, 0)) + (field === 1 ? 0.05 * Math.sqrt(CELLS) : 0);
      if (k) errors.push([k * FRAME, wrong / size]);
      this.field = 0;
      for (const which of ["solver", "model"]) masses[which].push([k * FRAME, this.frameOf(which, k).reduce((sum, point) => sum + point[1], 0) / CELLS]);
      this.field = field;
    }
    const worst = Math.max(0.01, ...errors.map((entry) => entry[1]));
    chart($("gas-errors"), { x: [0, 1], y: [0, 1.15 * Math.min(worst, 5)], xLabel: "time", format: (value) => `${short(100 * value)} %`, lines: [{ colour: "--model", points: errors }], marks: [this.frame * FRAME] });
    const level = masses.solver[0][1], drift = 1.3 * Math.max(0.01 * level, ...masses.model.map((entry) => Math.abs(entry[1] - level)));
    chart($("gas-mass"), { x: [0, 1], y: [level - drift, level + drift], xLabel: "time", lines: [{ colour: "--solver", points: masses.solver }, { colour: "--model", points: masses.model, dash: [5, 4] }] });
    const { solver, model } = this.found.times;
    $("gas-times").textContent = `${solver.toFixed(0)} ms solved, ${model.toFixed(0)} ms predicted`;
    const range = this.facts?.range, inside = !range || this.curves.every((values, k) => values.every((value) => value >= range[k][0] && value <= range[k][1]));
    $("gas-words").textContent = `At t = ${(this.frame * FRAME).toFixed(2)} the predicted ${name.toLowerCase()} is ${short(100 * (errors[this.frame]?.[1] ?? 0))} % away from the solution. ${
      inside ? "The first state lies inside the range of the training data." : "The first state lies outside the range of the training data: do not trust the prediction."} Twenty frames took ${
      solver.toFixed(0)} ms to solve on 256 cells and ${model.toFixed(0)} ms to predict${solver > model ? "." : "; at this size the solver is the faster one."}`;
  }

  keep() {
    if (!this.visible) return;
    // Every cell as two digits: thousandths of the field's range.
    const coded = this.curves.map((curve, k) => Array.from(curve, (value) => thousandths(value, k).toString(36).padStart(2, "0")).join(""));
    this.page.link("gas", { field: this.field, frame: this.frame, curves: coded.join("~") });
  }

  async enter(values) {
    this.visible = true;
    this.facts = (await this.page.models())[this.name];
    const field = Number(values.get("field")), frame = Number(values.get("frame"));
    if ([0, 1, 2].includes(field)) this.field = field;
    if (frame >= 0 && frame <= FRAMES) this.frame = Math.floor(frame);
    const coded = (values.get("curves") ?? "").split("~");
    if (coded.length === 3 && coded.every((text) => /^[0-9a-z]{256}$/.test(text)))
      this.curves = coded.map((text, k) => Float32Array.from(text.match(/../g), (code) => valueOf(parseInt(code, 36), k)));
    this.changed();
  }

  leave() {
    this.visible = this.playing = false;
  }
}
