// Runs that the server was given: samples, time, two models side by side, and what is inside a model.

import { chart, gradient, heatMap, short } from "./chart.js";

const $ = (id) => document.getElementById(id);
const element = (name, text = "", kind = "") => Object.assign(document.createElement(name), { textContent: text, className: kind });
const options = (pairs) => pairs.map(([value, text]) => Object.assign(element("option", text), { value }));
// Of finite values; fields may have more cells than a function takes arguments.
const bounds = (list) => {
  let low = Infinity, high = -Infinity;
  for (const value of list) if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return low <= high ? [low, high] : [0, 1];
};

export class Runs {
  constructor(backend, page) {
    Object.assign(this, { backend, page, sample: 0, frame: 0, field: 0, kept: new Map() });
    $("runs-bar").style.background = gradient("sea");
    $("runs-error-bar").style.background = gradient("heat");
    const listen = (id, kind, act) => $(id).addEventListener(kind, act);
    listen("runs-name", "change", () => this.choose($("runs-name").value, this.other));
    listen("runs-other", "change", () => this.choose(this.run, $("runs-other").value));
    listen("runs-field", "change", () => this.move({ field: Number($("runs-field").value) }));
    listen("runs-sample", "input", () => this.move({ sample: Number($("runs-sample").value) }));
    listen("runs-time", "input", () => this.move({ frame: Number($("runs-time").value) }));
    for (const id of ["runs-kan", "runs-gates"]) listen(id, "toggle", () => this.look());
  }

  async enter(values) {
    this.visible = true;
    const known = await this.page.models();
    this.known = Object.fromEntries(Object.entries(known).filter(([, entry]) => entry.kind === "run"));
    const names = Object.keys(this.known);
    if (!names.length) {
      $("runs-words").textContent = "No runs were given. Start the server with their folders: spectrakan serve RUN ...";
      return;
    }
    this.sample = Math.max(0, Number(values.get("sample")) || 0);
    this.frame = Math.max(0, Number(values.get("frame")) || 0);
    this.field = Math.max(0, Number(values.get("field")) || 0);
    $("runs-name").replaceChildren(...options(names.map((name) => [name, `${name} (${this.known[name].model})`])));
    const run = names.includes(values.get("run")) ? values.get("run") : names[0];
    this.scores();
    await this.choose(run, values.get("beside") ?? this.alike(run)[0] ?? "");
  }

  // Runs of the same problem, which alone can be laid beside a run.
  alike(run) {
    return Object.keys(this.known).filter((name) => name !== run && this.known[name].task === this.known[run].task);
  }

  async choose(run, other) {
    const others = this.alike(run);
    [this.run, this.other] = [run, others.includes(other) ? other : ""];
    $("runs-other").replaceChildren(...options([["", "no other"], ...others.map((name) => [name, name])]));
    $("runs-name").value = run;
    $("runs-other").value = this.other;
    const facts = this.known[run];
    $("runs-field").replaceChildren(...facts.fields.map((name, k) => Object.assign(element("option", name), { value: k })));
    $("runs-sample").max = facts.samples - 1;
    this.certificate(facts.certificate);
    this.look();
    await this.move({});
  }

  async move(change) {
    Object.assign(this, change);
    const facts = this.known[this.run];
    this.sample = Math.min(this.sample, facts.samples - 1);
    this.field = Math.min(this.field, facts.fields.length - 1);
    const asked = `${this.run}|${this.other}|${this.sample}`;
    this.asked = asked;
    try {
      const [one, two] = await Promise.all([this.run, this.other].map((name) => name && this.fetched(name, this.sample)));
      if (this.asked !== asked) return;
      this.shown = { one, two: two || null };
      this.page.connected();
      this.repaint();
      this.page.link("runs", { run: this.run, beside: this.other, sample: this.sample, frame: this.frame, field: this.field });
    } catch (problem) {
      this.page.lost(problem);
    }
  }

  async fetched(run, index) {
    const key = `${run}/${index}`;
    if (!this.kept.has(key)) {
      if (this.kept.size > 40) this.kept.delete(this.kept.keys().next().value);
      this.kept.set(key, this.backend.sample(run, index));
    }
    return this.kept.get(key).catch((problem) => {
      this.kept.delete(key);
      throw problem;
    });
  }

  repaint() {
    if (!this.shown || !this.visible) return;
    const { one, two } = this.shown, facts = this.known[this.run], frames = one.truth.shape[0];
    this.frame = Math.min(this.frame, frames - 1);
    $("runs-time").max = frames - 1;
    $("runs-time").value = this.frame;
    $("runs-time").disabled = frames < 2;
    $("runs-sample").value = this.sample;
    $("runs-field").value = this.field;
    $("runs-sample-now").textContent = `${this.sample + 1} of ${facts.samples}`;
    const time = facts.steady ? "steady" : `t = ${short(facts.times[facts.history + this.frame])}`;
    $("runs-time-now").textContent = time;
    const slice = ({ shape, values }, frame) => {
      const channels = shape[shape.length - 1], cells = shape.slice(1, -1).reduce((a, b) => a * b, 1);
      const from = frame * cells * channels, channel = Math.min(this.field, channels - 1);
      return Float32Array.from({ length: cells }, (_, k) => values[from + k * channels + channel]);
    };
    const truth = slice(one.truth, this.frame), space = one.truth.shape.slice(1, -1);
    const panels = [[facts.history > 1 ? "Input, last frame" : "Input", slice(one.input, one.input.shape[0] - 1), "sea"], ["Truth", truth, "sea"]];
    const scores = [], elsewhere = [];
    for (const [name, found] of [[this.run, one], [this.other, two]]) {
      if (!found || !name) continue;
      // Runs may have been tested on other samples or grids: each against its own truth.
      const frame = Math.min(this.frame, found.truth.shape[0] - 1), given = slice(found.prediction, frame), own = slice(found.truth, frame);
      panels.push([`${name}`, given, "sea"], [`${name}, error`, given.map((value, k) => Math.abs(value - own[k])), "heat"]);
      for (const panel of panels.slice(-2)) panel.push(found.truth.shape.slice(1, -1));
      if (own.length !== truth.length || own.some((value, k) => value !== truth[k])) elsewhere.push(`${name} was tested on other samples or another grid; its error is against its own truth, which is not shown.`);
      scores.push(`${name} ${short(100 * found.error)} %`);
    }
    if (one.attention) panels.push(["Attention of the token", one.attention.values, "glow"]);
    const [low, high] = bounds(panels.filter(([, , kind], k) => kind === "sea" && !(facts.steady && k === 0)).flatMap(([, values]) => bounds(values)));
    const wrong = Math.max(...panels.filter(([, , kind]) => kind === "heat").flatMap(([, values]) => bounds(values)));
    $("runs-low").textContent = short(low);
    $("runs-high").textContent = short(high);
    $("runs-error-high").textContent = short(wrong);
    const flat = space.length === 1;
    $("runs-bars").hidden = flat; // curves have axes
    $("runs-maps").replaceChildren(...panels.map(([title, values, kind, [nx, ny] = space], k) => {
      const figure = element("figure"), canvas = element("canvas", "", flat ? "chart" : "map");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${title}, ${facts.fields[this.field]}`);
      figure.append(element("figcaption", title), canvas);
      const own = kind === "glow" || (facts.steady && k === 0) ? bounds(values) : kind === "heat" ? [0, wrong] : [low, high];
      if (flat)
        requestAnimationFrame(() => chart(canvas, { x: [0, 1], y: own, lines: [{ colour: kind === "sea" ? "--solver" : "--model", points: Array.from(values, (value, i) => [(i + 0.5) / values.length, value]) }] }));
      else heatMap(canvas, space.length === 3 ? values.subarray(0, nx * ny) : values, nx, ny, own[0], own[1], kind === "sea" ? "sea" : "heat");
      return figure;
    }));
    const uniform = one.attention ? ` The attention of the token goes from ${bounds(one.attention.values).map(short).join(" to ")} times uniform.` : "";
    $("runs-words").textContent = `Sample ${this.sample + 1}: ${facts.fields[this.field]}${facts.steady ? "" : ` at ${time}`}. Relative L2 error of the whole rollout: ${scores.join(", ")}. Truth and predictions share one ${flat ? "axis" : "colour scale"}, errors another.${uniform} ${elsewhere.join(" ")} ${facts.warning}`;
  }

  scores() {
    const names = Object.keys(this.known), metrics = [...new Set(["relative_l2", ...names.flatMap((name) => Object.keys(this.known[name].metrics))])];
    const row = (cells, kind) => {
      const line = element("tr");
      line.append(...cells.map((text) => element(kind, text)));
      return line;
    };
    $("runs-scores").replaceChildren(
      row(["run", "model", "task", "parameters", "training", ...metrics.slice(0, 6)], "th"),
      ...names.map((name) => {
        const facts = this.known[name];
        return row([name, facts.model, facts.task, (facts.parameters ?? 0).toLocaleString("en"), `${short(facts.train_seconds ?? NaN)} s`,
          ...metrics.slice(0, 6).map((key) => short(facts.metrics[key] ?? NaN))], "td");
      }));
  }

  certificate(found) {
    const box = $("runs-certificate").querySelector("div");
    if (!found) return box.replaceChildren(element("p", `None yet. Make one with: spectrakan certify ${this.run}`, "quiet"));
    const table = element("table"), told = (value) => (Number.isFinite(value) ? short(value) : "none");
    const row = (kind, ...cells) => {
      const line = element("tr");
      line.append(...cells.map((text) => element(kind, text)));
      table.append(line);
    };
    row("th", "quantity", "bound", "worst found", "status");
    for (const [name, { value, attacked, status }] of Object.entries(found.entries ?? {})) row("td", name.replaceAll("_", " "), told(value), told(attacked), status);
    const scroll = element("div", "", "scroll");
    scroll.append(table);
    box.replaceChildren(element("p", `${found.sentence}.`), scroll, element("p", `Around ${found.num_inputs} test inputs on ${(found.resolution ?? []).join(" x ")} cells.`, "quiet"));
  }

  // What is inside is fetched when somebody opens it.
  async look() {
    if (!this.run || !($("runs-kan").open || $("runs-gates").open)) return;
    const found = await this.backend.inside(this.run).catch((problem) => this.page.lost(problem));
    if (!found) return;
    const box = $("runs-kan").querySelector(".curves");
    box.replaceChildren(...(found.layers.length ? [] : [element("p", "This model has no KAN.", "quiet")]));
    found.layers.forEach((edges, layer) => {
      box.append(element("h3", `Layer ${layer + 1}: the ${edges.length} edges that vary most on the samples`));
      for (const edge of edges) {
        const canvas = element("canvas");
        canvas.title = `input ${edge.from} to neuron ${edge.to}`;
        box.append(canvas);
        chart(canvas, { x: [edge.x[0], edge.x[edge.x.length - 1]], y: [Math.min(...edge.y), Math.max(...edge.y)], marks: edge.knots, lines: [{ colour: "--model", points: edge.x.map((x, k) => [x, edge.y[k]]) }] });
      }
    });
    const gates = Object.values(found.gates), modes = Math.max(2, ...gates.map((gate) => gate.length));
    const every = gates.flat();
    if (gates.length)
      chart($("runs-gates").querySelector("canvas"), { x: [0, modes - 1], y: [Math.min(0.9, ...every), Math.max(1.1, ...every)], xLabel: "mode", lines: gates.map((gate, k) => ({ colour: k % 2 ? "--solver" : "--model", width: 1.5, points: gate.map((value, mode) => [mode, value]) })) });
  }

  leave() {
    this.visible = false;
  }
}
