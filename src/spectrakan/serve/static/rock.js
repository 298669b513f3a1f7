// Darcy flow: a painted rock, its pressure solved and predicted.

import { gradient, heatMap, short } from "./chart.js";

const SIZES = [32, 64, 128];
const TIGHT = 0.1, OPEN = 1;
const $ = (id) => document.getElementById(id);

export class Rock {
  constructor(backend, page) {
    Object.assign(this, { backend, page, cells: 64, colour: 0, brush: 6, name: "darcy2d-small", strokes: [], seed: 1 });
    this.spot = [0.5, 0.5];
    this.listen();
    $("rock-bar").style.background = gradient("sea");
  }

  listen() {
    const canvas = $("rock-paint");
    let last = null;
    const under = (event) => {
      const box = canvas.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      last = under(event);
      this.paint(last, last);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      const place = under(event);
      if (Math.hypot(place[0] - last[0], place[1] - last[1]) < 0.015) return;
      this.paint(last, place);
      last = place;
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (last = null));
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      if (moves[event.key]) {
        this.spot = this.spot.map((v, k) => Math.min(1, Math.max(0, v + 0.04 * moves[event.key][k])));
        this.repaint();
      } else if (event.key === "Enter" || event.key === " ") this.paint(this.spot, this.spot);
      else return;
      event.preventDefault();
    });
    canvas.addEventListener("focus", () => this.repaint());
    canvas.addEventListener("blur", () => this.repaint());
    const choose = (colour) => {
      this.colour = colour;
      $("rock-open").setAttribute("aria-pressed", colour === 1);
      $("rock-tight").setAttribute("aria-pressed", colour === 0);
    };
    $("rock-open").addEventListener("click", () => choose(1));
    $("rock-tight").addEventListener("click", () => choose(0));
    $("rock-brush").addEventListener("input", () => {
      this.brush = Number($("rock-brush").value);
      $("rock-brush-now").textContent = `${this.brush} %`;
    });
    $("rock-cells").addEventListener("input", () => {
      this.cells = SIZES[$("rock-cells").value];
      this.changed();
    });
    $("rock-new").addEventListener("click", () => {
      [this.seed, this.strokes] = [1 + Math.floor(Math.random() * 9999), []];
      this.changed();
    });
    $("rock-clear").addEventListener("click", () => {
      [this.seed, this.strokes] = [0, []];
      this.changed();
    });
  }

  paint(from, to) {
    const round = (value) => Math.round(1000 * Math.min(1, Math.max(0, value)));
    this.strokes.push([this.colour, this.brush, ...from.map(round), ...to.map(round)]);
    if (this.strokes.length > 120) this.strokes.shift();
    this.changed();
  }

  // The rock on any grid: two kinds divided by bumps of a seed, then the strokes.
  rock(cells) {
    const rock = new Float32Array(cells * cells).fill(OPEN);
    if (this.seed) {
      let state = this.seed * 2654435761 >>> 0;
      const draw = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32);
      const bumps = Array.from({ length: 5 }, () => [draw(), draw(), 0.02 + 0.48 * draw()]);
      const height = new Float32Array(rock.length);
      let mean = 0;
      for (let i = 0; i < cells; i++)
        for (let j = 0; j < cells; j++) {
          const [x, y] = [(i + 0.5) / cells, (j + 0.5) / cells];
          for (const [a, b, s] of bumps) height[i * cells + j] += Math.exp(-((x - a) ** 2 + (y - b) ** 2) / s);
          mean += height[i * cells + j] / rock.length;
        }
      height.forEach((value, k) => (rock[k] = value > mean ? OPEN : TIGHT));
    }
    for (const [colour, brush, ...ends] of this.strokes) {
      const [ax, ay, bx, by] = ends.map((value) => value / 1000), radius = brush / 100;
      const length = (bx - ax) ** 2 + (by - ay) ** 2 + 1e-12;
      for (let i = 0; i < cells; i++)
        for (let j = 0; j < cells; j++) {
          const [x, y] = [(i + 0.5) / cells - ax, (j + 0.5) / cells - ay];
          const t = Math.min(1, Math.max(0, (x * (bx - ax) + y * (by - ay)) / length));
          if ((x - t * (bx - ax)) ** 2 + (y - t * (by - ay)) ** 2 < radius * radius) rock[i * cells + j] = colour ? OPEN : TIGHT;
        }
    }
    return rock;
  }

  changed() {
    this.now = this.rock(this.cells);
    this.repaint();
    this.keep();
    this.again = true;
    this.solve();
  }

  // The newest rock is always answered last; strokes in between are passed over.
  async solve() {
    if (this.busy) return;
    this.busy = true;
    while (this.again) {
      this.again = false;
      const rock = this.now, cells = this.cells;
      try {
        const { numbers, times } = await this.backend.compare(this.name, cells, rock);
        this.page.connected();
        if (cells !== this.cells) continue;
        const size = cells * cells;
        this.found = { cells, times, solver: numbers.subarray(0, size), model: numbers.subarray(size, 2 * size) };
        this.repaint();
      } catch (problem) {
        this.page.lost(problem);
      }
    }
    this.busy = false;
  }

  repaint() {
    if (!this.now) return;
    const canvas = $("rock-paint");
    heatMap(canvas, this.now, this.cells, this.cells, TIGHT, OPEN, "rock");
    if (document.activeElement === canvas) {
      const paper = canvas.getContext("2d"), size = this.cells;
      paper.strokeStyle = "#00b8c4";
      paper.lineWidth = size / 64;
      paper.beginPath();
      paper.arc(this.spot[0] * size, (1 - this.spot[1]) * size, this.brush / 100 * size, 0, 7);
      paper.stroke();
    }
    $("rock-cells-now").textContent = `${this.cells}²`;
    $("rock-cells").value = SIZES.indexOf(this.cells);
    $("rock-brush-now").textContent = `${this.brush} %`;
    if (!this.found) return;
    const { cells, solver, model, times } = this.found;
    const high = solver.reduce((most, value) => Math.max(most, value), 1e-6);
    heatMap($("rock-solver"), solver, cells, cells, 0, high, "sea");
    heatMap($("rock-model"), model, cells, cells, 0, high, "sea");
    const wrong = model.map((value, k) => Math.abs(value - solver[k]));
    const most = wrong.reduce((a, b) => Math.max(a, b), 0);
    heatMap($("rock-map"), wrong, cells, cells, 0, most || 1, "heat");
    const size = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
    this.error = size(wrong) / size(solver);
    $("rock-bar-high").textContent = short(high);
    $("rock-solver-time").textContent = `${times.solver.toFixed(1)} ms`;
    $("rock-model-time").textContent = `${times.model.toFixed(1)} ms`;
    const band = this.facts?.scores?.[cells]?.band_90;
    const share = this.now.reduce((sum, value) => sum + (value > 0.5), 0) / this.now.length;
    const inside = share > 0.05 && band ? `Nine of ten rocks like those of its training stay below ${short(100 * band)} % (conformal).` : "";
    const method = this.backend.kind === "server" ? "sparse factorisation" : "method of conjugate gradients";
    $("rock-words").textContent = `The predicted pressure is ${short(100 * this.error)} % away from the solved one (relative L2); the largest error is ${short(most)}. ${inside} ${
      times.model > times.solver ? `The ${method} is the faster one at this size; on finer grids its cost grows faster than the model's.` : `The prediction takes ${short(times.solver / times.model)} times less time than the ${method}.`}${
      share < 0.02 || share > 0.98 ? " Rock of one kind alone is rare in its training data." : ""}`;
  }

  keep() {
    if (!this.visible) return;
    const values = { cells: this.cells, seed: this.seed };
    if (this.strokes.length) values.strokes = this.strokes.map((stroke) => stroke.join(".")).join("~");
    this.page.link("rock", values);
  }

  async enter(values) {
    this.visible = true;
    this.facts = (await this.page.models())[this.name];
    if (SIZES.includes(Number(values.get("cells")))) this.cells = Number(values.get("cells"));
    if (/^\d{1,4}$/.test(values.get("seed") ?? "")) this.seed = Number(values.get("seed"));
    if (values.has("strokes"))
      this.strokes = values.get("strokes").split("~").slice(0, 120).map((text) => text.split(".").map(Number))
        .filter((stroke) => stroke.length === 6 && stroke.every(Number.isFinite));
    this.changed();
  }

  leave() {
    this.visible = false;
  }
}
