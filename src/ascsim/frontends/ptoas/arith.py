"""xDSL's ``arith`` dialect with the operations of MLIR 19 that it lacks."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition


class IndexCastUIOp(arith.IndexCastOp):
    """``arith.index_castui %a : T to index``: as ``index_cast``, the narrower value being unsigned."""

    name = "arith.index_castui"


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """``arith.remf %a, %b : f32``: the remainder, with the sign of the dividend."""

    name = "arith.remf"


Arith = Dialect("arith", [*arith.Arith.operations, IndexCastUIOp, RemFOp], [*arith.Arith.attributes])
