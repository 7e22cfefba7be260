"""Golden comparison: what differs is counted and placed, and nothing is forgiven that was not asked for."""

import numpy as np

from ascsim.report.compare import compare


def test_equal_arrays_agree_bit_for_bit():
    values = np.array([[0.0, -0.0, np.nan]], np.float32)
    assert compare("out", values, values.copy()).ok


def test_signed_zero_differs_without_tolerance():
    result = compare("out", np.array([0.0], np.float32), np.array([-0.0], np.float32))
    assert result.differ == 1


def test_first_differences_have_coordinates():
    got = np.zeros((4, 8), np.int32)
    wanted = got.copy()
    wanted[2, 3] = 7
    result = compare("out", got, wanted)
    assert result.first == (((2, 3), 0, 7),)
    assert "1 of 32 elements differ" in result.lines()[0]
    assert "[2, 3] is 0, should be 7" in result.lines()[1]


def test_tolerance_is_relative_to_the_golden_value():
    got, wanted = np.array([1.0, 100.0], np.float32), np.array([1.0, 101.0], np.float32)
    assert compare("out", got, wanted, rtol=0.02).ok
    assert compare("out", got, wanted, rtol=0.001).differ == 1


def test_tolerance_does_not_forgive_integers():
    assert compare("out", np.array([3], np.int32), np.array([4], np.int32), rtol=1.0, atol=5.0).differ == 1


def test_shape_and_type_mismatch_is_told():
    assert "elements" in compare("out", np.zeros(3), np.zeros(4)).lines()[0]
    assert "type" in compare("out", np.zeros(3, np.int32), np.zeros(3, np.float32)).lines()[0]
