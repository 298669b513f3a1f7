// The pool: touches become drops, both states advance frame by frame, and what differs is drawn and said.

import { chart, gradient, heatMap, short } from "./chart.js";
import { Pace } from "./pace.js";
import { SOFT, Surface } from "./surface.js";
import * as water from "./water.js";

const SIZES = [32, 64, 128];
const STEP = 1000 / 14; // milliseconds from one state to the next
const LATE = 95; // a longer mean time is less than 10 states a second with some margin
const KEPT = 300; // frames in the charts
const MOST_EVENTS = 80;
const LONGEST = 900; // frames that a link replays
const $ = (id) => document.getElementById(id);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const wait = (time) => new Promise((done) => setTimeout(done, time));

export class Pool {
  constructor(backend, page) {
    Object.assign(this, { backend, page, cells: 32, glow: false, lines: false, playing: !page.still, rain: false });
    this.pace = new Pace(SOFT);
    const surface = (id) => new Surface($(id), this.pace.level);
    this.surfaces = { solver: surface("pool-solver"), model: surface("pool-model") };
    this.name = "droplet2d-small";
    this.facts = {};
    this.visible = false;
    this.busy = false;
    this.times = { solver: NaN, model: NaN };
    this.rates = [];
    this.reset();
    this.listen();
    $("pool-bar").style.background = gradient("heat");
  }

  reset() {
    this.fine = water.still(water.FINE);
    this.model = water.still(this.cells);
    this.attention = null;
    this.step = 0;
    this.since = 0;
    this.events = [];
    this.full = false;
    this.pending = [];
    this.left = false;
    this.failed = "";
    this.history = [];
    this.present(true);
  }

  // --- touches -----------------------------------------------------------------------------------------------------

  listen() {
    for (const surface of Object.values(this.surfaces)) {
      const canvas = surface.canvas;
      let last = null;
      canvas.addEventListener("pointerdown", (event) => {
        const place = surface.under(event);
        if (!place) return;
        canvas.setPointerCapture(event.pointerId);
        last = place;
        this.aim(place, false);
        this.drop(place, 1.1, 0.006);
      });
      canvas.addEventListener("pointermove", (event) => {
        const place = surface.under(event);
        this.aim(place ?? [0.5, 0.5], Boolean(place));
        if (!last || !place || Math.hypot(place[0] - last[0], place[1] - last[1]) < 0.06) return;
        last = place;
        this.drop(place, 0.45, 0.005);
      });
      canvas.addEventListener("pointerup", () => (last = null));
      canvas.addEventListener("pointercancel", () => (last = null));
      canvas.addEventListener("pointerleave", () => this.aim([0.5, 0.5], false));
      canvas.addEventListener("focus", () => this.aim(this.spot ?? [0.5, 0.5], true));
      canvas.addEventListener("blur", () => this.aim(this.spot ?? [0.5, 0.5], false));
      canvas.addEventListener("keydown", (event) => this.key(event));
    }
    const click = (id, act) => $(id).addEventListener("click", act);
    click("pool-play", () => this.play(!this.playing));
    click("pool-step", () => {
      this.play(false);
      this.advance().then(() => this.keep());
    });
    click("pool-rain", () => {
      this.rain = !this.rain;
      $("pool-rain").setAttribute("aria-pressed", this.rain);
      if (this.rain) this.play(true);
    });
    click("pool-calm", () => {
      this.rain = false;
      $("pool-rain").setAttribute("aria-pressed", false);
      this.reset();
      this.keep();
    });
    click("pool-break", () => this.act({ kind: "b" }));
    $("pool-cells").addEventListener("input", () => this.resize(SIZES[$("pool-cells").value]));
    $("pool-glow").addEventListener("change", () => {
      this.glow = $("pool-glow").checked;
      this.present(true);
      this.keep();
    });
    $("pool-lines").addEventListener("change", () => {
      this.lines = $("pool-lines").checked;
      for (const surface of Object.values(this.surfaces)) surface.lines = this.lines;
      this.repaint();
      this.keep();
    });
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const spot = this.spot ?? [0.5, 0.5];
    if (moves[event.key]) {
      const [dx, dy] = moves[event.key], size = event.shiftKey ? 0.15 : 0.04;
      this.aim([spot[0] + size * dx, spot[1] + size * dy].map((v) => Math.min(0.98, Math.max(0.02, v))), true);
    } else if (event.key === "Enter" || event.key === " ") this.drop(spot, 1.1, 0.006);
    else return;
    event.preventDefault();
  }

  aim(place, shown) {
    this.spot = place;
    this.moved = true;
    for (const surface of Object.values(this.surfaces)) surface.cursor = [...place, shown ? 1 : 0];
  }

  drop([x, y], h, w) {
    const rounded = { x: Math.round(1000 * x) / 1000, y: Math.round(1000 * y) / 1000 };
    this.act({ kind: "d", ...rounded, h, w });
  }

  act(event) {
    if (!this.pending.length) this.touched = performance.now();
    this.pending.push(event);
    if (!this.playing && !this.busy) {
      this.apply();
      this.present(true);
      if (this.page.still) this.say();
    }
    this.wake?.();
  }

  apply() {
    for (const event of this.pending.splice(0)) {
      const shape = event.kind === "b" ? water.damShape(this.fine) : water.dropShape(this.fine, event);
      this.fine = water.addDepth(this.fine, water.FINE, shape);
      this.model = event.kind === "b" ? water.averaged(this.fine, this.cells) : water.addDepth(this.model, this.cells, shape);
      if (event.kind === "b") this.left = true;
      if (this.events.length < MOST_EVENTS) this.events.push({ step: this.step, ...event });
      else this.full = true;
    }
  }

  // --- time --------------------------------------------------------------------------------------------------------

  play(on) {
    this.playing = on;
    $("pool-play").textContent = on ? "Pause" : "Play";
    if (on) this.run();
    else this.keep();
  }

  async run() {
    if (this.running) return;
    this.running = true;
    while (this.playing && this.visible && !document.hidden) {
      const begin = performance.now();
      if (this.rain && Math.random() < 0.12) this.drop([Math.random(), Math.random()], 0.3 + Math.random(), 0.004);
      if (!(await this.advance())) await wait(700);
      const left = STEP - (performance.now() - begin);
      // A pause of none lets the page draw and hear where states are late: models in the browser leave it no other.
      if (!this.pending.length)
        await new Promise((done) => {
          this.wake = done;
          setTimeout(done, Math.max(0, left));
        });
      this.rates.push(performance.now() - begin);
      if (this.rates.length > 30) this.rates.shift();
      if (this.step % 14 === 0) this.keep();
    }
    this.running = false;
    this.keep(); // a frame may have arrived after the pause
  }

  // One frame of both; false where the connection is lost.
  async advance() {
    if (this.busy) return true;
    this.busy = true;
    const touched = this.pending.length ? this.touched : null;
    this.apply();
    if (touched) this.present(true);
    const { fine, model, cells } = this;
    const start = this.failed ? water.averaged(fine, cells) : model;
    try {
      const { numbers, times } = await this.backend.compare(this.name, cells, fine, start);
      this.page.connected();
      if (cells !== this.cells || fine !== this.fine || (model !== this.model && !this.failed)) return true; // outdated
      const size = fine.length, own = model.length;
      this.fine = numbers.slice(0, size);
      const next = numbers.slice(size, size + own);
      this.attention = numbers.slice(size + own);
      this.measure(times);
      this.step += 1;
      this.since += 1;
      if (!this.failed) this.model = next;
      if (touched) [this.answered, this.due] = [touched, 0];
      this.judge();
      this.present(false);
      return true;
    } catch (problem) {
      if (problem.status === 422) {
        this.failed = `The state cannot be advanced: ${problem.message}. Start again.`;
        this.play(false);
        this.judge();
        this.present(true);
      } else this.page.lost(problem);
      return false;
    } finally {
      this.busy = false;
    }
  }

  // Medians of the last steps: single ones jump with whatever else the machine does.
  measure(times) {
    this.measured = [...(this.measured ?? []), times].slice(-15);
    const middle = (name) => this.measured.map((entry) => entry[name]).sort((a, b) => a - b)[Math.floor(this.measured.length / 2)];
    this.times = { solver: middle("solver"), model: middle("model") };
  }

  judge() {
    const truth = water.averaged(this.fine, this.cells), found = water.judged(this.model, truth);
    if (!found.finite || water.depthOf(this.model).some((depth) => depth <= 0.02 || depth > 50))
      this.failed ||= "The prediction is no water any more. It is frozen; the solver goes on. Start again.";
    this.found = found;
    this.inside = !this.left && water.insideRange(truth, this.facts.range);
    this.history.push({ step: this.step, error: found.error, mass: found.mass, truth: water.massOf(this.fine), since: this.since });
    if (this.history.length > KEPT) this.history.shift();
  }

  resize(cells) {
    if (cells === this.cells) return;
    this.cells = cells;
    // The model goes on from the solver's present state, on the new grid.
    this.model = water.averaged(this.fine, cells);
    this.attention = null;
    this.measured = [];
    this.since = 0;
    this.failed = "";
    this.present(true);
    this.keep();
  }

  // --- what is drawn and said --------------------------------------------------------------------------------------

  present(jump) {
    let light = null;
    if (this.glow && this.attention?.length) {
      let low = Infinity, high = -Infinity;
      for (const value of this.attention) [low, high] = [Math.min(low, value), Math.max(high, value)];
      this.contrast = high / low;
      light = this.attention.map((value) => ((value - low) / (high - low || 1)) ** 1.5);
    }
    this.surfaces.solver.show(water.depthOf(this.fine), water.FINE, null, jump);
    this.surfaces.model.show(water.depthOf(this.model), this.cells, light, jump);
    this.surfaces.model.failed = Boolean(this.failed);
    this.arrived = performance.now();
    this.jump = jump || this.page.still;
    this.dirty = true;
  }

  draw(now) {
    const span = Math.max(STEP, this.rates[this.rates.length - 1] ?? 0), share = this.jump ? 1 : (now - this.arrived) / span;
    if ((this.jump || share > 1.2) && !this.dirty && !this.moved) return this.rest(now);
    if (now < (this.due ?? 0)) return;
    this.drawn = now;
    this.due = Math.max((this.due ?? 0) + this.pace.gap, now - this.pace.gap);
    this.moved = false;
    const late = this.playing && mean(this.rates.slice(-8)) > LATE;
    if (!this.fixed && (this.pace.frame(now, late) || this.sharp)) this.lay(this.pace.level);
    this.sharp = false;
    for (const surface of Object.values(this.surfaces)) surface.draw(share, this.page.theme);
    this.page.drew();
    if (this.answered) this.seen(this.answered);
    this.answered = 0;
    if (this.dirty && now - (this.said ?? 0) > (SOFT ? 400 : 160)) {
      this.said = now;
      this.dirty = false;
      this.say();
    }
  }

  // Water that stands still is drawn once more, as finely as it can be.
  rest(now) {
    this.pace.rest();
    if (this.playing || this.fixed || this.sharp || now - this.drawn < 300) return;
    this.sharp = true;
    this.lay(0);
    for (const surface of Object.values(this.surfaces)) surface.draw(1, this.page.theme);
  }

  lay(level) {
    for (const surface of Object.values(this.surfaces)) surface.lay(level);
  }

  // What is drawn now is on the screen when the browser asks for the next frame.
  seen(touched) {
    requestAnimationFrame(() => (document.body.dataset.latency = Math.round(performance.now() - touched)));
  }

  say() {
    const { found, facts, times } = this;
    $("pool-model-cells").textContent = `${this.cells}², ${facts.parameters ? (facts.parameters / 1000).toFixed(0) : "?"}k weights`;
    $("pool-cells-now").textContent = `${this.cells}²`;
    $("pool-cells").value = SIZES.indexOf(this.cells);
    const label = (time) => (Number.isFinite(time) ? `${time.toFixed(1)} ms a step` : "");
    $("pool-solver-time").textContent = label(times.solver);
    $("pool-model-time").textContent = label(times.model);
    if (found) {
      const high = Math.max(0.02, found.map.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0));
      heatMap($("pool-map"), found.map.map(Math.abs), this.cells, this.cells, 0, high);
      $("pool-bar-high").textContent = short(high);
      $("pool-error-now").textContent = `${(100 * found.error).toFixed(2)} %`;
      this.charts();
    }
    const verdict = this.failed || (this.left ? "Outside its training range: a dam broke. Do not trust this prediction." : "");
    $("pool-verdict").textContent = verdict;
    $("pool-verdict").hidden = !verdict;
    $("pool-words").textContent = this.words();
    $("pool-pays").textContent = this.pays();
  }

  charts() {
    const past = this.history, end = this.step * water.FRAME, span = KEPT * water.FRAME;
    const x = [Math.max(0, end - span), Math.max(span / 3, end)];
    const band = this.facts.band?.relative_l2, top = band ? band[band.length - 1] : 0;
    const high = Math.max(0.01, 1.15 * Math.max(top, ...past.slice(-KEPT).map((entry) => Math.min(entry.error, 10))));
    // Nothing is promised beyond the frames that it was calibrated for.
    const promised = band && this.cells === this.facts.band.cells ? past.filter((entry) => entry.since && entry.since <= band.length) : [];
    chart($("pool-errors"), {
      x, y: [0, high], xLabel: "seconds in the pool", format: (value) => `${short(100 * value)} %`,
      areas: [{ colour: "--band", points: promised.map((entry) => [entry.step * water.FRAME, 0, band[entry.since - 1]]) }],
      lines: [{ colour: "--model", points: past.map((entry) => [entry.step * water.FRAME, entry.error]) }],
    });
    const drift = Math.max(0.01, 1.2 * Math.max(...past.map((entry) => Math.min(3, Math.abs(entry.mass - 1) || 0)), ...past.map((entry) => Math.abs(entry.truth - 1))));
    chart($("pool-mass"), {
      x, y: [1 - drift, 1 + drift], xLabel: "seconds in the pool",
      lines: [
        { colour: "--solver", points: past.map((entry) => [entry.step * water.FRAME, entry.truth]) },
        { colour: "--model", points: past.map((entry) => [entry.step * water.FRAME, entry.mass]), dash: [5, 4] },
      ],
    });
    $("pool-band-words").textContent = !band ? "" : this.cells === this.facts.band.cells
      ? `90 % conformal band for ${band.length} frames: nine of ten pools touched at random stay inside`
      : `no band on ${this.cells}²: it was calibrated on ${this.facts.band.cells}²`;
  }

  words() {
    if (!this.found && this.busy) return "Loading the model …";
    if (!this.events.length && !this.step) return "The water is still. Tap it.";
    if (!this.found) return "";
    const error = `After ${this.since} frames on its own, the prediction is ${(100 * this.found.error).toFixed(2)} % away from the solver.`;
    const range = this.inside ? "The state lies inside the range that the model was trained on." : "The state lies outside the range that the model was trained on: errors there mean nothing good, and the band promises nothing.";
    const ratio = this.contrast > 1e4 ? "more than 10,000" : short(this.contrast ?? 1);
    const glow = this.glow ? ` The glow is the attention of the token: its brightest cell has ${ratio} times the weight of its darkest.` : "";
    return `${error} ${range}${glow}${this.full ? ` The link holds the first ${MOST_EVENTS} touches.` : ""}`;
  }

  pays() {
    const { solver, model } = this.times;
    if (!Number.isFinite(solver + model)) return "";
    const ratio = solver / model, where = this.backend.kind === "server" ? "on this machine's CPU" : "in this browser";
    const rate = this.rates.length > 5 ? ` ${(1000 / mean(this.rates)).toFixed(0)} new states arrive a second.` : "";
    if (ratio >= 1.05)
      return `Here the surrogate is ${ratio.toFixed(1)} times as fast: ${model.toFixed(1)} ms on ${this.cells}² against ${solver.toFixed(1)} ms of the solver, which needs 128² because its viscosity grows with the cell; both measured ${where}.${rate}`;
    return `Here the solver is the faster one: ${solver.toFixed(1)} ms against ${model.toFixed(1)} ms, measured ${where}. A surrogate pays where a solver's step is dear (fine grids, stiff or implicit equations), for many states at once on a GPU, and where gradients are wanted.${rate}`;
  }

  // --- links -------------------------------------------------------------------------------------------------------

  keep() {
    if (!this.visible || this.replaying) return;
    const values = { cells: this.cells, step: this.step };
    if (this.glow) values.glow = 1;
    if (this.lines) values.lines = 1;
    if (!this.playing) values.paused = 1;
    const coded = this.events.map((e) => e.step + (e.kind === "b" ? "b" : `d${[1000 * e.x, 1000 * e.y, 100 * e.h, 10000 * e.w].map(Math.round).join(".")}`));
    if (coded.length) values.do = coded.join("~");
    this.page.link("pool", values);
  }

  async enter(values) {
    const known = await this.page.models();
    this.facts = known[this.name] ?? {};
    const score = this.facts.scores?.["32"];
    $("pool-card").textContent = score
      ? `On ${score.states} fresh pools its depth was ${(100 * score.relative_l2).toFixed(2)} % wrong on average over 50 frames (32²).` : "";
    this.visible = true;
    const cells = Number(values.get("cells"));
    if (SIZES.includes(cells)) this.cells = cells;
    this.glow = values.get("glow") === "1";
    this.lines = values.get("lines") === "1";
    $("pool-glow").checked = this.glow;
    $("pool-lines").checked = this.lines;
    for (const surface of Object.values(this.surfaces)) surface.lines = this.lines;
    if (!this.surfaces.solver.works) this.page.tell("This browser draws no WebGL; numbers and maps below still work.");
    if (values.has("step") && !this.step) await this.replay(values);
    if (values.get("paused") === "1") this.playing = false;
    $("pool-play").textContent = this.playing ? "Pause" : "Play";
    this.present(true);
    if (this.playing) this.run();
  }

  leave() {
    this.visible = false;
  }

  repaint() {
    this.moved = this.dirty = true;
  }

  async replay(values) {
    this.reset();
    this.replaying = true;
    const events = (values.get("do") ?? "").split("~").filter(Boolean).slice(0, MOST_EVENTS).flatMap((text) => {
      const found = /^(\d{1,5})(?:(b)|d(\d+)\.(\d+)\.(\d+)\.(\d+))$/.exec(text);
      if (!found) return [];
      const [x, y, h, w] = found.slice(3).map(Number);
      return [found[2] ? { step: Number(found[1]), kind: "b" } : { step: Number(found[1]), kind: "d", x: x / 1000, y: y / 1000, h: Math.min(h / 100, 2.5), w: Math.min(Math.max(w / 10000, 0.001), 0.05) }];
    });
    const last = Math.min(LONGEST, Number(values.get("step")) || 0);
    while (this.step < last || events.length) {
      while (events.length && events[0].step <= this.step) {
        const { step, ...event } = events.shift();
        this.pending.push(event);
      }
      if (this.step >= last) break;
      if (!(await this.advance())) break;
    }
    this.apply();
    this.replaying = false;
  }
}
