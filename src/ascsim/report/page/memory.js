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
    this.group();
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

  /** The runs of lives, one a core and region, the largest regions first: smaller ones lie on top. */
  group() {
    const { lives, data } = this, extent = group => data.regions[group.region].high - data.regions[group.region].low;
    this.groups = [];
    this.reach = new Int32Array(lives.begin.length); // the latest end of a group's lives up to each one
    for (let n = 0; n < lives.begin.length; n++) {
      let group = this.groups.at(-1);
      if (group?.core !== lives.core[n] || group.region !== lives.region[n]) this.groups.push((group = { core: lives.core[n], region: lives.region[n], first: n }));
      this.reach[n] = Math.max(n > group.first ? this.reach[n - 1] : 0, lives.end[n]);
      group.last = n + 1;
    }
    this.groups.sort((a, b) => extent(b) - extent(a));
  }

  /** What is drawn of a group: lives that nobody could tell apart are one box. */
  boxesOf({ region, first, last }) {
    const { lives, view } = this, { low, high } = this.data.regions[region];
    const scale = (this.width - GUTTER - 8) / (view.to - view.from), origin = GUTTER - view.from * scale;
    const top = this.y(low), bottom = Math.max(this.y(high), top + 2), boxes = [];
    let box = null;
    for (let n = search(this.reach, view.from, first, last); n < last && lives.begin[n] <= view.to; n++) {
      const left = Math.max(origin + lives.begin[n] * scale, GUTTER - 3);
      const right = Math.max(Math.min(origin + lives.end[n] * scale, this.width + 3), left + 1);
      if (box && (left - box.right < 0.75 || right - box.left < 3)) {
        box.right = Math.max(box.right, right);
        box.many++;
      } else boxes.push((box = { n, region, left, right, top, bottom, many: 1 }));
    }
    return boxes;
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
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const boxes = [];
    for (const group of this.groups) {
      if (group.core !== this.core || this.data.regions[group.region].space !== this.space) continue;
      const isChosen = this.chosen.has(group.region);
      context.fillStyle = this.colour(group.region, 78);
      context.strokeStyle = isChosen ? paint("accent") : this.colour(group.region, 48);
      context.lineWidth = isChosen ? 2.5 : 1;
      for (const box of this.boxesOf(group)) {
        const width = box.right - box.left, height = box.bottom - box.top;
        context.fillRect(box.left, box.top, width, height);
        if (width > 3 && height > 3) context.strokeRect(box.left + 0.5, box.top + 0.5, width - 1, height - 1);
        boxes.push(box);
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
