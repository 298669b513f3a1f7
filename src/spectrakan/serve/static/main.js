// The page: which scene is shown, the link that restores it, colours, and the state of the connection.

import * as backend from "./backend.js";
import { Gas } from "./gas.js";
import { Pool } from "./pool.js";
import { Rock } from "./rock.js";
import { Runs } from "./runs.js";

const $ = (id) => document.getElementById(id);
const root = document.documentElement;

const page = {
  still: matchMedia("(prefers-reduced-motion: reduce)").matches,
  theme: "light",
  paused: false,

  models() {
    this.known ??= backend.models().catch((problem) => {
      this.known = undefined;
      this.lost(problem);
      return {};
    });
    return this.known;
  },

  // The address bar always holds what a reload or a friend needs.
  link(scene, values) {
    const text = new URLSearchParams(values).toString();
    const next = `#${scene}${text ? `?${text}` : ""}`;
    if (location.hash !== next) history.replaceState(null, "", next);
  },

  // Frames drawn in the last second, for the tests and for the curious.
  drew() {
    const now = performance.now();
    this.draws = [...(this.draws ?? []), now].filter((time) => now - time < 1000);
    document.body.dataset.frames = this.draws.length;
  },

  tell(words) {
    $("notice").textContent = words;
    $("notice").hidden = false;
  },

  lost(problem) {
    this.away = true;
    this.tell(problem instanceof backend.LostConnection
      ? "The server does not answer. Is `spectrakan serve` still running? Trying again."
      : `The server refused: ${problem.message}`);
  },

  connected() {
    if (!this.away) return;
    this.away = false;
    $("notice").hidden = true;
  },
};

function colour(theme) {
  page.theme = theme;
  root.dataset.theme = theme;
  $("theme").setAttribute("aria-label", theme === "dark" ? "Light colours" : "Dark colours");
  for (const scene of Object.values(scenes)) scene.repaint?.();
}

const prefers = matchMedia("(prefers-color-scheme: dark)");
const scenes = {};
colour(localStorage.getItem("theme") ?? (prefers.matches ? "dark" : "light"));
prefers.addEventListener("change", () => localStorage.getItem("theme") ?? colour(prefers.matches ? "dark" : "light"));
$("theme").addEventListener("click", () => {
  colour(page.theme === "dark" ? "light" : "dark");
  localStorage.setItem("theme", page.theme);
});

scenes.pool = new Pool(backend, page);
scenes.rock = new Rock(backend, page);
scenes.gas = new Gas(backend, page);
scenes.runs = new Runs(backend, page);

let shown = null;
function go() {
  const [name, query = ""] = location.hash.slice(1).split("?");
  const next = name in scenes ? name : "pool";
  if (shown === next && query === "") return;
  if (shown && shown !== next) scenes[shown].leave();
  shown = next;
  for (const key of Object.keys(scenes)) $(key).hidden = key !== next;
  for (const anchor of document.querySelectorAll("nav a")) {
    if (anchor.dataset.scene === next) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  scenes[next].enter(new URLSearchParams(query)).then(() => (document.body.dataset.ready = next));
}
addEventListener("hashchange", go);
addEventListener("resize", () => scenes[shown]?.repaint?.());
document.addEventListener("visibilitychange", () => !document.hidden && shown === "pool" && scenes.pool.playing && scenes.pool.run());
go();

page.models().then((known) => {
  const runs = Object.values(known).some((entry) => entry.kind === "run");
  document.querySelector('[data-scene="runs"]').hidden = !runs;
});
$("place").textContent = backend.kind === "server"
  ? "The API is described at /api/openapi.json."
  : "Models and solver run inside the browser; there is no server.";

// Drawn when the browser is ready for a frame; the simulation has its own pace.
function draw(now) {
  scenes[shown]?.draw?.(now);
  requestAnimationFrame(draw);
}
requestAnimationFrame(draw);

setInterval(() => page.away && backend.alive().then(() => {
  page.connected();
  if (shown === "pool" && scenes.pool.playing) scenes.pool.run();
}, () => {}), 2000);
globalThis.spectrakan = { scenes, page };
