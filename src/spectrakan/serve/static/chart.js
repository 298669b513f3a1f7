// Small line charts and heat maps on plain canvases, in the colours of the page.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function fitted(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const paper = canvas.getContext("2d");
  paper.setTransform(ratio, 0, 0, ratio, 0, 0);
  paper.clearRect(0, 0, width, height);
  return { paper, width, height };
}

export const short = (value) => {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size && (size < 0.001 || size >= 1e5)) return value.toExponential(1).replace("e-", "e−").replace("e+", "e");
  return String(Number(value.toPrecision(3)));
};

// lines: [{points: [[x, y], ...], colour, dash, width}], areas: [{points: [[x, low, high], ...], colour}]
export function chart(canvas, { lines, areas = [], x, y, xLabel = "", format = short, marks = [] }) {
  const { paper, width, height } = fitted(canvas);
  if (!width) return;
  const left = 56, right = 8, top = 8, bottom = xLabel ? 30 : 18;
  const px = (value) => left + (value - x[0]) / (x[1] - x[0] || 1) * (width - left - right);
  const py = (value) => height - bottom - (value - y[0]) / (y[1] - y[0] || 1) * (height - top - bottom);
  paper.font = "11px system-ui, sans-serif";
  paper.fillStyle = css("--quiet");
  paper.strokeStyle = css("--line");
  paper.lineWidth = 1;
  paper.textAlign = "right";
  paper.textBaseline = "middle";
  for (const share of [0, 0.5, 1]) {
    const value = y[0] + share * (y[1] - y[0]);
    paper.beginPath();
    paper.moveTo(left, Math.round(py(value)) + 0.5);
    paper.lineTo(width - right, Math.round(py(value)) + 0.5);
    paper.stroke();
    paper.fillText(format(value), left - 6, py(value));
  }
  paper.textBaseline = "top";
  for (const share of [0, 1]) {
    const value = x[0] + share * (x[1] - x[0]);
    paper.textAlign = share ? "right" : "left";
    paper.fillText(short(value), px(value), height - bottom + 4);
  }
  paper.textAlign = "center";
  if (xLabel) paper.fillText(xLabel, left + (width - left - right) / 2, height - bottom + 4);
  paper.save();
  paper.beginPath();
  paper.rect(left, top - 4, width - left - right, height - top - bottom + 8);
  paper.clip();
  for (const mark of marks) {
    paper.strokeStyle = css("--line");
    paper.beginPath();
    paper.moveTo(px(mark), top);
    paper.lineTo(px(mark), height - bottom);
    paper.stroke();
  }
  for (const { points, colour } of areas) {
    if (points.length < 2) continue;
    paper.fillStyle = css(colour);
    paper.beginPath();
    points.forEach(([at, , high], k) => paper[k ? "lineTo" : "moveTo"](px(at), py(high)));
    [...points].reverse().forEach(([at, low]) => paper.lineTo(px(at), py(low)));
    paper.fill();
  }
  for (const { points, colour, dash = [], width: thick = 2 } of lines) {
    paper.strokeStyle = css(colour);
    paper.lineWidth = thick;
    paper.lineJoin = "round";
    paper.setLineDash(dash);
    paper.beginPath();
    points.forEach(([at, value], k) => paper[k ? "lineTo" : "moveTo"](px(at), py(value)));
    paper.stroke();
  }
  paper.restore();
  return { px, py, left, right, top, bottom, width, height };
}

const STOPS = {
  heat: [[4, 8, 20], [62, 20, 90], [150, 36, 100], [226, 84, 66], [250, 160, 50], [252, 240, 170]],
  sea: [[8, 22, 52], [18, 70, 110], [32, 128, 150], [70, 184, 170], [160, 222, 180], [246, 250, 214]],
  rock: [[96, 74, 58], [216, 190, 150]],
};

export function tint(name, share) {
  const stops = STOPS[name], place = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2), t = place - low;
  return stops[low].map((value, k) => value + t * (stops[low + 1][k] - value));
}

// values on rows x columns as pixels; the first axis runs to the right and the second upwards.
export function heatMap(canvas, values, nx, ny, low, high, name = "heat") {
  if (canvas.width !== nx || canvas.height !== ny) {
    canvas.width = nx;
    canvas.height = ny;
  }
  const paper = canvas.getContext("2d"), image = paper.createImageData(nx, ny);
  for (let i = 0; i < nx; i++)
    for (let j = 0; j < ny; j++) {
      const at = 4 * ((ny - 1 - j) * nx + i), value = values[i * ny + j];
      const colour = Number.isFinite(value) ? tint(name, (value - low) / (high - low || 1)) : [120, 120, 120];
      image.data.set([...colour, 255], at);
    }
  paper.putImageData(image, 0, 0);
}

export function gradient(name) {
  const colours = STOPS[name].map((stop) => `rgb(${stop.map(Math.round).join(" ")})`);
  return `linear-gradient(90deg, ${colours.join(", ")})`;
}
