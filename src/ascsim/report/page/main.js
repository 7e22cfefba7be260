// Putting it together: one run at a time, what is selected, keys, theme, print.

const LEGEND = [
  ["solid", "at work"], ["tail", "the rest of its latency, which the next may overlap"], ["wait", "a flag or barrier that holds the pipe"],
  ["path", "on the critical path"],
];

class Page {
  async show(run) {
    this.run = run;
    this.focus = null;
    this.panes = new Panes(run, {
      finding: number => this.finding(number), line: line => this.line(line), bar: bar => this.select([bar], "", true),
    });
    this.timeline = this.memory = null;
    for (const id of ["timeline", "memory"]) {
      const section = one(`#${id}`);
      section.querySelector(".empty")?.remove();
      for (const part of section.children) part.hidden = !run.time && part.tagName !== "H2";
      if (!run.time) section.append(make("p.empty", {}, "The portable profile is no chip: its instructions take no time. Run on a chip to see this."));
    }
    if (run.time) await this.pictures(run);
    this.panes.draw();
    this.details(-1);
    chooseLife(null);
    this.draw();
  }

  async pictures(run) {
    const [table, lives, touches] = await Promise.all([columns(run.timeline.columns), columns(run.memory.lives), columns(run.memory.touches)]);
    table.words = Array.from(table.name, number => run.timeline.names[number]);
    this.table = table;
    this.touches = touches;
    this.view = new View(run.timeline.total);
    this.timeline = new Timeline(run.timeline, table, this.view, one("#timeline"));
    this.timeline.marks = run.findings.flatMap(finding => finding.places.filter(place => place.bar >= 0).map(place => ({ bar: place.bar, severity: finding.severity })));
    this.timeline.showArrows = one("#arrows").checked;
    this.timeline.showPath = one("#path").checked;
    this.memory = new MemoryMap(run.memory, lives, this.view, one("#memory"));
    this.memory.whole = one("#whole").checked;
    this.view.listeners.push(() => this.draw());
    one("#all-cores").hidden = true;
    const spaces = run.memory.spaces;
    one("#memory").querySelector(".map").hidden = !spaces.length;
    one("#space").replaceChildren(...spaces.map(space => make("option", {}, space.name)));
    one("#space-choice").hidden = spaces.length < 2;
    one("#core").replaceChildren(...run.timeline.cores.map((core, n) => make("option", { value: n }, core.name)));
    one("#core-choice").hidden = run.timeline.cores.length < 2;
    if (spaces.length) this.lookAt(spaces[0].peak.core);
    one("#timeline .legend").replaceChildren(...LEGEND.map(([look, text]) => make("span", {}, make("i", { style: looks[look] }), text)),
      make("span", {}, "arrow: set_flag to its wait_flag, dark where the pipe stood still for it"),
      ...(run.timeline.lines.some(line => line.level) ? [make("span", {}, "thin line: the steps of what is above it")] : []), ...(run.findings.length ? [make("span", {}, "▼ a finding")] : []));
  }

  lookAt(core) {
    if (!this.memory) return;
    this.memory.core = core;
    one("#core").value = core;
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    if (!this.timeline) return;
    this.timeline.draw();
    this.memory.draw();
    const { view, timeline, run } = this;
    const from = Math.max(0, view.from), to = Math.min(view.total, view.to);
    const notes = [`cycles ${grouped(from)} to ${grouped(to)} of ${grouped(view.total)}, ${((to - from) / run.timeline.mhz).toFixed(3)} µs`];
    if (timeline.hidden) notes.push(`${grouped(timeline.hidden)} flags: zoom in for their arrows`);
    if (run.timeline.leftOut) notes.push(`the last ${grouped(run.timeline.leftOut)} entries are left out`);
    one("#window").textContent = notes.join(" · ");
    one("#all-cores").hidden = !timeline.only;
    this.usage();
  }

  usage() {
    const limits = this.memory.space ? this.memory.limits : null;
    if (!limits) {
      one("#usage").replaceChildren(make("span.dim", {}, "No on-chip memory was touched."));
      return;
    }
    const { peak, capacity, highest, name } = limits, share = peak.bytes / capacity;
    const overlaps = this.run.memory.overlaps.filter(overlap => this.run.memory.regions[overlap.a].space === name);
    one("#usage").replaceChildren(
      `${name}: at most ${size(peak.bytes)} of ${size(capacity)} live at once`, make(`span.meter${share > 1 ? ".over" : ""}`, {}, make("i", { style: { width: `${Math.min(share, 1) * 100}%` } })),
      make("span.dim", {}, `${percent(share)}, used up to ${hex(highest)}`), overlaps.length ? make("button.alarm", { type: "button", onclick: () => this.overlap(overlaps[0]) }, `${plural(overlaps.length, "overlap")} while live`) : "");
  }

  /** Look at an overlap. */
  overlap({ a, b, core, begin, end }) {
    this.memory.chosen = new Set([a, b]);
    this.lookAt(core);
    this.view.show(begin - (end - begin) * 0.3, end + (end - begin) * 0.3);
  }

  // Selecting

  select(bars, severity = "", move = false) {
    const { timeline } = this;
    if (!timeline) return;
    this.focus = null;
    this.choose(bars, severity);
    if (move && bars.length) timeline.reveal(bars);
    this.draw();
  }

  choose(bars, severity, number = -1) {
    this.timeline.choose(bars, severity);
    for (const card of document.querySelectorAll(".finding.chosen")) card.classList.remove("chosen");
    this.memory.chosen = new Set(bars.flatMap(bar => this.regionsOf(bar).map(({ region }) => region)));
    if (bars.length) {
      const { lineOf, data } = this.timeline;
      this.lookAt(data.lines[lineOf[bars[0]]].core);
      const touched = this.memory.chosen.values().next().value;
      if (touched !== undefined) this.see(this.run.memory.regions[touched].space);
    }
    this.details(bars[0] ?? -1, bars, number);
    if (bars.length) this.panes.mark(this.table.place[bars[0]]);
  }

  see(space) {
    this.memory.space = space;
    one("#space").value = space;
  }

  /** Show the instructions of a finding. */
  finding(number) {
    const finding = this.run.findings[number];
    const bars = [...new Set(finding.places.map(place => place.bar).filter(bar => bar >= 0))];
    if (this.timeline) {
      this.choose(bars, finding.severity, number);
      this.timeline.reveal(bars, true);
      if (bars.length) one("#timeline").scrollIntoView({ block: "start" });
      this.draw();
    }
    this.focus = number;
    one(`#finding-${number + 1}`)?.classList.add("chosen");
    if (!bars.length) one(`#finding-${number + 1}`)?.scrollIntoView({ block: "center" });
  }

  step(by) {
    const count = this.run.findings.length;
    if (count) this.finding(this.focus === null ? (by > 0 ? 0 : count - 1) : (this.focus + by + count) % count);
  }

  line(line) {
    if (!this.timeline) return;
    const first = this.table.place.reduce((best, place, bar) => (place === line && (best < 0 || this.table.start[bar] < this.table.start[best]) ? bar : best), -1);
    if (first < 0) return;
    this.select([this.table.root[first] >= 0 ? this.table.root[first] : first], "", true);
    one("#timeline").scrollIntoView({ block: "start" });
  }

  /** The regions that a bar touches, and how. */
  regionsOf(bar) {
    const { touches } = this, found = [];
    for (let n = search(touches.bar, bar, 0, touches.bar.length); n < touches.bar.length && touches.bar[n] === bar; n++) {
      found.push({ region: touches.region[n], mode: touches.mode[n] });
    }
    return found;
  }

  // Words

  /** What a bar is, in paragraphs. */
  words(bar, number = "") {
    const { table, timeline, panes, run } = this, { data } = timeline, line = data.lines[timeline.lineOf[bar]];
    const start = table.start[bar], length = table.length[bar], kind = table.kind[bar];
    const core = data.cores.length > 1 ? `, ${data.cores[line.core].name.toLowerCase()}` : "";
    const track = data.tracks[line.track], flag = `${table.mutex[bar] ? "mutex " : "EVENT_ID"}${table.arg[bar]}`;
    const root = table.root[bar];
    const step = root >= 0 && root !== bar ? `, a step of ${table.words[root]}` : "";
    const turns = table.turns[bar] > 1 ? `, in ${grouped(table.turns[bar])} turns of a loop` : "";
    const parts = [make("p", {}, make("b", {}, number + table.words[bar]), ` on ${track}${core}${step}${turns}`)];
    const span = length ? `cycles ${grouped(start)} to ${grouped(start + length)} (${grouped(length)})` : `cycle ${grouped(start)}`;
    const path = table.onPath[bar] > 0 && kind < SET ? `, ${grouped(Math.min(table.onPath[bar], length))} of them on the critical path` : "";
    parts.push(make("p", {}, kind === SET ? `${flag}, takes effect at cycle ${grouped(start + length)}` : `${span}${path}`));
    if (kind === WAIT) {
      const said = table.partner[bar] < 0 ? "nothing set it" : length > 1 ? "the pipe stands still until it is set" : "it was set already";
      parts.push(make("p", {}, `${flag}: ${said}`));
    }
    if (table.idle[bar] > 0 && kind < SET) {
      const held = table.held[bar];
      const cause = held >= 0 ? `, held by ${table.words[held]} at ${panes.where(table.place[held])}` : ": it was not issued earlier";
      parts.push(make("p", {}, `${track} was idle for ${plural(table.idle[bar], "cycle")} before it${cause}`));
    }
    const regions = this.regionsOf(bar), named = mode => [...new Set(regions.filter(r => r.mode === mode).map(r => run.memory.regions[r.region].text))];
    for (const [mode, word] of [[READ, "reads"], [WRITE, "writes"]]) {
      const texts = named(mode);
      if (texts.length) parts.push(make("p", {}, `${word} ${texts.slice(0, 3).join("; ")}${texts.length > 3 ? ` and ${texts.length - 3} more` : ""}`));
    }
    return parts;
  }

  details(bar, bars = [], number = -1) {
    const box = one("#timeline .details");
    box.classList.remove("several");
    if (bar < 0) {
      box.replaceChildren(make("span.dim.how", {}, "Point at an instruction, or click it. Ctrl and the wheel zoom, dragging moves; ? lists the keys."));
      return;
    }
    const shown = bars.length > 1 ? bars : [bar];
    box.classList.toggle("several", shown.length > 1);
    const told = this.run.findings[number];
    box.replaceChildren(...(told ? [make("p.told", {}, make("b", {}, `${told.severity} ${told.code}: ${told.headline}`), told.mend ? make("div.mend", {}, told.mend) : "")] : []), ...shown.map((one, n) => make("div", {}, ...this.words(one, bars.length > 1 ? `${n + 1}  ` : ""),
      this.table.place[one] >= 0 ? make("p", {}, this.panes.link(this.table.place[one]), "  ", make("code", {}, this.panes.text(this.table.place[one]).trim())) : "")));
  }

  tip(event, parts) {
    const tip = one("#tip");
    tip.hidden = !parts;
    if (!parts) return;
    tip.replaceChildren(...parts);
    const { offsetWidth, offsetHeight } = tip;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 18 + offsetHeight > innerHeight ? event.clientY - offsetHeight - 10 : event.clientY + 18}px`;
  }
}

const looks = {
  solid: { background: "var(--V)" }, tail: { background: "var(--V)", opacity: ".4" }, wait: { border: "1px dashed var(--wait)", background: "color-mix(in srgb, var(--wait) 18%, transparent)" },
  path: { background: "var(--path)", height: "3px", verticalAlign: "2px" },
};

const page = new Page();

function theme(name) {
  document.documentElement.dataset.theme = name;
  one("#theme").textContent = name === "dark" ? "Light" : "Dark";
  page.draw();
}

/** Moving, zooming and pointing in a canvas that shares the view. */
function pointer(canvas, find, words, click) {
  let drag = null;
  const point = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("wheel", event => {
    if (!page.view) return;
    const [x] = point(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      page.view.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), page.timeline.time(Math.max(x, GUTTER)));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      page.view.pan((event.deltaX || event.deltaY) / page.timeline.width);
    }
  }, { passive: false });
  canvas.addEventListener("pointerdown", event => {
    if (event.button === 0 && page.view) drag = { x: event.clientX, from: page.view.from, to: page.view.to, moved: false };
  });
  window.addEventListener("pointermove", event => {
    if (!drag) return;
    const by = event.clientX - drag.x;
    if (Math.abs(by) > 4) drag.moved = true;
    if (!drag.moved) return;
    const cycles = (by / (page.timeline.width - GUTTER)) * (drag.to - drag.from);
    page.view.show(drag.from - cycles, drag.to - cycles);
  });
  window.addEventListener("pointerup", event => {
    const was = drag;
    drag = null;
    if (was && !was.moved && event.target === canvas) click(...point(event));
  });
  canvas.addEventListener("mousemove", event => {
    const found = drag?.moved || !page.view ? null : find(...point(event));
    page.tip(event, found === null ? null : words(found));
    canvas.style.cursor = found === null ? "crosshair" : "pointer";
  });
  canvas.addEventListener("mouseleave", event => page.tip(event, null));
  canvas.addEventListener("dblclick", event => page.view?.zoom(0.4, page.timeline.time(Math.max(point(event)[0], GUTTER))));
}

/** Paper has less room than a screen. */
function printed(isPrinted) {
  if (!page.timeline) return;
  page.timeline.isPrinted = isPrinted;
  page.timeline.lay();
}

function lifeWords({ n, region, many }) {
  const { lives, data } = page.memory, { text, low, high } = data.regions[region];
  return [make("p", {}, make("b", {}, text)), make("p", {}, `${hex(low)} to ${hex(high - 1)}, ${size(high - low)}`), make("p", {}, many > 1 ? `${grouped(many)} lives here; zoom in to tell them apart` : `live from cycle ${grouped(lives.begin[n])} to ${grouped(lives.end[n])}`)];
}

/** Select a life: its region, and the instructions that touch it then. */
function chooseLife(box) {
  const { touches, table, timeline, memory } = page;
  if (!memory) return;
  memory.chosen = new Set(box ? [box.region] : []);
  const details = one("#memory .details");
  if (!box) {
    details.replaceChildren(make("span.dim.how", {}, "Click a piece to see who writes and reads it."));
    page.select([]);
    return;
  }
  const begin = memory.lives.begin[box.n], end = memory.lives.end[box.n], users = [];
  for (let n = 0; n < touches.bar.length && users.length < 12; n++) {
    const bar = touches.bar[n];
    if (table.root[bar] >= 0 && table.root[bar] !== bar) continue; // the instruction that it is a step of is told
    if (touches.region[n] !== box.region || (table.start[bar] < begin && timeline.end[bar] <= begin) || table.start[bar] > end) continue;
    if (timeline.data.lines[timeline.lineOf[bar]].core === memory.core) users.push({ bar, mode: touches.mode[n] });
  }
  users.sort((a, b) => table.start[a.bar] - table.start[b.bar]);
  details.replaceChildren(...lifeWords(box), make("p", {}, ...users.flatMap(({ bar, mode }, n) => [n ? ", " : "",
    make("button.link", { type: "button", onclick: () => page.select([bar], "", true) }, `${mode === WRITE ? "written" : "read"} by ${table.words[bar]}`), ` at ${grouped(table.start[bar])}`])));
  page.draw();
}

const actions = {
  in: () => page.view.zoom(0.5), out: () => page.view.zoom(2), left: () => page.view.pan(-0.25), right: () => page.view.pan(0.25),
  fit: () => page.view.fit(), focus: () => page.timeline.chosen.length && page.timeline.reveal(page.timeline.chosen),
};
const keys = { "+": "in", "=": "in", w: "in", "-": "out", s: "out", a: "left", d: "right", 0: "fit", f: "focus" };

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input, dialog")) return;
  const { timeline } = page, pressed = event.key;
  if (pressed === "n" || pressed === "p") page.step(pressed === "n" ? 1 : -1);
  else if (pressed === "t") one("#theme").click();
  else if (pressed === "?") one("#help").showModal();
  else if (pressed === "Escape") timeline && page.select([]);
  else if (timeline && keys[pressed]) actions[keys[pressed]]();
  else if (timeline && event.target === timeline.scroller && pressed.startsWith("Arrow")) {
    const now = timeline.chosen[0] ?? timeline.data.lines.find((_, n) => timeline.places[n])?.first;
    if (now === undefined) return;
    const by = pressed === "ArrowRight" || pressed === "ArrowDown" ? 1 : -1, isLine = pressed === "ArrowUp" || pressed === "ArrowDown";
    const next = timeline.chosen.length ? timeline.beside(now, by, isLine) : now;
    page.select([next]);
    const { start } = page.table;
    if (start[next] < page.view.from || timeline.end[next] > page.view.to) timeline.reveal([next]);
  } else if (pressed === "Enter" && timeline?.chosen.length && event.target === timeline.scroller) page.panes.showLine(page.table.place[timeline.chosen[0]]);
  else return;
  event.preventDefault();
}

function listen() {
  for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", () => actions[button.dataset.do]());
  one("#arrows").addEventListener("change", event => { page.timeline.showArrows = event.target.checked; page.draw(); });
  one("#path").addEventListener("change", event => { page.timeline.showPath = event.target.checked; page.draw(); });
  one("#all-cores").addEventListener("click", () => { page.timeline.only = null; page.timeline.lay(); page.draw(); });
  one("#space").addEventListener("change", event => { page.memory.space = event.target.value; page.draw(); });
  one("#core").addEventListener("change", event => { page.memory.core = Number(event.target.value); page.draw(); });
  one("#whole").addEventListener("change", event => { page.memory.whole = event.target.checked; page.draw(); });
  one("#timeline .scroller").addEventListener("scroll", () => page.draw());
  one("#theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  one("#help-button").addEventListener("click", () => one("#help").showModal());
  document.addEventListener("keydown", key);
  pointer(one("#timeline canvas"), (x, y) => { const bar = page.timeline.at(x, y); return bar < 0 ? null : bar; }, bar => page.words(bar),
    (x, y) => { const bar = page.timeline.at(x, y); page.select(bar < 0 ? [] : [bar]); });
  pointer(one("#memory canvas"), (x, y) => page.memory.at(x, y) ?? null, lifeWords, (x, y) => chooseLife(page.memory.at(x, y)));
  new ResizeObserver(() => page.draw()).observe(one("main"));
  let before = "light";
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    printed(true);
    theme("light");
    page.drawNow();
  });
  window.addEventListener("afterprint", () => {
    printed(false);
    theme(before);
  });
}

async function begin() {
  theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.title = `${report.title}: ascsim report`;
  one("#title").textContent = report.title;
  const choice = one("#run");
  choice.replaceChildren(...report.runs.map((run, n) => make("option", { value: n }, `${n + 1}: ${run.kernel} on ${run.profile}${run.counts.error ? `, ${plural(run.counts.error, "error")}` : ""}`)));
  one("#run-choice").hidden = report.runs.length < 2;
  choice.addEventListener("change", () => page.show(report.runs[Number(choice.value)]));
  listen();
  await page.show(report.runs[0]);
  const asked = /^#finding-(\d+)$/.exec(location.hash);
  if (asked && page.run.findings[asked[1] - 1]) page.finding(asked[1] - 1);
  page.drawNow();
  document.documentElement.dataset.ready = "yes";
}

window.ascsim = page; // for tests, and for whoever wants to ask it something
begin();
