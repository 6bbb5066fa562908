"""What a Python target's file says: its schema, its functions, and what its arrays are. Nothing here runs a path."""
import importlib.util
import inspect
import json
import os
import sys
import threading

from fusediff_errors import OURS, Refused, line_in, spelled

PATHS = ("fused", "unfused", "reference")
LONGEST_LOAD = 170  # seconds; fusediff itself waits for 180
MOST_SCHEMA = 4 << 20


def load(path, refuse):
    """The module. refuse(error): how an import without an end is said, from another thread."""
    sys.path.insert(0, os.path.dirname(path))
    sys.argv = [path]
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:
        name = "target_" + name  # the other one stays what everybody else imports
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = threading.get_ident()
    watch = threading.Timer(LONGEST_LOAD, lambda: refuse(endless(path, loader)))
    watch.daemon = True
    watch.start()
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise Refused("%s%s" % (place(error.filename, error.lineno, path), error.msg))
    except BaseException as error:
        raise Refused(place(path, line_in(error, path), path) + spelled(error) + interpreter(error))
    finally:
        watch.cancel()
    return module


def place(file, line, path):
    return ("" if file in (None, path) else file + ": ") + ("line %d: " % line if line else "")


def interpreter(error):
    if not isinstance(error, ModuleNotFoundError):
        return ""
    return "; the interpreter is %s, FUSEDIFF_PYTHON names another" % sys.executable


def endless(path, loader):
    line, frame = 0, sys._current_frames().get(loader)
    while frame and not line:
        line = frame.f_lineno if frame.f_code.co_filename == path else 0
        frame = frame.f_back
    return Refused("%snot loaded after %d s: what takes long belongs into open_context(options) or a function" % (
        place(path, line, path), LONGEST_LOAD))


def text_of(file, names, otherwise):
    """The first of these variables that is a text: a loop of the file's own may have used the word."""
    return next((v for v in (getattr(file, n, None) for n in names) if isinstance(v, str)), otherwise)


def name_of(file):
    return text_of(file, ("name",), os.path.splitext(os.path.basename(file.__file__))[0])


def version_of(file):
    return text_of(file, ("version", "__version__"), "0")


def schema_of(file):
    """The whole schema: `schema` may be one operator's record, a list of them, or all of it."""
    given = getattr(file, "schema", None)
    if given is None:
        raise Refused("there is no variable `schema`: a dict with name, dims, inputs and outputs is right")
    if isinstance(given, dict) and "operators" in given:
        whole = dict(given)
    else:
        whole = {"operators": given}
    if not isinstance(whole["operators"], (list, tuple)):
        whole["operators"] = [whole["operators"]]
    whole.setdefault("fusediff_schema", 1)
    whole["operators"] = [with_paths(file, op, len(whole["operators"])) for op in whole["operators"]]
    return whole


def plain(value):
    """A number of numpy's as Python's."""
    if not hasattr(value, "item"):
        raise Refused("`schema`: %s is no text, number, list or dict" % ascii(value))
    return value.item()


def text_of_schema(schema):
    try:
        text = json.dumps(schema, allow_nan=False, default=plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused("`schema`: %s" % error)
    if len(text) > MOST_SCHEMA:
        raise Refused("`schema`: it takes more than 4 MiB")
    return text


def with_paths(file, op, count):
    if not isinstance(op, dict) or not isinstance(op.get("name"), str):
        raise Refused("`schema`: an operator is a dict with a `name`")
    if "paths" in op:
        return op
    paths = [path for path in PATHS if find(file, op["name"], path, count) is not None]
    if not paths:
        raise Refused("%s: there is no function %s" % (op["name"], spellings(op["name"], "fused", count)))
    return {**op, "paths": paths}


def spellings(op, path, count):
    return "%s_%s(...)" % (op, path) + (" or %s(...)" % path if count == 1 else "")


def find(file, op, path, count):
    """fused, or NAME_fused; only the latter where the file has several operators."""
    function = getattr(file, "%s_%s" % (op, path), None)
    if function is None and count == 1:
        function = getattr(file, path, None)
    return function if callable(function) else None


def listed(op, key):
    """What the record says, if it is a list: whether it should be one is for the reader of schemas to say."""
    return [one for one in op.get(key, ()) if one] if isinstance(op.get(key), (list, tuple)) else []


def names_in(op, *keys):
    return [one["name"] for key in keys for one in listed(op, key) if isinstance(one, dict) and "name" in one]


def functions_of(file, schema):
    """(operator, path) -> Function."""
    functions, count = {}, len(schema["operators"])
    for op in schema["operators"]:
        for path in listed(op, "paths"):
            function = find(file, op["name"], path, count)
            if function is None:
                raise Refused("%s: the path %s has no function: %s is right" % (
                    op["name"], path, spellings(op["name"], path, count)))
            functions[op["name"], path] = Function(function, op, path)
    return functions


class Function:
    """A function of the file and the names that it takes."""

    def __init__(self, function, op, path):
        self.function, self.path = function, path
        self.takes_any, self.names, self.required = False, set(), set()
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            self.takes_any, parameters = True, ()  # of C: what it takes shows when it is called
        for p in parameters:
            if p.kind == p.VAR_KEYWORD:
                self.takes_any = True
            elif p.kind == p.POSITIONAL_ONLY:
                raise Refused("%s: arguments are passed by name, and %s may not be" % (path, p.name))
            elif p.kind != p.VAR_POSITIONAL:
                self.names.add(p.name)
                if p.default is p.empty:
                    self.required.add(p.name)
        known = names_in(op, "inputs", "attrs")
        self.takes_out, self.takes_context = (w in self.names and w not in known for w in ("out", "context"))
        if known and "like" not in op:
            wrong = self.unknown(known)
            if wrong:
                raise Refused(wrong)

    def unknown(self, known):
        """"", or which parameter nothing is passed to."""
        for name in sorted(self.required - set(known) - {"out", "context"}):
            return "%s takes %s, which is no input or attribute; these are %s, and out and context may be asked for" % (
                self.path, name, ", ".join(known))
        return ""

    def takes(self, name):
        return self.takes_any or name in self.names


def ours(name):
    """A module from beside this one, although the user's own folder is what is searched by now."""
    spec = importlib.util.spec_from_file_location(name, OURS + name + ".py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arrays_of(file, region):
    kind = getattr(file, "arrays", "numpy")
    if kind not in ("numpy", "torch"):
        raise Refused("arrays = %r: \"numpy\" and \"torch\" are right" % (kind,))
    device = getattr(file, "device", None)
    if device is not None and kind == "numpy":
        raise Refused("device = %r needs arrays = \"torch\"" % (str(device),))
    try:
        return ours("fusediff_" + kind).Arrays(region, device)
    except ImportError as error:
        raise Refused("%s cannot import %s (%s): install it there, or name an interpreter that has it in "
                      "FUSEDIFF_PYTHON" % (sys.executable, kind, error))
    except RuntimeError as error:
        raise Refused("device = %r: %s" % (str(device), error))
