"""Options that several commands have."""

from __future__ import annotations

import click

arch_option = click.option(
    "--npu-arch",
    "arch",
    default=None,
    help="The chip: a2a3, a5, cpu, or an alias (dav-2201, dav-3510, Ascend910B, ...). run takes several: a2a3,a5.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of text.")
