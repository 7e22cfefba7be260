"""The page in a browser: it draws, complains of nothing, and shows what is asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ascsim.report import page
from checks.builder import MTE2, Builder, V, gm
from report.page.browser import ask, needs_browser
from report.page.pages import racy, shown

pytestmark = needs_browser

_SHAPES = """
const colours = (canvas, points) => {
  const scale = devicePixelRatio, {data, width} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const first = ([x, y]) => 4 * (Math.round(y * scale) * width + Math.round(x * scale));
  return points.map(point => [...data.slice(first(point), first(point) + 3)].join());
};
const boxes = () => ascsim.timeline.chosen.map(bar => ascsim.timeline.box(bar));
"""


def test_it_loads_without_complaint(tmp_path: Path) -> None:
    found, console = ask(
        tmp_path,
        page.html([shown(racy())], "kernel.cpp"),
        """return {title: document.title, verdict: document.querySelector("#verdict strong").textContent,
        cards: document.querySelectorAll(".finding").length,
        rows: document.querySelectorAll("#instructions tbody tr").length,
        wide: document.documentElement.scrollWidth <= innerWidth, marked: document.querySelectorAll(".remark").length};""",
    )
    assert console == []
    assert found == {
        "title": "kernel.cpp: ascsim report", "verdict": "1 error", "cards": 1, "rows": 3, "wide": True, "marked": 2,
    }  # fmt: skip


def test_a_click_on_a_finding_shows_both_instructions(tmp_path: Path) -> None:
    found, console = ask(
        tmp_path,
        page.html([shown(racy(12))], "kernel.cpp"),
        _SHAPES
        + """ascsim.view.show(0, 5);
        document.querySelector(".finding > button").click();
        ascsim.drawNow();
        const t = ascsim.timeline, top = t.scroller.scrollTop, seen = boxes();
        const probe = document.createElement("i");
        probe.style.color = "var(--error)";
        document.body.append(probe);
        return {names: t.chosen.map(bar => ascsim.table.words[bar]),
          inside: seen.every(b => b.left >= 118 && b.right <= t.width && b.top >= top && b.top + b.height <= top + t.height),
          edges: colours(t.canvas, seen.map(b => [b.right - 8, b.top - 1 - top])),
          colour: getComputedStyle(probe).color.match(/\\d+/g).join(),
          lines: t.places.filter(Boolean).length, told: document.querySelector("#timeline .details").textContent};""".replace(
            "GUTTER", "118"
        ),
    )
    assert console == []
    assert found["names"] == ["TADD", "TLOAD"]
    assert found["inside"]
    assert found["edges"] == [found["colour"]] * 2
    assert found["lines"] == 3  # of the finding's core alone
    assert "TADD on V" in found["told"] and "TLOAD on MTE2" in found["told"]


def test_keys(tmp_path: Path) -> None:
    found, console = ask(
        tmp_path,
        page.html([shown(racy())], "kernel.cpp"),
        """const press = (key, on = document.body) => on.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        const width = () => ascsim.view.to - ascsim.view.from, whole = width(), seen = {};
        press("+"); seen.zoomed = width() < whole;
        press("0"); seen.fits = Math.abs(width() - whole) < 1;
        const scroller = document.querySelector(".scroller");
        press("ArrowRight", scroller); seen.first = ascsim.table.words[ascsim.timeline.chosen[0]];
        press("ArrowDown", scroller); seen.below = ascsim.table.words[ascsim.timeline.chosen[0]];
        press("Enter", scroller); seen.line = document.querySelector(".row.chosen > span").textContent;
        press("Escape"); seen.none = ascsim.timeline.chosen.length;
        press("n"); seen.finding = ascsim.focus;
        const theme = () => document.documentElement.dataset.theme, before = theme();
        press("t"); seen.turned = theme() !== before;
        return seen;""",
    )
    assert console == []
    assert found == {
        "zoomed": True, "fits": True, "first": "TLOAD", "below": "TADD", "line": "5", "none": 0, "finding": 0, "turned": True,
    }  # fmt: skip


def test_pointing(tmp_path: Path) -> None:
    found, _ = ask(
        tmp_path,
        page.html([shown(racy())], "kernel.cpp"),
        """const t = ascsim.timeline, m = ascsim.memory, store = ascsim.table.words.indexOf("TSTORE");
        const box = t.box(store), life = m.boxes.at(-1);
        return {bar: t.at((box.left + box.right) / 2, box.top + box.height / 2) === store, nothing: t.at(5, 5),
          life: m.at((life.left + life.right) / 2, (life.top + life.bottom) / 2).region === life.region,
          words: ascsim.words(store).map(p => p.textContent).join(" / "), labels: m.data.regions.map(r => r.name)};""",
    )
    assert found["bar"] and found["nothing"] == -1 and found["life"]
    assert "TSTORE on MTE3" in found["words"] and "reads target 16x64 f32 at UB 0x1000" in found["words"]
    assert found["labels"] == ["source", "target"]


@pytest.mark.parametrize("profile", ["cpu", "a2a3"])
def test_what_is_empty_says_so(tmp_path: Path, profile: str) -> None:
    builder = racy() if profile == "cpu" else Builder()
    found, console = ask(
        tmp_path,
        page.html([shown(builder, profile)], "kernel.cpp"),
        """return [...document.querySelectorAll(".empty")].map(one => one.textContent)""",
    )
    assert console == []
    assert any("portable profile is no chip" in text for text in found) == (profile == "cpu")
    assert any("Nothing was found" in text for text in found) == (profile == "a2a3")


def test_several_runs_can_be_chosen(tmp_path: Path) -> None:
    found, console = ask(
        tmp_path,
        page.html([shown(racy()), shown(racy(), "cpu"), shown(racy(2), "a5")], "kernel.cpp"),
        """const choice = document.querySelector("#run"), seen = [];
        for (const n of [1, 2, 0]) {
          choice.value = n; choice.dispatchEvent(new Event("change"));
          await new Promise(done => setTimeout(done, 300));
          const part = document.querySelector("#timeline");
          const hidden = part.querySelector(".scroller").hidden, notes = part.querySelectorAll(".empty").length;
          seen.push([ascsim.run.profile, !!ascsim.timeline, hidden, notes]);
        }
        return seen;""",
    )
    assert console == []
    assert found == [["cpu", False, True, 1], ["a5", True, False, 0], ["a2a3", True, False, 0]]


def test_flags_say_what_they_are(tmp_path: Path) -> None:
    builder = Builder()
    builder.launch(1)
    builder.sync(MTE2, V, 3)
    builder.wait(MTE2, V, 4)
    builder.unlock(MTE2, 2)
    builder.lock(V, 2)
    builder.end(1)
    found, _ = ask(
        tmp_path,
        page.html([shown(builder)], "kernel.cpp"),
        """return ascsim.table.words.map((_, bar) => ascsim.words(bar).at(-1).textContent)""",
    )
    assert {text.partition(",")[0] for text in found if "effect" in text} == {"EVENT_ID3", "mutex 2"}
    assert "EVENT_ID3: it was set already" in found or "EVENT_ID3: the pipe stands still until it is set" in found
    assert "EVENT_ID4: nothing set it" in found


def test_overlaps_can_be_looked_at(tmp_path: Path) -> None:
    builder = Builder()
    builder.launch(1)
    one, other = builder.tile("one", 0), builder.tile("other", 128)
    for name, reads, writes in (("w", [], [one]), ("w", [], [other]), ("r", [one, other], [4096])):
        builder.op(V, name, reads=reads, writes=writes)
        builder.barrier(V)
    builder.end(1)
    found, console = ask(
        tmp_path,
        page.html([shown(builder)], "kernel.cpp"),
        """const {begin, end} = ascsim.run.memory.overlaps[0], button = document.querySelector("button.alarm");
        ascsim.view.show(0, 4);
        button.click();
        return [button.textContent, ascsim.view.from < begin && end < ascsim.view.to, ascsim.memory.chosen.size];""",
    )
    assert console == []
    assert found == ["1 overlap while live", True, 2]


@pytest.mark.parametrize("is_good", [True, False])
def test_a_failed_result_is_no_green_verdict(tmp_path: Path, is_good: bool) -> None:
    run = dataclasses.replace(shown(Builder()), outcomes=(("golden out: of 4", is_good),))
    found, _ = ask(
        tmp_path,
        page.html([run], "kernel.cpp"),
        """const box = document.querySelector("#verdict");
        return [box.className, box.querySelector("strong").textContent, box.querySelector(".outcome").textContent];""",
    )
    good, bad = (
        ["good", "No findings", "✓ golden out: of 4"],
        ["error", "No findings, but it failed", "✗ golden out: of 4"],
    )
    assert found == (good if is_good else bad)


def test_it_is_printed_light_and_short(tmp_path: Path) -> None:
    found, console = ask(
        tmp_path,
        page.html([shown(racy(20))], "kernel.cpp"),
        """const theme = () => document.documentElement.dataset.theme, t = ascsim.timeline, seen = [];
        if (theme() === "light") document.querySelector("#theme").click();
        for (const name of ["", "beforeprint", "afterprint"]) {
          if (name) dispatchEvent(new Event(name));
          seen.push([theme(), t.height]);
        }
        return seen;""",
    )
    assert console == []
    assert [theme for theme, _ in found] == ["dark", "light", "dark"]
    assert found[1][1] < found[0][1] == found[2][1]


def test_reasons_of_idle_time_lead_to_their_lines(tmp_path: Path) -> None:
    builder = Builder()
    builder.launch(1)
    for _ in range(2):
        builder.op(MTE2, "TLOAD", reads=[gm(0, 4096)], writes=[{"start": 0, "length": 4096}], line=3)
        builder.set(MTE2, V, line=4)
        builder.wait(MTE2, V, line=5)
        builder.op(V, "TADD", reads=[0], writes=[8192], line=6)
        builder.set(V, MTE2, line=7)
        builder.wait(V, MTE2, line=8)
    builder.end(1)
    found, console = ask(
        tmp_path,
        page.html([shown(builder)], "kernel.cpp"),
        """const links = [...document.querySelectorAll(".why .link")], texts = links.map(link => link.textContent);
        links[0].click();
        return [texts, document.querySelector(".row.chosen > span").textContent];""",
    )
    assert console == []
    assert {"kernel.cpp:5", "kernel.cpp:3"} <= set(found[0])
    assert found[0][0] == f"kernel.cpp:{found[1]}"
