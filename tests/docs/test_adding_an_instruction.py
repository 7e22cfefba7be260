"""docs/adding-an-instruction.md, carried out: its definitions are registered and work in Python and ``.pto``."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "adding-an-instruction.md"

USE = """
import numpy as np
import ascsim
from ascsim.frontends.ptoas.kernel import loads
from ascsim.isa import REGISTRY, reference
from ascsim.profiles import load

@ascsim.kernel(arch="a5", sync="auto")
def negate_both(x, out):
    a, b = ascsim.tile("f32", 4, 64, at=0), ascsim.tile("f32", 4, 64, at=0x1000)
    ascsim.tload(a, x)
    ascsim.tflip(b, a)
    lane = ascsim.local("f32", 64, at=0x1000)
    mask = ascsim.asc_create_mask_b32(0)
    ascsim.asc_storealign(lane, ascsim.asc_flip(ascsim.asc_loadalign(lane), mask), mask)
    ascsim.tstore(out, b)

x = np.arange(1, 257, dtype=np.float32).reshape(4, 64)
out = np.zeros_like(x)
negate_both[1](x, out)
assert np.array_equal(out[0], x[0]) and np.array_equal(out[1:], -x[1:]), out

y = np.zeros((4, 64), np.float32)
text = '''
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %v = pto.make_tensor_view %x, shape = [%c4, %c64], strides = [%c64, %c1] : !VIEW
  %w = pto.make_tensor_view %y, shape = [%c4, %c64], strides = [%c64, %c1] : !VIEW
  %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c4, %c64] : !VIEW -> !PART
  %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c4, %c64] : !VIEW -> !PART
  %a = pto.tload %p : !PART -> !pto.tile<4x64xf32>
  %b = pto.tflip %a : !pto.tile<4x64xf32> -> !pto.tile<4x64xf32>
  pto.tstore %b, %q : (!pto.tile<4x64xf32>, !PART) -> ()
  return
}
'''
text = text.replace("!VIEW", "!pto.tensor_view<4x64xf32>").replace("!PART", "!pto.partition_tensor_view<4x64xf32>")
loads(text, "k.pto").kernel().run(load("a2a3"), 1, {"x": x, "y": y})
assert np.array_equal(y, -x)
assert "Negate a tile" in reference.page(REGISTRY.find("TFLIP")[0])
print("done")
"""


def test_the_pages_instructions_work():
    tile, _, register = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    split = "\nfrom __future__ import annotations\n"
    code = "import ascsim.isa\n" + tile.replace(split, "") + register.replace(split, "") + USE
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr
