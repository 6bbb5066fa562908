"""my_ops: an operator in two paths, for fusediff to compare. Put yours in the place of softsign:

  fused()    calls the function that you want to test,
  unfused()  says what it must give, bit for bit, in the plainest way,
  schema     says what a legal call is: sizes, dtypes, attributes (src/target/SCHEMA.md of fusediff has every key).

  fusediff fuzz --target my_ops.py --time 60 --out reports/my_ops

Arguments are passed by the names of the schema, as arrays. What is returned is the output; where there are several, a
tuple or a dict. src/targets/python/README.md of fusediff has the rest: torch, devices, ctypes, contexts.
"""
import numpy as np

schema = {
    "name": "softsign",
    "dims": {"R": {"range": [0, 64]},  # sizes that are tried; 0 says that an empty tensor is legal
             "C": {"range": [0, 512], "typical": [64, 128]}},
    "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32"}],  # ["f32", "f16"]: either
    "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 1}],
    "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},  # a row alone gives the bits that it gives in a batch
}


def fused(x):
    y = np.abs(x)
    y += 1
    return np.divide(x, y, out=y)


def unfused(x):
    """In f64 too, which fusediff tries: the truth that tells rounding from damage."""
    return x / (1 + np.abs(x))
