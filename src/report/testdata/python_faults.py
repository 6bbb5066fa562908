"""Operators as Python functions, one fault each, for scripts/check_repro. With FAULTY = False there is none."""
import ctypes

import numpy as np

FAULTY = True


def record(name, **more):
    return {"name": name, "dims": {"N": {"range": [0, 32]}}, "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32"}],
            "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32"}], **more}


schema = [record("tail"), record("double"), record("ordered"), record("second"), record("empty")]


def open_context(options):
    return {"calls": 0}


def tail_fused(x, out):
    """unwritten: the last elements of a size that is no multiple of 4."""
    size = len(x) - len(x) % 4 if FAULTY else len(x)
    out["y"][:size] = -x[:size]


def tail_unfused(x):
    return -x


def double_fused(x):
    """damage: a constant that is slightly off."""
    return x * np.float32(2.001 if FAULTY else 2)


def double_unfused(x):
    return x + x


def ordered_fused(x):
    """input_changed: sorts where it should copy."""
    y = x if FAULTY else x.copy()
    y.sort()
    return y


def ordered_unfused(x):
    return np.sort(x)


def second_fused(x, context):
    """contamination: the second call on a context forgets the sign."""
    context["calls"] += 1
    return abs(x) if FAULTY and context["calls"] == 2 else x.copy()


def second_unfused(x):
    return x.copy()


def empty_fused(x):
    """crash: reads where nothing is."""
    if FAULTY and len(x) == 0:
        ctypes.string_at(0)
    return np.abs(x)


def empty_unfused(x):
    return np.abs(x)
