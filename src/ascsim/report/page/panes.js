// What is text: verdict, findings, where the time goes, source, the table of instructions.

class Panes {
  constructor(run, hooks) {
    Object.assign(this, { run, hooks });
    this.lines = run.files.lines;
    this.texts = run.files.texts.map(text => text?.split(/\r?\n/) ?? null);
  }

  /** `file:line`, or what to say instead. */
  where(line) {
    if (line < 0) return "";
    const { file, line: number } = this.lines[line];
    return number ? `${this.run.files.paths[file]}:${number}` : this.run.files.paths[file];
  }

  text(line) {
    if (line < 0) return "";
    const { file, line: number } = this.lines[line];
    return this.texts[file]?.[number - 1] ?? "";
  }

  link(line) {
    return make("button.link.mono", { type: "button", onclick: event => (event.stopPropagation(), this.showLine(line)) }, this.where(line));
  }

  draw() {
    this.verdict();
    this.findings();
    this.time();
    this.source();
    this.table();
  }

  verdict() {
    const { run } = this, box = one("#verdict"), counts = run.counts;
    const failed = run.outcomes.filter(outcome => !outcome.ok).length;
    const worst = failed ? "error" : (["error", "warning", "note"].find(name => counts[name]) ?? "good");
    const words = ["error", "warning", "note"].filter(name => counts[name]).map(name => plural(counts[name], name));
    const facts = [
      ["chip", run.chip], ["launched", `${plural(run.launches, "launch").replace("launchs", "launches")}, ${plural(run.blocks, "block")}`],
      ["instructions", grouped(run.instructions)], ["sync", run.sync],
    ];
    if (run.time) {
      facts.push(["time", `${grouped(run.time.cycles)} cycles, ${run.time.microseconds.toFixed(3)} µs`]);
      if (run.time.cycles) facts.push(["bound by", `${run.time.bound} (${percent(run.time.bound_share)} of the critical path)`]);
      if (run.time.guess_share >= 0.005) facts.push(["guessed", `${percent(run.time.guess_share)} of the time rests on guessed costs`]);
    }
    box.className = worst;
    box.replaceChildren(
      make("strong", {}, (words.length ? words.join(", ") : "No findings") + (failed && !counts.error ? ", but it failed" : "")),
      make("span", {}, `${run.kernel} on ${run.chip}`),
      ...run.outcomes.map(({ text, ok }) => make(`pre.outcome.${ok ? "fine" : "failed"}`, {}, `${ok ? "✓" : "✗"} ${text}`)),
      make("div.facts", {}, ...facts.map(([name, value]) => make("span", {}, make("span.dim", {}, `${name} `), make("b", {}, value)))),
    );
  }

  findings() {
    const cards = this.run.findings.map((finding, number) => this.finding(finding, number));
    one("#findings .body").replaceChildren(
      ...(cards.length ? cards : [make("p.empty", {}, "Nothing was found: every access is in bounds, ordered, initialised and legal on this chip.")]),
    );
  }

  finding(finding, number) {
    const places = finding.places.map((place, n) => make("div.place", {},
      make("span.badge", {}, String(n + 1)), make("span", {}, place.what), place.line >= 0 ? this.link(place.line) : "",
      place.bar < 0 && this.run.time ? make("span.dim", {}, "not in the timeline") : "",
      this.text(place.line).trim() ? make("code", {}, this.text(place.line).trim()) : "",
    ));
    const canShow = finding.places.some(place => place.bar >= 0);
    const paragraph = (name, text, look = "") => make(`p${look}`, {}, make("b", {}, name), " ", text);
    return make(`div.finding.${finding.severity}`, { id: `finding-${number + 1}` },
      make("button", { type: "button", onclick: () => this.hooks.finding(number) },
        canShow ? make("span.hint", {}, "show in the timeline") : "",
        make("span.code", {}, `${finding.severity} ${finding.code}`), finding.headline,
        finding.count > 1 ? make("span.dim", {}, `  ${grouped(finding.count)} times`) : ""),
      make("div.inside", {}, ...places, ...finding.notes.map(note => paragraph("note", note)),
        finding.mend ? paragraph("mend", finding.mend, ".mend") : "",
        finding.about ? make("details.about", {}, make("summary", {}, `What ${finding.code} means`), make("p", {}, finding.about)) : ""),
    );
  }

  time() {
    const { time } = this.run, body = one("#time .body");
    if (!time) {
      body.replaceChildren(make("p.empty", {}, "The portable profile is no chip: its instructions take no time."));
      return;
    }
    const tracks = make("table", {},
      make("thead", {}, make("tr", {}, ...["pipe", "instructions", "at work", "on the critical path"].map((name, n) => make(n && n < 3 ? "th.number" : "th", {}, name)))),
      make("tbody", {}, ...time.tracks.map(track => make("tr", {},
        make("td", {}, track.name), make("td.number", {}, grouped(track.instructions)),
        make("td.number", {}, `${grouped(track.cycles)} (${percent(track.share)})`), this.bar(track.on_path, time.cycles)))));
    const roof = time.roofline;
    const idle = time.bubbles.slice(0, 12).map(bubble => make("li", {},
      make("b", {}, `${bubble.track} `), `${grouped(bubble.cycles)} cycles in ${plural(bubble.times, "gap")}: ${bubble.cause}`,
      make("div.dim", {}, ...this.linked(bubble.where), ...(bubble.behind ? [", behind ", ...this.linked(bubble.behind)] : []))));
    const guesses = time.guesses.slice(0, 6).map(([source, cycles]) => make("li", {}, make("b", {}, `${grouped(cycles)} cycles `), source.replace(/^guess: /, "")));
    body.replaceChildren(make("div.columns", {},
      make("div", {}, make("h3", {}, "Pipes"), tracks,
        make("p", {}, `${grouped(roof.bytes)} bytes of GM, ${grouped(roof.operations)} operations` + (roof.bytes ? `: ${roof.intensity.toFixed(2)} a byte; the ridge is at ${roof.ridge.toFixed(2)}, ` : ", ")
          + `so the roof is ${roof.bound === "memory" ? "memory" : "computing"}. ${roof.reached.toFixed(2)} operations a cycle, ${percent(roof.roof ? roof.reached / roof.roof : 0)} of what that roof allows.`)),
      make("div", {}, make("h3", {}, "Idle between work, and why"),
        idle.length ? make("ul.why", {}, ...idle) : make("p.empty", {}, "No pipe was idle between two pieces of work."),
        guesses.length ? make("details", {}, make("summary", {}, "Guessed costs on the critical path"), make("ul.why", {}, ...guesses)) : "")));
  }

  /** A place `file:line` (perhaps after words) as a link, where the page knows it. */
  linked(place) {
    const name = place.split(" ").at(-1);
    const line = this.lines.findIndex((_, n) => this.where(n) === name);
    return line < 0 ? [place] : [place.slice(0, place.length - name.length), this.link(line)];
  }

  bar(part, whole) {
    const share = whole ? part / whole : 0;
    return make("td.bar", {}, make("span", {}, `${grouped(part)} (${percent(share)})`), make("i", { style: { width: `calc((100% - 140px) * ${Math.min(share, 1)})` } }));
  }

  // Source

  source() {
    const { run } = this, order = run.files.paths.map((_, n) => n);
    const weight = file => this.lines.reduce((sum, line) => sum + (line.file === file ? line.calls + 1 : 0), 0);
    order.sort((a, b) => weight(b) - weight(a));
    const choice = make("select", { "aria-label": "File", onchange: event => this.listing(Number(event.target.value)) },
      ...order.map(n => make("option", { value: n }, run.files.paths[n])));
    this.choice = choice;
    one("#source .tools").replaceChildren(...(order.length ? [choice, make("span.dim.how", {}, "click a line to see its first instruction in the timeline")] : []));
    if (order.length) this.listing(order[0]);
    else one("#source .body").replaceChildren(make("p.empty", {}, "It is not known where these instructions were written."));
  }

  listing(file) {
    this.file = file;
    this.choice.value = file;
    this.rows = new Map();
    const body = one("#source .body"), text = this.texts[file], total = this.run.time?.cycles ?? 0;
    const known = new Map(this.lines.map((line, n) => [line.file === file ? line.line : -1, n]));
    const remarks = new Map();
    this.run.findings.forEach((finding, number) => finding.places.forEach((place, n) => {
      if (place.line < 0 || this.lines[place.line].file !== file) return;
      const at = this.lines[place.line].line;
      remarks.set(at, [...(remarks.get(at) ?? []), { finding, number, place, n }]);
    }));
    const numbers = text ? text.map((_, n) => n + 1) : [...known.keys()].filter(n => n > 0).sort((a, b) => a - b);
    const parts = numbers.flatMap(number => {
      const n = known.get(number), line = n === undefined ? null : this.lines[n], told = remarks.get(number) ?? [];
      const share = line && total ? line.onPath / total : 0;
      const row = make(`div.row${line?.calls ? ".live" : ""}${told.length ? `.bad.${told[0].finding.severity}` : ""}`, {},
        make("span", {}, String(number)), make("span", {}, line?.calls ? `${grouped(line.calls)}×` : ""), make("span", {}, line?.cycles ? grouped(line.cycles) : ""),
        make("span.share", {}, share > 0 ? make("i", { style: { width: `${Math.max(share * 100, 1)}px` } }) : "", share > 0 ? make("em", {}, percent(share)) : ""),
        make("code", {}, text ? text[number - 1] : "(source not found)"));
      if (line?.calls) {
        row.tabIndex = 0;
        row.addEventListener("click", () => this.hooks.line(n));
        row.addEventListener("keydown", event => event.key === "Enter" && (event.stopPropagation(), this.hooks.line(n)));
      }
      if (n !== undefined) this.rows.set(n, row);
      return [row, ...told.map(({ finding, number: which, place, n: at }) => make(`div.remark.${finding.severity}`, {},
        make("button.link", { type: "button", onclick: () => this.hooks.finding(which) }, `${finding.code}`), ` ${at ? place.what : `${place.what}: ${finding.headline}`}`))];
    });
    const head = make("div.row.head", {}, ...["line", "calls", "cycles", "critical path"].map(name => make("span", {}, name)), make("span", { style: { textAlign: "left" } }, ""));
    const listing = make("div.listing", {}, head, ...parts);
    body.replaceChildren(listing);
    const first = listing.querySelector(".bad") ?? listing.querySelector(".live");
    if (first) listing.scrollTop = Math.max(0, first.offsetTop - listing.offsetTop - 120);
  }

  /** Scroll to a line, and mark it. */
  showLine(line) {
    if (line < 0) return;
    if (this.lines[line].file !== this.file) this.listing(this.lines[line].file);
    this.mark(line);
    const row = this.rows.get(line);
    if (row) row.scrollIntoView({ block: "center" });
  }

  mark(line) {
    for (const row of document.querySelectorAll(".row.chosen")) row.classList.remove("chosen");
    this.rows?.get(line)?.classList.add("chosen");
  }

  // The table

  table() {
    const { run } = this, body = one("#instructions .body");
    if (!run.table?.length) {
      body.replaceChildren(make("p.empty", {}, run.time ? "Nothing of this run is an instruction with a time." : "The portable profile is no chip: there are no cycles to list."));
      return;
    }
    const total = run.time.cycles;
    const heads = [
      ["instruction", "name"], ["pipe", "track"], ["line", "line"], ["calls", "calls"], ["cycles", "cycles"], ["longest", "most"],
      ["idle before", "idle"], ["GM bytes", "bytes"], ["critical path", "onPath"],
    ];
    const rows = make("tbody");
    let sorted = "onPath", falling = true;
    const fill = () => {
      const direction = falling ? -1 : 1;
      const entries = [...run.table].sort((a, b) => direction * (typeof a[sorted] === "string" ? a[sorted].localeCompare(b[sorted]) : a[sorted] - b[sorted]));
      rows.replaceChildren(...entries.map(entry => make("tr", {},
        make("td", {}, make("button.link", { type: "button", title: "show the first one in the timeline", onclick: () => entry.bar >= 0 && this.hooks.bar(entry.bar) }, entry.name)),
        make("td", {}, entry.track), make("td", {}, entry.line >= 0 ? this.link(entry.line) : ""),
        ...["calls", "cycles", "most", "idle", "bytes"].map(name => make("td.number", {}, entry[name] ? grouped(entry[name]) : "")), this.bar(entry.onPath, total))));
      for (const cell of head.children) cell.setAttribute("aria-sort", cell.dataset.key === sorted ? (falling ? "descending" : "ascending") : "none");
    };
    const head = make("tr", {}, ...heads.map(([title, key]) => make(["calls", "cycles", "most", "idle", "bytes"].includes(key) ? "th.number" : "th", { scope: "col", "data-key": key },
      make("button", { type: "button", onclick: () => { falling = sorted === key ? !falling : !["name", "track", "line"].includes(key); sorted = key; fill(); } }, title))));
    fill();
    body.replaceChildren(make("div.table-frame", {}, make("table", {}, make("thead", {}, head), rows)));
  }
}
