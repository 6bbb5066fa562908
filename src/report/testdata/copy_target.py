"""copy, y = x, as a Python file, for repro.py: right, or wrong as open_context()'s options or the variable COPY say."""
import os
import threading
import time

import numpy as np

schema = {"name": "copy", "dims": {"N": {"range": [0, 8]}}, "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32"}],
          "attrs": [{"name": "mode", "choice": ["a'b\"c\n"]}],
          "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32"}]}
arrays = os.environ.get("COPY_ARRAYS", "numpy")
calls = 0
inside = 0


def open_context(options):
    return options + os.environ.get("COPY", "")


def unfused(x):
    return x if arrays == "torch" else np.array(x)


def fused(x, mode, context, out):
    global calls, inside
    calls, inside = calls + 1, inside + 1
    assert mode == "a'b\"c\n"
    if context == "abort":
        os.abort()
    while context == "hang":
        time.sleep(1)
    if context == "reject":
        raise ValueError("no such\n  copy")
    if context == "fail":
        return x, x
    out["y"][...] = x
    if context == "unwritten":
        return None
    if context == "wrong" or (context == "other" and calls % 2):
        out["y"][0] = 1
    if context == "change":
        x[1] = 5
    if context == "crowded":
        time.sleep(0.01)
        if inside > 1:
            out["y"][0] = 1
    inside -= 1
    return None


def skipping(x, out):
    out["y"][1:] = x[1:]
