// The timeline: a line a pipe, a bar an instruction, arrows from flags that are set to those that wait for them.

const RULER = 24, TALL = 22, LOW = 11, HEADING = 20, GAP = 3, TALLEST = 520, ARROWS = 250;

class Timeline {
  constructor(data, table, view, root, hooks) {
    Object.assign(this, { data, table, view, hooks });
    this.scroller = root.querySelector(".scroller");
    this.canvas = root.querySelector("canvas");
    this.spacer = root.querySelector(".spacer");
    this.end = Int32Array.from(table.start, (start, n) => start + table.length[n]);
    this.lineOf = new Int32Array(table.start.length);
    this.reach = new Int32Array(table.start.length); // the latest end of the bars up to each one of its line
    data.lines.forEach((line, number) => {
      for (let n = line.first, most = 0; n < line.last; n++) {
        most = Math.max(most, this.end[n]);
        this.reach[n] = most;
        this.lineOf[n] = number;
      }
    });
    this.sets = Array.from(table.kind.keys()).filter(n => table.kind[n] === SET && table.partner[n] >= 0);
    this.chosen = [];
    this.marks = [];
    this.only = null;
    this.lay();
  }

  /** Where each line is drawn. */
  lay() {
    const { lines, cores, tracks } = this.data;
    let y = RULER, core = -1;
    this.places = lines.map(() => null);
    this.headings = [];
    this.labels = [];
    lines.forEach((line, number) => {
      if (this.only && !this.only.has(line.core)) return;
      if (line.core !== core) {
        core = line.core;
        if (cores.length > 1) {
          this.headings.push({ y, text: cores[core].name });
          y += HEADING;
        } else y += GAP;
      }
      const before = lines[number - 1];
      const continues = line.level === 1 && before && before.track === line.track && before.core === line.core;
      const height = line.level ? LOW : TALL;
      this.places[number] = { y, height };
      if (!continues) this.labels.push({ y, height, text: tracks[line.track] });
      const next = lines[number + 1];
      const goesOn = next && next.level === 1 && next.track === line.track && next.core === line.core;
      y += height + (goesOn ? 0 : GAP);
    });
    this.content = y + 6;
    this.height = Math.min(this.content, this.isPrinted ? TALLEST / 2 : TALLEST);
    this.scroller.style.height = `${this.height + 2}px`;
    this.spacer.style.height = `${this.content - this.height}px`;
  }

  x(time) {
    return GUTTER + ((time - this.view.from) / (this.view.to - this.view.from)) * (this.width - GUTTER - 8);
  }

  time(x) {
    return this.view.from + ((x - GUTTER) / (this.width - GUTTER - 8)) * (this.view.to - this.view.from);
  }

  colour(bar) {
    const name = this.data.tracks[this.data.lines[this.lineOf[bar]].track];
    return this.paint(name) || this.paint("S");
  }

  draw() {
    this.width = this.scroller.clientWidth;
    const context = (this.context = fitted(this.canvas, this.width, this.height));
    this.paint = palette();
    const top = this.scroller.scrollTop;
    context.fillStyle = this.paint("ground");
    context.fillRect(0, 0, this.width, this.height);
    context.textBaseline = "middle";
    this.grid();
    context.save();
    context.beginPath();
    context.rect(GUTTER, RULER, this.width - GUTTER, this.height - RULER);
    context.clip();
    context.translate(0, -top);
    this.data.lines.forEach((line, number) => {
      const place = this.places[number];
      if (place && place.y + place.height > top && place.y < top + this.height) this.bars(line, place);
    });
    this.hidden = this.showArrows ? this.arrows() : 0;
    this.flagged();
    this.selected();
    context.restore();
    this.names(top);
  }

  /** Vertical lines, and the ruler above. */
  grid() {
    const { context, view } = this;
    const each = step(((view.to - view.from) / (this.width - GUTTER)) * 90);
    context.font = "11.5px system-ui, sans-serif";
    context.textAlign = "center";
    for (let at = Math.max(0, Math.ceil(view.from / each) * each); at <= view.to; at += each) {
      const x = Math.round(this.x(at)) + 0.5;
      context.fillStyle = this.paint("line");
      context.globalAlpha = 0.6;
      context.fillRect(x - 0.5, RULER - 4, 1, this.height);
      context.globalAlpha = 1;
      context.fillStyle = this.paint("dim");
      const text = grouped(at), half = context.measureText(text).width / 2;
      if (x - half > GUTTER - 4 && x + half < this.width - 2) context.fillText(text, x, 11);
    }
    if (this.data.launches.length > 1) {
      context.fillStyle = this.paint("accent");
      for (const launch of this.data.launches) context.fillRect(Math.round(this.x(launch.begin)), 0, 1, this.height);
    }
  }

  bars(line, { y, height }) {
    const { context, view, table, end } = this;
    const scale = (this.width - GUTTER - 8) / (view.to - view.from);
    const left = GUTTER - view.from * scale;
    const crowd = new Float32Array(Math.ceil(this.width) + 5); // how much of each pixel narrow bars fill
    const labels = [], stripes = [];
    let isCrowded = false;
    this.waits(line, y, height, scale, left);
    context.fillStyle = this.paint(this.data.tracks[line.track]) || this.paint("S");
    for (let n = search(this.reach, view.from, line.first, line.last); n < line.last && table.start[n] <= view.to; n++) {
      const kind = table.kind[n];
      if (kind >= SET) continue;
      const a = Math.max(left + table.start[n] * scale, GUTTER - 10), c = Math.min(left + end[n] * scale, this.width + 10);
      if (c < GUTTER) continue;
      const isOnPath = this.showPath && table.onPath[n] > 0;
      if (c - a < 3) {
        if (a < GUTTER || a >= this.width) continue;
        isCrowded = true;
        if (c - a < 0.25) crowd[a | 0] += 0.25;
        else for (let x = a | 0; x < c; x++) crowd[x] += Math.min(c, x + 1) - Math.max(a, x);
        if (isOnPath && (!stripes.length || c - stripes.at(-1) > 1)) stripes.push(a, c);
        else if (isOnPath) stripes[stripes.length - 1] = c;
        continue;
      }
      const b = Math.min(Math.max(left + (table.start[n] + table.busy[n]) * scale, a + 1), c);
      const inset = c - a > 4 ? 0.5 : 0;
      context.globalAlpha = kind === SPAN ? 0.78 : 1;
      context.fillRect(a + inset, y + 1, b - a - inset, height - 2);
      context.globalAlpha = 0.4;
      if (c > b) context.fillRect(b, y + 1, c - b - inset, height - 2);
      if (isOnPath) stripes.push(a + inset, c - inset);
      if (height >= TALL && c - a > 26) {
        const before = labels.length - 4; // a bar that begins in the tail of another takes the room of its label
        if (before >= 0 && labels[before + 2] > a) labels[before + 2] = a;
        labels.push(n, a, c, b);
      }
    }
    if (isCrowded) {
      for (let x = GUTTER; x < this.width; x++) {
        if (!crowd[x]) continue;
        context.globalAlpha = Math.min(0.2 + 0.8 * crowd[x], 1);
        context.fillRect(x, y + 1, 1, height - 2);
      }
    }
    context.globalAlpha = 1;
    context.fillStyle = this.paint("path");
    for (let n = 0; n < stripes.length; n += 2) context.fillRect(stripes[n], y + height - 4, Math.max(stripes[n + 1] - stripes[n], 0.5), 3);
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "left";
    for (let n = 0; n < labels.length; n += 4) {
      const from = Math.max(labels[n + 1], GUTTER) + 4, room = labels[n + 2] - from - 3;
      const text = this.table.words[labels[n]], whole = this.measured(text);
      const letters = whole <= room ? text.length : Math.floor((room / whole) * text.length);
      context.fillStyle = this.paint(from + 8 < labels[n + 3] ? "onbar" : "text"); // the tail is pale
      if (letters >= Math.min(text.length, 5)) context.fillText(shorter(text, letters), from, y + height / 2);
    }
  }

  measured(text) {
    this.widths ??= new Map();
    if (!this.widths.has(text)) this.widths.set(text, this.context.measureText(text).width);
    return this.widths.get(text);
  }

  /** Flags and barriers of a line: where its pipe stood still a hollow bar, else a tick. */
  waits(line, y, height, scale, left) {
    const { context, view, table, end } = this;
    const first = search(this.reach, view.from, line.first, line.last);
    const isCrowded = (search(table.start, view.to, first, line.last) - first) * 5 > this.width; // ticks would hide the work
    let last = -9;
    context.fillStyle = context.strokeStyle = this.paint("wait");
    context.lineWidth = 1;
    for (let n = first; n < line.last && table.start[n] <= view.to; n++) {
      const kind = table.kind[n];
      if (kind < SET) continue;
      const a = left + (kind === SET ? end[n] : table.start[n]) * scale, c = left + end[n] * scale;
      if (kind !== SET && c - a > 3) {
        const from = Math.max(a, GUTTER - 5), to = Math.min(c, this.width + 5);
        context.globalAlpha = 0.18;
        context.fillRect(from, y + 3, to - from, height - 6);
        context.globalAlpha = 1;
        context.setLineDash([3, 2]);
        context.strokeRect(from + 0.5, y + 3.5, to - from - 1, height - 7);
        context.setLineDash([]);
      }
      if (isCrowded || c - last < 1) continue;
      context.fillRect(c - 1, y + 1, 2, height - 2);
      last = c;
    }
  }

  /** Arrows from sets to their waits; returns how many are left out because there are too many. */
  arrows() {
    const { table, end, view } = this;
    const isShown = n => this.places[this.lineOf[n]] && this.places[this.lineOf[table.partner[n]]];
    let inside = this.sets.filter(n => isShown(n) && end[table.partner[n]] >= view.from && end[n] <= view.to);
    const top = this.scroller.scrollTop;
    inside = inside.filter(n => {
      const y = this.places[this.lineOf[n]].y;
      return y > top - 150 && y < top + this.height + 150;
    });
    if (inside.length > ARROWS) return inside.length;
    for (const n of inside) this.arrow(n);
    return 0;
  }

  arrow(set, isStrong = false) {
    const { context, table, end } = this;
    const wait = table.partner[set];
    const from = this.places[this.lineOf[set]], to = this.places[this.lineOf[wait]];
    if (!from || !to) return;
    const cost = table.length[wait] > 1;
    const down = to.y > from.y;
    const x0 = this.x(end[set]), y0 = from.y + (down ? from.height - 1 : 1);
    const x1 = this.x(end[wait]), y1 = to.y + (down ? 1 : to.height - 1);
    context.strokeStyle = context.fillStyle = this.paint(isStrong ? "accent" : cost ? "text" : "wait");
    context.lineWidth = isStrong ? 2.5 : 1.3;
    context.globalAlpha = cost || isStrong ? 1 : 0.75;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1 - (down ? 5 : -5));
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 4, y1 - (down ? 7 : -7));
    context.lineTo(x1 + 4, y1 - (down ? 7 : -7));
    context.fill();
    context.beginPath();
    context.arc(x0, y0, 2.2, 0, 7);
    context.fill();
    context.globalAlpha = 1;
  }

  /** Small marks over bars that findings speak of. */
  flagged() {
    const { context } = this;
    for (const { bar, severity } of this.marks) {
      const place = this.places[this.lineOf[bar]];
      if (!place) continue;
      const x = Math.max(this.x(this.table.start[bar]), GUTTER + 4);
      if (x > this.width || this.end[bar] < this.view.from) continue;
      context.fillStyle = this.paint(severity);
      context.beginPath();
      context.moveTo(x - 4, place.y - 3);
      context.lineTo(x + 6, place.y - 3);
      context.lineTo(x + 1, place.y + 6);
      context.fill();
    }
  }

  /** What is selected: outlines; of a finding numbers, and a line between its instructions. */
  selected() {
    const { context } = this;
    const colour = this.paint(this.severity || "accent");
    const points = [];
    this.chosen.forEach((bar, number) => {
      const box = this.box(bar);
      if (!box) return;
      context.strokeStyle = colour;
      context.lineWidth = 2.5;
      context.strokeRect(box.left - 1, box.top - 1, box.right - box.left + 2, box.height + 2);
      const x = box.left - 12 > GUTTER + 9 ? box.left - 12 : box.right + 12 < this.width - 9 ? box.right + 12 : Math.max(box.left, GUTTER) + 12;
      points.push({ x, y: box.top + box.height / 2, number: number + 1 });
      for (const set of [bar, this.table.partner[bar]]) if (set >= 0 && this.table.kind[set] === SET && this.table.partner[set] >= 0) this.arrow(set, true);
    });
    if (!this.severity) return;
    context.setLineDash([5, 4]);
    context.lineWidth = 2;
    context.beginPath();
    points.forEach(({ x, y }, n) => (n ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
    context.setLineDash([]);
    context.font = "bold 11px system-ui, sans-serif";
    context.textAlign = "center";
    for (const { x, y, number } of points) {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(x, y, 9, 0, 7);
      context.fill();
      context.fillStyle = this.paint("ground");
      context.fillText(String(number), x, y + 0.5);
    }
  }

  /** Where a bar lies (in the scrolled content), or null. */
  box(bar) {
    const place = this.places[this.lineOf[bar]];
    if (!place) return null;
    const left = this.table.kind[bar] === SET ? this.x(this.end[bar]) - 2 : this.x(this.table.start[bar]);
    return { left, right: Math.max(this.x(this.end[bar]), left + 3), top: place.y, height: place.height };
  }

  /** The names at the left. */
  names(top) {
    const { context } = this;
    context.fillStyle = this.paint("raised");
    context.fillRect(0, 0, GUTTER, this.height);
    context.save();
    context.beginPath();
    context.rect(0, RULER, this.width, this.height - RULER);
    context.clip();
    context.textAlign = "left";
    for (const { y, text } of this.headings) {
      context.fillStyle = this.paint("raised");
      context.fillRect(0, y - top, this.width, HEADING - 3);
      context.fillStyle = this.paint("text");
      context.font = "600 12px system-ui, sans-serif";
      context.fillText(text, 8, y - top + HEADING / 2 - 1);
    }
    context.font = "12px system-ui, sans-serif";
    for (const { y, height, text } of this.labels) {
      context.fillStyle = this.paint(text) || this.paint("S");
      context.fillRect(8, y - top + height / 2 - 4, 8, 8);
      context.fillStyle = this.paint("text");
      context.fillText(TRACK_TITLES[text] || text, 22, y - top + height / 2);
    }
    context.restore();
    context.fillStyle = this.paint("dim");
    context.font = "11.5px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText("cycles", 8, 11);
    context.fillStyle = this.paint("line");
    context.fillRect(GUTTER - 1, 0, 1, this.height);
    context.fillRect(0, RULER - 1, this.width, 1);
  }

  /** The bar under a point of the canvas, or -1. */
  at(x, y) {
    if (x < GUTTER || y < RULER) return -1;
    const inside = y + this.scroller.scrollTop, time = this.time(x), slack = Math.abs(this.time(x + 3) - time);
    const number = this.places.findIndex(place => place && inside >= place.y && inside < place.y + place.height);
    if (number < 0) return -1;
    const line = this.data.lines[number];
    let best = -1, smallest = Infinity;
    for (let n = search(this.table.start, time + slack, line.first, line.last, true) - 1, looked = 0; n >= line.first && looked < 400; n--, looked++) {
      if (this.reach[n] < time - slack) break;
      const from = this.table.kind[n] === SET ? this.end[n] : this.table.start[n];
      if (from > time + slack || this.end[n] < time - slack) continue;
      const length = this.end[n] - from;
      if (length < smallest) [best, smallest] = [n, length];
    }
    return best;
  }

  /** Select bars; with a severity they are the places of a finding. */
  choose(bars, severity = "") {
    this.chosen = bars;
    this.severity = severity;
  }

  /** Bring bars into view: their time, their cores, their lines. */
  reveal(bars, alone = false) {
    if (!bars.length) return;
    if (alone && this.data.cores.length > 1) {
      this.only = new Set(bars.map(bar => this.data.lines[this.lineOf[bar]].core));
      this.lay();
    } else if (bars.some(bar => !this.places[this.lineOf[bar]])) {
      this.only = null;
      this.lay();
    }
    const from = Math.min(...bars.map(bar => this.table.start[bar])), to = Math.max(...bars.map(bar => this.end[bar]));
    const margin = Math.max((to - from) * 0.25, 6);
    const places = bars.map(bar => this.places[this.lineOf[bar]]);
    const high = Math.min(...places.map(place => place.y)), low = Math.max(...places.map(place => place.y + place.height));
    const top = this.scroller.scrollTop;
    if (high < top + RULER || low > top + this.height) this.scroller.scrollTop = Math.max(0, (high + low - this.height) / 2);
    this.view.show(from - margin, to + margin);
  }

  /** The bar next to one: on its line (`by` 1 or -1), or on the line below or above at about its time. */
  beside(bar, by, isLine) {
    const number = this.lineOf[bar];
    if (!isLine) {
      const { first, last } = this.data.lines[number];
      return Math.min(Math.max(bar + by, first), last - 1);
    }
    for (let other = number + by; other >= 0 && other < this.data.lines.length; other += by) {
      if (!this.places[other]) continue;
      const { first, last } = this.data.lines[other];
      return Math.min(search(this.table.start, this.table.start[bar], first, last), last - 1);
    }
    return bar;
  }
}

const TRACK_TITLES = { load: "  VF load", execute: "  VF execute", store: "  VF store", ALL: "all pipes" };
