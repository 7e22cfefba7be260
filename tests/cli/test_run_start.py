"""What ``ascsim run`` loads before it compiles."""

from __future__ import annotations

import subprocess
import sys


def test_a_cpp_source_is_compiled_before_numpy_is_loaded() -> None:
    program = (
        "import sys\n"
        "from ascsim.cli import run\n"
        "def finish(file, options, bar):\n"
        "    import ascsim.frontends.cpp.driver, ascsim.frontends.cpp.session\n"
        "    print([name for name in ('numpy', 'ascsim.checks', 'ascsim.isa') if name in sys.modules])\n"
        "run._finish = finish\n"
        "run.finish('k.asc', dict(fill='zero', order=None, jobs=None, limit=1, suppressions=None, as_json=True))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
