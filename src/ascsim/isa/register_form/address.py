"""Address registers."""

from __future__ import annotations

from ascsim.isa.addresses import address_instruction

for _unit in (1, 2, 4):
    address_instruction(
        _unit, cpp=f"asc_update_addr_reg_b{8 * _unit}", aliases=(f"asc_create_iter_reg_b{8 * _unit}",),
        doc=f"""Make the offset of an address register: the count of each loop around the call, from 0 on, times its stride.

        Strides count elements of {_unit} byte{"s" * (_unit > 1)}; the last is that of the innermost loop.
        """,
        notes=(
            "The table of the C API's page has the first stride for the innermost loop; its guide's example, the pages of "
            "the basic API and the library have it for the outermost one, and so it is here.",
            "A chip has eight address registers and loops of at most four levels; more registers make a kernel slower.",
        ),
        assumed=("What is counted are the rounds of a loop, whatever its variable begins with.",),
        sources=("asc-devkit C-API reg/reg_data_types/asc_update_addr_reg, data_type_definition",
                 "asc-devkit basic API Reg AddrReg"),
    )  # fmt: skip
