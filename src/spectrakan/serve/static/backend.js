// Where numbers come from: the server of `spectrakan serve`, by fetch.

export class LostConnection extends Error {}

async function asked(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new LostConnection("the server does not answer");
  }
  if (!answer.ok) {
    const words = await answer.json().then((found) => found.error, () => answer.statusText);
    throw Object.assign(new Error(words), { status: answer.status });
  }
  return answer;
}

export const kind = "server";

export const models = async () => (await asked("api/v1/models")).json();

export async function compare(model, cells, ...parts) {
  const size = parts.reduce((sum, part) => sum + part.length, 0), body = new Float32Array(size);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  const path = `api/v1/compare?model=${encodeURIComponent(model)}&cells=${cells}`;
  const headers = { "content-type": "application/octet-stream" };
  const answer = await asked(path, { method: "POST", body: body.buffer, headers });
  const numbers = new Float32Array(await answer.arrayBuffer());
  const spent = (name) => Number(new RegExp(`${name};dur=([0-9.]+)`).exec(answer.headers.get("server-timing"))?.[1]);
  return { numbers, times: { solver: spent("solver"), model: spent("model") } };
}

export async function sample(run, index) {
  const answer = await asked(`api/v1/runs/${encodeURIComponent(run)}/samples/${index}`);
  const told = JSON.parse(answer.headers.get("x-shapes")), numbers = new Float32Array(await answer.arrayBuffer());
  const found = { error: told.relative_l2 };
  let at = 0;
  for (const [name, shape] of Object.entries(told.arrays)) {
    const size = shape.reduce((a, b) => a * b, 1);
    found[name] = { shape, values: numbers.subarray(at, at + size) };
    at += size;
  }
  return found;
}

export const inside = async (run) => (await asked(`api/v1/runs/${encodeURIComponent(run)}/inside`)).json();

export const alive = async () => {
  await asked("healthz");
};
