// What the page is given, and small helpers. Text from the data goes into the page as text only, never as markup.

const report = JSON.parse(document.getElementById("data").textContent);
const arrays = { Uint8Array, Uint16Array, Int32Array };

/** A column of numbers, from its compressed text. */
async function column(packed) {
  const bytes = Uint8Array.from(atob(packed.deflated), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new arrays[packed.type](await new Response(stream).arrayBuffer());
}

async function columns(packed) {
  const names = Object.keys(packed);
  const found = await Promise.all(names.map(name => column(packed[name])));
  return Object.fromEntries(names.map((name, n) => [name, found[n]]));
}

/** An element: `make("p.note", { title: "..." }, "text", other)`. */
function make(what, properties = {}, ...inside) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value);
  }
  element.append(...inside.filter(part => part !== null && part !== undefined && part !== ""));
  return element;
}

const one = selector => document.querySelector(selector);
const grouped = number => Math.round(number).toLocaleString("en-US");
const percent = part => `${(part * 100).toFixed(part > 0 && part < 0.095 ? 1 : 0)}%`;
const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;
const hex = number => `0x${number.toString(16)}`;
const shorter = (text, width) => (text.length > width ? `${text.slice(0, width - 1)}…` : text);

function size(bytes) {
  return bytes < 1024 ? plural(bytes, "byte") : `${(bytes / 1024).toLocaleString("en-US", { maximumFractionDigits: 1 })} KiB`;
}

/** The first index of a sorted column, from `low` up to `high`, whose value is at least (or, `above`, more than) this. */
function search(sorted, value, low, high, above = false) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value || (above && sorted[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Colours of the page's theme, for canvases. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const known = {};
  return name => (known[name] ??= style.getPropertyValue(`--${name}`).trim());
}

/** Fit a canvas to its box and the screen's pixels; returns its context, in units of the page. */
function fitted(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

/** Round steps for a scale: the smallest 1, 2 or 5 times a power of ten with at least so many units. */
function step(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return Math.max(1, [1, 2, 5, 10].map(factor => factor * power).find(value => value >= least));
}

const GUTTER = 118; // pixels of the names at the left of timeline and memory map
const WORK = 0, SPAN = 1, SET = 2, WAIT = 3, BARRIER = 4; // kinds of bars
const READ = 1, WRITE = 2;

/** The stretch of time that timeline and memory map show, in cycles. */
class View {
  constructor(total) {
    this.total = Math.max(total, 1);
    this.listeners = [];
    this.from = 0;
    this.to = this.total;
    this.fit();
  }

  fit() {
    this.show(-this.total * 0.015, this.total * 1.015);
  }

  show(from, to) {
    const length = Math.min(Math.max(to - from, 4), this.total * 1.06);
    const middle = (from + to) / 2;
    const low = -length * 0.08, high = this.total + length * 0.08;
    this.from = Math.max(low, Math.min(middle - length / 2, high - length));
    this.to = this.from + length;
    for (const listener of this.listeners) listener();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share) {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }
}
