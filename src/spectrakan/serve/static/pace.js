// How finely the water is drawn: coarser while frames come too late, finer again once there is time.

export const LEVELS = [
  { ratio: 1, mesh: 128 },
  { ratio: 0.8, mesh: 96 },
  { ratio: 0.7, mesh: 64 },
  { ratio: 0.6, mesh: 40 },
  { ratio: 0.45, mesh: 32 },
  { ratio: 0.35, mesh: 24 },
  { ratio: 0.25, mesh: 20 },
];
// ratio: pixels drawn for a pixel of the screen; mesh: cells of the drawn surface along an axis

const WINDOW = 800; // milliseconds of drawing from one decision to the next
const PAUSE = 1000; // a longer gap says nothing about drawing
const PATIENCE = [6000, 120_000]; // milliseconds at a level before a finer one is tried, first and at most

export class Pace {
  // On a software renderer states share the processor with the drawing, so late ones make it coarser too, but not
  // as coarse as late frames do: a model on a fine grid is slow for itself.
  constructor(soft) {
    Object.assign(this, { soft, level: soft ? 3 : 0, patience: PATIENCE[0], changed: -Infinity, tried: -Infinity });
    // Milliseconds from frame to frame: 36 a second where the processor draws, else every frame of the screen.
    this.gap = soft ? 28 : 0;
    this.slow = soft ? 31.5 : 36; // a longer mean gap is too long; screens of 30 frames a second are as they are
    this.total = this.count = 0;
    this.rest();
  }

  // Nothing was drawn because nothing moved.
  rest() {
    this.last = NaN;
  }

  // A frame drawn at `now`; `late` says whether states are. True where the level has changed.
  frame(now, late) {
    const gap = now - this.last;
    this.last = now;
    if (!(gap < PAUSE)) return false;
    this.total += gap;
    this.count += 1;
    if (this.total < WINDOW) return false;
    const mean = this.total / this.count, before = this.level;
    this.total = this.count = 0;
    if (mean > this.slow || (late && this.soft && before < 4)) {
      if (now - this.tried < 2 * this.patience) this.patience = Math.min(PATIENCE[1], 2 * this.patience);
      this.level = Math.min(LEVELS.length - 1, before + (mean > 2 * this.slow ? 2 : 1));
    } else if (mean < Math.max(20, this.gap + 2) && !late && now - this.changed > this.patience) {
      this.level = Math.max(0, before - 1);
      this.tried = now;
    }
    if (this.level === before) return false;
    this.changed = now;
    return true;
  }
}
