"""What a Python target's file says: its schema, its functions, and what its arrays are. Nothing here runs a path."""
import importlib.util
import inspect
import os
import sys
import traceback

RESERVED = ("out", "context")


class Refused(Exception):
    """The file is no target; one line says what would be right."""


def load(path):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise Refused("line %s: %s" % (error.lineno, error.msg))
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        raise Refused("%s%s: %s" % ("line %d: " % lines[-1] if lines else "", type(error).__name__, error))
    return module


def name_of(file):
    return str(getattr(file, "name", os.path.splitext(os.path.basename(file.__file__))[0]))


def version_of(file):
    return str(getattr(file, "version", getattr(file, "__version__", "0")))


def schema_of(file):
    """The whole schema: `schema` may be one operator's record, a list of them, or all of it."""
    given = getattr(file, "schema", None)
    if given is None:
        raise Refused("there is no variable `schema`: a dict with name, dims, inputs and outputs is right")
    if isinstance(given, dict) and "operators" in given:
        whole = dict(given)
    else:
        whole = {"operators": given if isinstance(given, list) else [given]}
    whole.setdefault("fusediff_schema", 1)
    whole["operators"] = [with_paths(file, op, len(whole["operators"])) for op in whole["operators"]]
    return whole


def with_paths(file, op, count):
    if not isinstance(op, dict) or not isinstance(op.get("name"), str):
        raise Refused("`schema`: an operator is a dict with a `name`")
    if "paths" in op:
        return op
    paths = [p for p in ("fused", "unfused", "reference") if find(file, op["name"], p, count) is not None]
    return {**op, "paths": paths}


def find(file, op, path, count):
    """fused, or NAME_fused; only the latter where the file has several operators."""
    function = getattr(file, "%s_%s" % (op, path), None)
    if function is None and count == 1:
        function = getattr(file, path, None)
    return function if callable(function) else None


def functions_of(file, schema):
    """(operator, path) -> the function, the names it takes (None: any), and whether it writes into `out`."""
    functions, count = {}, len(schema["operators"])
    for op in schema["operators"]:
        if not op["paths"]:
            raise Refused("%s: there is no function fused(...) or %s_fused(...)" % (op["name"], op["name"]))
        for path in op["paths"]:
            function = find(file, op["name"], path, count)
            if function is None:
                raise Refused("%s: the path %s has no function: %s_%s(...)%s is right" % (
                    op["name"], path, op["name"], path, " or %s(...)" % path if count == 1 else ""))
            functions[op["name"], path] = (function,) + arguments_of(function, op, path)
    return functions


def arguments_of(function, op, path):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None, False
    if any(p.kind == p.VAR_KEYWORD for p in parameters):
        return None, any(p.name == "out" for p in parameters)
    names = [p.name for p in parameters]
    known = [t["name"] for key in ("inputs", "attrs") for t in op.get(key, [])]
    for p in parameters:
        unknown = p.name not in known + list(RESERVED) and "like" not in op
        if unknown and p.default is p.empty:
            raise Refused("%s takes %s, which is no input or attribute of %s; these are: %s, and `out` and `context`" % (
                path, p.name, op["name"], ", ".join(known)))
        if p.kind == p.POSITIONAL_ONLY:
            raise Refused("%s: arguments are passed by name, and %s may not be" % (path, p.name))
    return frozenset(names), "out" in names


def arrays_of(file, region):
    kind = getattr(file, "arrays", "numpy")
    if kind == "numpy":
        import fusediff_numpy
        return fusediff_numpy.Arrays(region)
    if kind == "torch":
        try:
            import fusediff_torch
        except ImportError as error:
            raise Refused("arrays = \"torch\": %s cannot import it: %s" % (sys.executable, error))
        return fusediff_torch.Arrays(region, getattr(file, "device", None))
    raise Refused("arrays = %r: \"numpy\" and \"torch\" are right" % (kind,))
