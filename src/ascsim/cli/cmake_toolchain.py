"""``ascsim cmake-toolchain``."""

from __future__ import annotations

import click

from ascsim.cli.options import arch_option


@click.command("cmake-toolchain")
@arch_option
def command(arch: str | None) -> int:
    """The path of a CMake toolchain file that makes ascsim the compiler.

    Kernel libraries and their tests build with their own CMake files as they stand:

        cmake -B build -DCMAKE_TOOLCHAIN_FILE=$(ascsim cmake-toolchain)

    Projects that call find_package(ASC) for .asc files also need -DASC_DIR=$(dirname $(ascsim cmake-toolchain)).
    --npu-arch is needed only where the build files name no chip.
    """
    from ascsim.frontends.cpp.cmake import toolchain

    click.echo(toolchain(arch))
    return 0
