"""Kernels in Python: arrays in and out, names, placement, errors at the caller's line."""

import numpy as np
import pytest

import ascsim
from ascsim import Pipe
from ascsim.diagnostics import UserError
from ascsim.frontends.launch import current_launch


def load_then(target=Pipe.V):
    ascsim.set_flag(Pipe.MTE2, target, 0)
    ascsim.wait_flag(Pipe.MTE2, target, 0)


@ascsim.kernel
def double(x, out):
    a = ascsim.tile("f32", *x.shape)
    b = ascsim.tile("f32", *x.shape)
    ascsim.tload(a, x)
    load_then()
    ascsim.tadd(b, a, a)
    ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.tstore(out, b)


@ascsim.kernel
def racy_double(x, out):
    a = ascsim.tile("f32", *x.shape)
    b = ascsim.tile("f32", *x.shape)
    ascsim.tload(a, x)
    ascsim.tadd(b, a, a)
    ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.tstore(out, b)


@pytest.mark.parametrize("arch", ["a2a3", "a5", "cpu"])
def test_arrays_go_in_and_out(arch):
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    out = np.zeros_like(x)
    run = double.on(arch)[1](x, out)
    assert run.ok and run.diagnostics == []
    assert np.array_equal(out, x + x)


@pytest.mark.parametrize("arch", ["a2a3", "cpu"])
def test_a_run_writes_its_report_page(arch, tmp_path):
    x = np.ones((4, 64), np.float32)
    run = double.on(arch)[1](x, np.zeros_like(x))
    run.save_page(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "double" in page
    with pytest.raises(UserError, match="cannot write"):
        run.save_page(tmp_path / "nowhere" / "page.html")


def test_one_array_given_twice_is_one_block():
    x = np.ones((4, 64), np.float32)
    double[1](x, x)
    assert np.array_equal(x, np.full((4, 64), 2, np.float32))


def test_a_missing_wait_raises_with_the_results_in_the_arrays():
    x, out = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    with pytest.raises(ascsim.KernelError) as error:
        racy_double[1](x, out)
    (finding,) = [d for d in error.value.run.diagnostics if d.severity == "error"]
    assert finding.code == "R001"
    assert "set_flag(Pipe.MTE2, Pipe.V, 0)" in finding.mend
    assert [place.site.path for place in finding.places] == [__file__] * 2
    assert np.array_equal(out, x + x)


def test_cpu_profile_orders_nothing_less():
    """The portable profile has pipes and flags too: the same kernel is as racy there."""
    x, out = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    run = racy_double.on("cpu").options(raise_on_error=False)[1](x, out)
    assert [d.code for d in run.diagnostics] == ["R001"]


def test_auto_sync_inserts_what_is_missing():
    x, out = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    run = racy_double.options(sync="auto")[1](x, out)
    assert run.diagnostics == []
    assert "(inserted)" in run.trace.mnemonics.values()


def test_blocks_see_their_number():
    @ascsim.kernel
    def number(out):
        tile = ascsim.tile("f32", 1, 8)
        ascsim.tload(tile, out[ascsim.get_block_idx() : ascsim.get_block_idx() + 1])
        load_then()
        ascsim.tadds(tile, tile, float(ascsim.get_block_idx()))
        ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.tstore(out[ascsim.get_block_idx() : ascsim.get_block_idx() + 1], tile)

    out = np.zeros((3, 8), np.float32)
    number[3](out)
    assert out[:, 0].tolist() == [0, 1, 2]


def test_tiles_take_the_names_of_their_variables():
    x, out = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    run = double[1](x, out)
    assert [o["name"] for o in run.trace.objects if o["type"] == "tile"] == ["a", "b"]


def test_tiles_that_do_not_fit_are_listed_by_size():
    @ascsim.kernel
    def large():
        ascsim.tile("f32", 16, 64, name="small")
        ascsim.tile("f32", 512, 128, name="big")

    run = large.options(raise_on_error=False)[1]()
    assert run.diagnostics[0].code == "A001"
    assert "266240 bytes of UB, which has 196608" in run.diagnostics[0].headline
    assert run.diagnostics[0].notes[0].index("big") < run.diagnostics[0].notes[0].index("small")


def test_registers_flow_through_functions():
    @ascsim.kernel(arch="a5")
    def weave(x, y, out):
        a, b, c = ascsim.local("f32", 64), ascsim.local("f32", 64), ascsim.local("f32", 128)
        ascsim.asc_copy_gm2ub_align(a, x, 256)
        ascsim.asc_copy_gm2ub_align(b, y, 256)
        load_then()
        every = ascsim.asc_create_mask_b32(0)
        low, high = ascsim.asc_intlv(ascsim.asc_loadalign(a), ascsim.asc_loadalign(b))
        ascsim.asc_storealign(c, low, every)
        ascsim.asc_storealign(c + 64, high, every)
        ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.asc_copy_ub2gm_align(out, c, 512)

    x, y = np.arange(64, dtype=np.float32), -np.arange(64, dtype=np.float32)
    out = np.zeros(128, np.float32)
    weave[1](x, y, out)
    assert np.array_equal(out, np.stack([x, y], 1).ravel())


@pytest.mark.parametrize(("masked", "codes"), [(False, ["B006"]), (True, [])])
def test_a_store_beyond_a_buffer_is_told(masked, codes):
    @ascsim.kernel(arch="a5", raise_on_error=False)
    def tail(x, out):
        a, b, _ = ascsim.local("f32", 128), ascsim.local("f32", 100), ascsim.local("f32", 64, name="after")
        ascsim.asc_copy_gm2ub_align(a, x, 512)
        load_then()
        left = 100
        for at in (0, 64):
            mask, left = ascsim.plt_b32(left) if masked else (ascsim.pset_b32(0), 0)
            ascsim.vsts(b, ascsim.vlds(a, at), mask, at)
        ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.asc_copy_ub2gm_align(out, b, 1, 400, 0, 0, 0)

    found = tail[1](np.ones(128, np.float32), np.zeros(100, np.float32)).diagnostics
    assert [d.code for d in found] == codes
    assert [d.notes for d in found] == [("96 bytes of them are in after",)] * len(codes)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: double[1](np.zeros((4, 64), np.float32)), "takes 2 arguments"),
        (lambda: double[0](np.zeros((4, 64), np.float32), None), "1 to 65535 blocks"),
        (lambda: ascsim.tadd(1, 2, 3), "inside a kernel"),
        (lambda: double.on("a9")[1](1, 2), "unknown NPU architecture"),
    ],
)
def test_wrong_use_is_told(call, words):
    with pytest.raises(UserError, match=words):
        call()


def test_views_of_global_arrays():
    from ascsim.frontends.values import global_array
    from ascsim.machine.dtypes import f32

    whole = global_array(np.zeros((6, 8), np.float32), f32, 512, "x")
    part = whole[1:6:2, 4]
    assert (part.address, part.shape, part.strides) == (512 + (8 + 4) * 4, (3,), (16,))
    assert whole[-1].address == 512 + 5 * 32
    assert whole.reshape(3, 16).strides == (16, 1)
    for wrong in (lambda: whole[6], lambda: whole[0, 0, 0], lambda: whole[::-1], lambda: part.reshape(1, 3)):
        with pytest.raises(UserError):
            wrong()


def test_unknown_instruction_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no instruction of that name is implemented"):
        ascsim.tnothing  # noqa: B018


def test_a_refused_kernel_is_not_blamed_for_the_flags_it_left():
    @ascsim.kernel
    def refused(x):
        a = ascsim.tile("f32", 4, 64)
        ascsim.tload(a, x)
        ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
        ascsim.tadd(a, a, ascsim.tile("f16", 4, 64))

    run = refused.options(raise_on_error=False)[1](np.ones((4, 64), np.float32))
    assert [d.code for d in run.diagnostics] == ["L003"]


def test_an_overload_is_chosen_by_the_types_of_its_addresses():
    @ascsim.kernel(arch="a2a3")
    def narrow(x, out):
        a, b = ascsim.local("f32", 64), ascsim.local("f16", 64)
        ascsim.asc_copy_gm2ub(a, x, 256)
        load_then()
        ascsim.asc_add_relu(b, a, a, 64)
        ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.asc_copy_ub2gm(out, b, 128)

    x, out = np.linspace(-2, 2, 64, dtype=np.float32), np.zeros(64, np.float16)
    narrow(x, out)
    assert np.array_equal(out, np.maximum(x + x, 0).astype(np.float16))


@pytest.mark.parametrize("core", ["aiv", "aic"])
def test_a_kernel_runs_on_the_core_that_it_names(core):
    seen = []

    @ascsim.kernel(core=core, arch="a5")
    def look():
        seen.append(current_launch().core.side)

    look[1]()
    assert seen == [core]


def test_there_are_two_kinds_of_core():
    with pytest.raises(UserError, match="core 'aiv'"):
        double.options(core="cube")[1](np.zeros((2, 8), np.float32), np.zeros((2, 8), np.float32))
