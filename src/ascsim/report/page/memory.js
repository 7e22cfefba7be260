// The memory map: what lies at which addresses, from when to when, on one core.

class MemoryMap {
  constructor(data, lives, view, root) {
    Object.assign(this, { data, lives, view });
    this.canvas = root.querySelector("canvas");
    this.frame = root.querySelector(".map");
    this.space = data.spaces[0]?.name;
    this.core = 0;
    this.region = -1;
    this.chosen = new Set();
    this.height = 340;
  }

  get limits() {
    const space = this.data.spaces.find(one => one.name === this.space);
    return { ...space, top: this.whole ? space.capacity : space.highest };
  }

  x(time) {
    return GUTTER + ((time - this.view.from) / (this.view.to - this.view.from)) * (this.width - GUTTER - 8);
  }

  y(address) {
    return 8 + (address / this.limits.top) * (this.height - 16);
  }

  colour(region, lightness) {
    const dark = document.documentElement.dataset.theme === "dark";
    return `hsl(${(region * 137.5 + 205) % 360} ${dark ? 38 : 52}% ${dark ? lightness - 38 : lightness}%)`;
  }

  /** The lives of the chosen core and space that are in view. */
  *visible() {
    const { lives, data, view } = this;
    const first = search(lives.core, this.core, 0, lives.core.length);
    for (let n = first; n < lives.core.length && lives.core[n] === this.core; n++) {
      if (data.regions[lives.region[n]].space !== this.space) continue;
      if (lives.end[n] >= view.from && lives.begin[n] <= view.to) yield n;
    }
  }

  draw() {
    this.width = this.frame.clientWidth;
    const context = fitted(this.canvas, this.width, this.height), paint = palette();
    context.fillStyle = paint("ground");
    context.fillRect(0, 0, this.width, this.height);
    if (!this.space) return;
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, this.width - GUTTER, this.height);
    context.clip();
    const boxes = [], tiny = new Map();
    for (const n of this.visible()) {
      const region = this.lives.region[n], { low, high } = this.data.regions[region];
      const left = Math.max(this.x(this.lives.begin[n]), GUTTER - 3), right = Math.min(this.x(this.lives.end[n]), this.width + 3);
      if (right - left < 1.5) { // one rectangle a pixel is enough
        if (tiny.get(region) === (left | 0)) continue;
        tiny.set(region, left | 0);
      }
      boxes.push({ n, region, left, right: Math.max(right, left + 1), top: this.y(low), bottom: Math.max(this.y(high), this.y(low) + 2) });
    }
    boxes.sort((a, b) => b.bottom - b.top - (a.bottom - a.top)); // what lies inside others comes last
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const box of boxes) {
      context.fillStyle = this.colour(box.region, 78);
      context.fillRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
      if (box.right - box.left > 3) {
        context.strokeStyle = this.colour(box.region, 48);
        context.lineWidth = this.chosen.has(box.region) ? 2.5 : 1;
        if (this.chosen.has(box.region)) context.strokeStyle = paint("accent");
        context.strokeRect(box.left + 0.5, box.top + 0.5, box.right - box.left - 1, box.bottom - box.top - 1);
      }
    }
    const taken = [];
    for (const box of boxes.reverse()) {
      const { name, text, low, high } = this.data.regions[box.region];
      const from = Math.max(box.left, GUTTER) + 5, room = box.right - from - 4;
      if (room < 24 || box.bottom - box.top < 13) continue;
      const label = shorter(name ? `${name}  ${size(high - low)}` : text, Math.floor(room / 6.5));
      const width = context.measureText(label).width, y = box.top + Math.min((box.bottom - box.top) / 2, 14);
      if (width > room + 2 || taken.some(t => Math.abs(t.y - y) < 13 && t.to > from && t.from < from + width)) continue;
      taken.push({ y, from, to: from + width });
      context.fillStyle = paint("text");
      context.fillText(label, from, y);
    }
    this.overlaps(context, paint);
    this.peak(context, paint);
    context.restore();
    this.scale(context, paint);
    this.boxes = boxes;
  }

  overlaps(context, paint) {
    context.strokeStyle = paint("error");
    for (const { a, core, begin, end, low, high } of this.data.overlaps) {
      if (core !== this.core || this.data.regions[a].space !== this.space || end < this.view.from || begin > this.view.to) continue;
      const left = this.x(begin), width = Math.max(this.x(end) - left, 2), top = this.y(low), height = Math.max(this.y(high) - top, 2);
      context.save();
      context.beginPath();
      context.rect(left, top, width, height);
      context.clip();
      context.lineWidth = 1;
      for (let x = left - height; x < left + width; x += 6) {
        context.beginPath();
        context.moveTo(x, top + height);
        context.lineTo(x + height, top);
        context.stroke();
      }
      context.restore();
      context.lineWidth = 2;
      context.strokeRect(left, top, width, height);
    }
  }

  peak(context, paint) {
    const { peak } = this.limits;
    const x = Math.round(this.x(peak.at)) + 0.5;
    if (!peak.bytes || peak.core !== this.core || x < GUTTER || x > this.width) return;
    context.strokeStyle = context.fillStyle = paint("path");
    context.lineWidth = 1.5;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, this.height);
    context.stroke();
    context.setLineDash([]);
    const text = `peak ${size(peak.bytes)}`, width = context.measureText(text).width + 8, left = x + width + 4 > this.width ? x - width - 4 : x + 4;
    context.globalAlpha = 0.9;
    context.fillStyle = paint("ground");
    context.fillRect(left, this.height - 20, width, 16);
    context.globalAlpha = 1;
    context.fillStyle = paint("path");
    context.fillText(text, left + 4, this.height - 12);
  }

  /** Addresses at the left. */
  scale(context, paint) {
    const { top } = this.limits;
    context.fillStyle = paint("raised");
    context.fillRect(0, 0, GUTTER, this.height);
    context.fillStyle = paint("line");
    context.fillRect(GUTTER - 1, 0, 1, this.height);
    let each = 32;
    while ((each / top) * (this.height - 16) < 26) each *= 2;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.font = "11.5px ui-monospace, monospace";
    for (let at = 0; at <= top; at += each) {
      const y = this.y(at);
      context.fillStyle = paint("line");
      context.fillRect(GUTTER - 6, y, 5, 1);
      context.fillStyle = paint("dim");
      context.fillText(hex(at), GUTTER - 10, Math.min(Math.max(y, 7), this.height - 7));
    }
    context.textAlign = "left";
  }

  /** The life under a point: the box, the smallest first. */
  at(x, y) {
    return x < GUTTER ? undefined : this.boxes?.find(box => x >= box.left - 1 && x <= box.right + 1 && y >= box.top && y <= box.bottom);
  }
}
