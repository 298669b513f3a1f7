// A shaded water surface in WebGL: a fixed mesh whose heights move from one state to the next between frames.
// Vertex data: height and slope of the earlier and of the later state, and the attention at both.

import { LEVELS } from "./pace.js";

// Whether WebGL runs on the processor here.
export const SOFT = (() => {
  const gl = document.createElement("canvas").getContext("webgl");
  const known = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = gl && known ? gl.getParameter(known.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
})();
const LIFT = 0.3;
const SCALE = 0.12;

const VERTEX = `
attribute vec3 place;            // x, y in [0,1]; 1 on the surface, 2 at the top and 3 at the foot of a side
attribute vec4 earlier, later;   // height, slope x, slope y, glow
uniform mat4 camera;
uniform float share;
varying vec3 position;
varying vec3 slope;              // slope x, slope y, height
varying float glow;
varying float top, side;
void main() {
  vec4 now = mix(earlier, later, share);
  top = place.z > 2.5 ? 0.0 : 1.0;
  side = place.z > 1.5 ? 1.0 : 0.0;
  position = vec3(place.x - 0.5, place.y - 0.5, top * now.x);
  slope = vec3(now.yz, now.x);
  glow = now.w;
  gl_Position = camera * vec4(position, 1.0);
}`;

const FRAGMENT = `
precision highp float;
varying vec3 position;
varying vec3 slope;
varying float glow;
varying float top, side;
uniform vec3 eye;
uniform vec3 deep, shallow, foam, sky;
uniform vec3 cursor;             // x, y, 1 where it is shown
uniform float lines;             // cells along an axis, 0 for none
uniform float failed;
void main() {
  float level = (slope.z - ${LIFT.toFixed(2)}) / 0.35;
  vec3 water = mix(deep, shallow, clamp(0.45 + 1.1 * level, 0.0, 1.0));
  vec3 colour;
  if (side < 0.5) {
    vec3 normal = normalize(vec3(-slope.xy, 1.0));
    vec3 view = normalize(eye - position);
    vec3 sun = normalize(vec3(-0.45, 0.55, 0.75));
    float facing = max(dot(normal, sun), 0.0);
    float fresnel = 0.04 + 0.5 * pow(1.0 - max(dot(normal, view), 0.0), 4.0);
    float shine = pow(max(dot(reflect(-sun, normal), view), 0.0), 70.0);
    float soft = pow(max(dot(reflect(-sun, normal), view), 0.0), 9.0);
    colour = water * (0.32 + 0.85 * facing);
    colour = mix(colour, foam, smoothstep(0.35, 1.1, level) * 0.75);
    colour = mix(colour, sky, fresnel) + shine * vec3(1.0, 0.97, 0.9) + 0.10 * soft;
    colour = mix(colour, vec3(1.0, 0.66, 0.20), clamp(glow, 0.0, 1.0) * 0.85);
    vec2 away = position.xy + 0.5 - cursor.xy;
    float ring = smoothstep(0.007, 0.0, abs(length(away) - 0.035));
    colour = mix(colour, vec3(1.0), cursor.z * ring);
    if (lines > 0.0) {
      vec2 cell = fract((position.xy + 0.5) * lines);
      float near = min(min(cell.x, 1.0 - cell.x), min(cell.y, 1.0 - cell.y)) / lines;
      colour = mix(colour, sky, 0.16 * smoothstep(0.0016, 0.0, near));
    }
  } else {
    colour = mix(deep * 0.35, water * 0.8, clamp(top, 0.0, 1.0));
    if (abs(position.x) < 0.4995) colour *= 0.8;
  }
  if (failed > 0.5) colour = mix(vec3(dot(colour, vec3(0.3, 0.5, 0.2))), vec3(0.75, 0.1, 0.15), 0.35);
  gl_FragColor = vec4(colour, 1.0);
}`;

const PALETTES = {
  dark: { deep: [0.01, 0.16, 0.27], shallow: [0.05, 0.58, 0.66], foam: [0.93, 0.98, 1.0], sky: [0.45, 0.68, 0.82] },
  light: { deep: [0.02, 0.30, 0.45], shallow: [0.18, 0.72, 0.78], foam: [1, 1, 1], sky: [0.86, 0.94, 0.98] },
};

// The height drawn for a depth: linear for small waves, compressed for drops.
export const drawn = (depth) => LIFT + 0.9 * SCALE * Math.asinh((depth - 1) / SCALE);

export class Surface {
  // `level` of `LEVELS`: how finely it is drawn.
  constructor(canvas, level) {
    this.canvas = canvas;
    this.gl = canvas.getContext("webgl", { antialias: !SOFT, alpha: true });
    this.level = level;
    this.cursor = [0.5, 0.5, 0];
    this.cells = 0;
    this.failed = false;
    this.lines = false;
    if (!this.gl) return;
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => this.prepare());
    this.prepare();
  }

  get works() {
    return Boolean(this.gl);
  }

  prepare() {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.attributes = ["place", "earlier", "later"].map((name) => gl.getAttribLocation(program, name));
    for (const place of this.attributes) gl.enableVertexAttribArray(place);
    this.uniforms = {};
    for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); k++) {
      const { name } = gl.getActiveUniform(program, k);
      this.uniforms[name] = gl.getUniformLocation(program, name);
    }
    gl.enable(gl.DEPTH_TEST);
    this.lay(this.level);
  }

  // The mesh of a level, and the last state on it.
  lay(level) {
    this.level = level;
    if (!this.gl || this.gl.isContextLost()) return;
    const gl = this.gl, n = LEVELS[level].mesh;
    for (const made of [this.places, this.order, ...(this.states ?? [])]) gl.deleteBuffer(made ?? null);
    const side = n + 1, rim = [];
    for (let i = 0; i < side; i++) rim.push([i, 0]);
    for (let i = 1; i < side; i++) rim.push([n, i]);
    for (let i = n - 1; i >= 0; i--) rim.push([i, n]);
    for (let i = n - 1; i >= 0; i--) rim.push([0, i]);
    this.rim = rim;
    const places = [];
    for (let i = 0; i < side; i++) for (let j = 0; j < side; j++) places.push(i / n, j / n, 1);
    for (const floor of [2, 3]) for (const [i, j] of rim) places.push(i / n, j / n, floor);
    const order = [];
    for (let i = 0; i < n; i++)
      for (let j = 0; j < n; j++) {
        const a = i * side + j;
        order.push(a, a + side, a + 1, a + 1, a + side, a + side + 1);
      }
    const first = side * side, count = rim.length;
    for (let k = 0; k + 1 < count; k++) {
      const a = first + k, b = first + count + k;
      order.push(a, b, a + 1, a + 1, b, b + 1);
    }
    this.indices = order.length;
    this.vertices = first + 2 * count;
    const buffer = (kind, values, use) => {
      const made = gl.createBuffer();
      gl.bindBuffer(kind, made);
      gl.bufferData(kind, values, use);
      return made;
    };
    this.places = buffer(gl.ARRAY_BUFFER, new Float32Array(places), gl.STATIC_DRAW);
    this.order = buffer(gl.ELEMENT_ARRAY_BUFFER, new Uint16Array(order), gl.STATIC_DRAW);
    this.states = [0, 1].map(() => buffer(gl.ARRAY_BUFFER, new Float32Array(4 * this.vertices), gl.DYNAMIC_DRAW));
    this.mesh = new Float32Array(4 * this.vertices);
    if (this.given) this.show(...this.given, true);
  }

  // A new later state: depths on cells x cells, and how bright each cell glows (0 to 1, or nothing).
  show(depth, cells, glow, jump = false) {
    this.cells = cells;
    this.given = [depth, cells, glow];
    if (!this.gl || this.gl.isContextLost()) return;
    const gl = this.gl, n = LEVELS[this.level].mesh, side = n + 1, mesh = this.mesh;
    const heights = onVertices(depth, cells, n, drawn), lights = glow ? onVertices(glow, cells, n) : null;
    for (let i = 0; i < side; i++)
      for (let j = 0; j < side; j++) {
        const at = i * side + j;
        const before = heights[Math.max(0, i - 1) * side + j], after = heights[Math.min(n, i + 1) * side + j];
        const left = heights[at - (j > 0 ? 1 : 0)], right = heights[at + (j < n ? 1 : 0)];
        mesh[4 * at] = heights[at];
        mesh[4 * at + 1] = (after - before) * n / 2;
        mesh[4 * at + 2] = (right - left) * n / 2;
        mesh[4 * at + 3] = lights ? lights[at] : 0;
      }
    const first = side * side, count = this.rim.length;
    for (let k = 0; k < 2 * count; k++) {
      const [i, j] = this.rim[k % count];
      mesh[4 * (first + k)] = heights[i * side + j];
    }
    this.states.reverse();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.states[1]);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, mesh);
    if (jump) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.states[0]);
      gl.bufferSubData(gl.ARRAY_BUFFER, 0, mesh);
    }
  }

  draw(share, theme) {
    const gl = this.gl;
    if (!gl || gl.isContextLost() || !this.cells) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 2) * LEVELS[this.level].ratio;
    const width = Math.round(this.canvas.clientWidth * ratio), height = Math.round(this.canvas.clientHeight * ratio);
    if (!width || !height) return;
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    [this.places, ...this.states].forEach((made, k) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, made);
      gl.vertexAttribPointer(this.attributes[k], k ? 4 : 3, gl.FLOAT, false, 0, 0);
    });
    const at = this.uniforms;
    const view = cameraFor(width / height);
    gl.uniformMatrix4fv(at.camera, false, view.matrix);
    gl.uniform3fv(at.eye, view.eye);
    gl.uniform1f(at.share, Math.max(0, Math.min(1, share)));
    gl.uniform3fv(at.cursor, this.cursor);
    gl.uniform1f(at.lines, this.lines ? this.cells : 0);
    gl.uniform1f(at.failed, this.failed ? 1 : 0);
    for (const [name, value] of Object.entries(PALETTES[theme])) gl.uniform3fv(at[name], value);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.order);
    gl.drawElements(gl.TRIANGLES, this.indices, gl.UNSIGNED_SHORT, 0);
  }

  // The place in [0,1]² under a pointer, or null beside the pool.
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = 2 * (event.clientX - box.left) / box.width - 1, y = 1 - 2 * (event.clientY - box.top) / box.height;
    const view = cameraFor(box.width / box.height);
    const ray = view.ray(x, y);
    const along = (LIFT - view.eye[2]) / ray[2];
    const px = view.eye[0] + along * ray[0] + 0.5, py = view.eye[1] + along * ray[1] + 0.5;
    return along > 0 && px >= 0 && px <= 1 && py >= 0 && py <= 1 ? [px, py] : null;
  }
}

// Cells to the vertices between and around them.
function onVertices(values, cells, n, map = (value) => value) {
  const side = n + 1, rows = new Float32Array(cells * side), out = new Float32Array(side * side);
  const lower = new Int32Array(side), weights = new Float32Array(4 * side);
  for (let k = 0; k < side; k++) {
    const x = Math.min(Math.max((k / n) * cells - 0.5, 0), cells - 1);
    const cell = Math.min(Math.floor(x), cells - 2), t = x - cell;
    lower[k] = cell;
    // Catmull-Rom: passes through the cell centres, with continuous slopes.
    weights[4 * k] = t * (-0.5 + t * (1 - 0.5 * t));
    weights[4 * k + 1] = 1 + t * t * (-2.5 + 1.5 * t);
    weights[4 * k + 2] = t * (0.5 + t * (2 - 1.5 * t));
    weights[4 * k + 3] = t * t * (-0.5 + 0.5 * t);
  }
  const clamp = (index) => Math.min(Math.max(index, 0), cells - 1);
  for (let i = 0; i < cells; i++)
    for (let k = 0; k < side; k++) {
      let sum = 0;
      for (let m = 0; m < 4; m++) sum += weights[4 * k + m] * values[i * cells + clamp(lower[k] - 1 + m)];
      rows[i * side + k] = sum;
    }
  for (let k = 0; k < side; k++) {
    const at = [0, 1, 2, 3].map((m) => clamp(lower[k] - 1 + m) * side);
    for (let j = 0; j < side; j++) {
      let sum = 0;
      for (let m = 0; m < 4; m++) sum += weights[4 * k + m] * rows[at[m] + j];
      out[k * side + j] = map(sum);
    }
  }
  return out;
}

function cameraFor(aspect) {
  const target = [0, 0, LIFT * 0.65], angle = 0.74, turn = -0.5;
  const field = 0.42, reach = 3.25 * Math.max(1, 1.5 / aspect);
  const eye = [
    target[0] + reach * Math.cos(angle) * Math.sin(turn),
    target[1] - reach * Math.cos(angle) * Math.cos(turn),
    target[2] + reach * Math.sin(angle),
  ];
  const ahead = unit(minus(target, eye)), right = unit(cross(ahead, [0, 0, 1])), up = cross(right, ahead);
  const f = 1 / Math.tan(field / 2), near = 0.1, end = 20;
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const rows = [
    [right, -dot(right, eye), f / aspect],
    [up, -dot(up, eye), f],
  ];
  const depth = [ahead, -dot(ahead, eye)];
  const matrix = new Float32Array(16);
  for (let c = 0; c < 4; c++) {
    const pick = ([axis, offset]) => (c < 3 ? axis[c] : offset);
    matrix[4 * c] = pick(rows[0]) * rows[0][2];
    matrix[4 * c + 1] = pick(rows[1]) * rows[1][2];
    matrix[4 * c + 2] = pick(depth) * (end + near) / (end - near) - (c === 3 ? 2 * end * near / (end - near) : 0);
    matrix[4 * c + 3] = pick(depth);
  }
  const ray = (x, y) => [0, 1, 2].map((k) => ahead[k] + x * aspect / f * right[k] + y / f * up[k]);
  return { matrix, eye, ray };
}

const minus = (a, b) => a.map((value, k) => value - b[k]);
const unit = (a) => a.map((value) => value / Math.hypot(...a));
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
