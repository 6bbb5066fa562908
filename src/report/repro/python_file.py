# ---- the Python file of the target ---------------------------------------------------------------------------------
# Its functions are called as fusediff calls them: NAME_PATH, or PATH where the file has one operator, with inputs and
# attributes by name, `out` (the outputs, to be written into) and `context` (what open_context(options) returned). They
# get numpy arrays, or torch tensors where the file says arrays = "torch", that lie on the memory below.


class Misused(Exception):
    """A function breaks a rule of Python targets."""


class PythonFile:
    """A target's Python file, loaded."""
    owns_memory = asks_workspace = False

    def __init__(self, path, options):
        self.path, self.options, self.said = path, options, threading.local()
        file = os.path.abspath(path)
        name = os.path.splitext(os.path.basename(file))[0]
        name = "target_" + name if name in sys.modules else name
        sys.path.insert(0, os.path.dirname(file))
        sys.argv = [file]
        sys.setswitchinterval(20e-6)  # threads change places within a short call
        spec = importlib.util.spec_from_file_location(name, file)
        self.file = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(self.file)
            given = self.file.schema
            given = given["operators"] if isinstance(given, dict) and "operators" in given else given
            self.operators = list(given) if isinstance(given, (list, tuple)) else [given]
            self.arrays = TorchArrays(self.file) if getattr(self.file, "arrays", "numpy") == "torch" else NumpyArrays()
        except BaseException as error:
            raise Unusable("cannot use %s as a target: %s: %s" % (path, type(error).__name__, error))

    def open(self):
        maker = getattr(self.file, "open_context", None)
        try:
            if self.options and not maker:
                raise ValueError("it has no function open_context(options), which takes %r" % self.options)
            return maker(self.options) if maker else None
        except Exception as error:
            raise Unusable("%s will not open: %s: %s" % (self.path, type(error).__name__, error))

    def close(self, context):
        getattr(self.file, "close_context", lambda context: None)(context)

    def schema(self):
        return {"operators": self.operators}

    def function(self, op, path):
        found = getattr(self.file, "%s_%s" % (op, path), None)
        return found or (getattr(self.file, path, None) if len(self.operators) == 1 else None)

    def prepared(self, plan, memory):
        return PythonCall(self, plan, memory)

    def run(self, context, call):
        try:
            call.run(context)
            return OK
        except BaseException as error:  # exit() too ends the call alone
            kind = "" if isinstance(error, Misused) else type(error).__name__ + ": "
            self.said.words = kind + " ".join(str(error).split()) + self.where(error)
            if isinstance(error, NotImplementedError) or self.arrays.is_unsupported(error):
                return UNSUPPORTED
            return REJECTED if isinstance(error, ValueError) else FAILED

    def why(self, status):
        return "%s: %s" % (STATUS[status], self.said.words)

    def where(self, error):
        """The last line of the file that the error came through."""
        at, trace = "", error.__traceback__
        while trace:
            if trace.tb_frame.f_code.co_filename == self.file.__file__:
                at = " (%s:%d in %s)" % (os.path.basename(self.path), trace.tb_lineno, trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        return at


class PythonCall:
    """One call of a function, ready to be made any number of times."""

    def __init__(self, library, plan, memory):
        self.plan, self.arrays, self.function = plan, library.arrays, library.function(plan["op"], plan["path"])
        if self.function is None:
            raise Unusable("%s has no function %s_%s" % (library.path, plan["op"], plan["path"]))
        try:
            parameters = inspect.signature(self.function).parameters.values()
            names, every = {p.name for p in parameters}, any(p.kind == p.VAR_KEYWORD for p in parameters)
        except (TypeError, ValueError):  # of C
            names, every = set(), True
        record = next((op for op in library.operators if op.get("name") == plan["op"]), {})
        flags = [attr["name"] for attr in record.get("attrs", []) if "bool" in attr]
        attrs = {name: bool(value) if name in flags else value for name, value in plan["attrs"].items()}
        inputs = {t["name"]: self.arrays.on(t, memory) for t in plan["inputs"]}
        self.inputs = {name: array for name, array in inputs.items() if every or name in names}
        self.attrs = {name: value for name, value in attrs.items() if every or name in names}
        self.outputs = {t["name"]: self.arrays.on(t, memory) for t in plan["outputs"]}
        self.wanted = {t["name"]: t for t in plan["outputs"]}
        known = list(inputs) + list(attrs)
        self.takes_context, self.takes_out = [w in names and w not in known for w in ("context", "out")]
        # What is returned may be a view of an input that another output is about to be written over.
        self.is_tangled = len(self.outputs) > 1 and any("on" in t for t in plan["outputs"])

    def run(self, context):
        arguments, out, give_back = self.arrays.lend(self.inputs, self.outputs if self.takes_out else {})
        arguments.update(self.attrs)
        if self.takes_context:
            arguments["context"] = context
        if self.takes_out:
            arguments["out"] = out
        result = self.function(**arguments)
        give_back()
        if result is not None or not self.takes_out:
            values = {name: value for name, value in self.named(result).items() if value is not None}
            if self.is_tangled:
                values = {name: self.arrays.copied(value) for name, value in values.items()}
            for name, value in values.items():
                self.store(name, value)

    def named(self, result):
        names = list(self.wanted)
        if not isinstance(result, dict):
            result = list(result) if isinstance(result, (tuple, list)) else [result]
            if len(result) != len(names) or (len(names) == 1 and result[0] is None):
                raise Misused("it returned %s for the outputs %s" % (
                    "nothing" if result == [None] else "%d values" % len(result), ", ".join(names)))
            result = dict(zip(names, result))
        for name in result:
            if name not in names:
                raise Misused("it returned %s, which is no output; these are %s" % (name, ", ".join(names)))
        return result

    def store(self, name, value):
        tensor, value = self.wanted[name], self.arrays.made(value)
        if list(value.shape) != tensor["shape"] or value.dtype != self.arrays.kind(tensor["dtype"]):
            raise Misused("the %s that it returned has shape %s, %s; %s, %s is right" % (
                name, list(value.shape), value.dtype, tensor["shape"], self.arrays.kind(tensor["dtype"])))
        if self.outputs[name] is not None and 0 not in tensor["shape"]:
            self.arrays.store(self.outputs[name], value)


class NumpyArrays:
    def kind(self, dtype):
        kinds = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
        if dtype in kinds:
            try:
                return np.dtype(getattr(importlib.import_module("ml_dtypes"), kinds[dtype]))
            except ImportError:
                raise Unusable("numpy alone has no %s: ml_dtypes is needed" % dtype)
        return np.dtype("?" if dtype == "bool" else dtype[0] + str(raw_type(dtype).itemsize))

    def on(self, tensor, memory):
        """The array of a tensor on its memory; None where it is absent or not wanted."""
        if 0 in tensor["shape"]:
            return np.empty(tensor["shape"], self.kind(tensor["dtype"]))
        at = memory.get(tensor["name"])
        return at and at.view(tensor).view(self.kind(tensor["dtype"]))

    def lend(self, inputs, outputs):
        """Fresh arrays for one call, and what to do when it is over."""
        np.seterr(all="ignore")  # of this thread
        fresh = [{name: array if array is None else array.view() for name, array in some.items()}
                 for some in (inputs, outputs)]
        return fresh[0], fresh[1], lambda: None

    def made(self, value):
        return np.asarray(value)

    def copied(self, value):
        return np.array(value)

    def store(self, into, value):
        into[...] = value

    def is_unsupported(self, error):
        return False


class TorchArrays:
    """A tensor's place is its bytes, from the first element to the last, and how its elements lie there."""

    def __init__(self, file):
        self.torch = importlib.import_module("torch")
        device = getattr(file, "device", None)
        self.device = None if device in (None, "cpu") else self.torch.device(device)

    def kind(self, dtype):
        kinds = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "u8": "uint8",
                 "bool": "bool"}
        name = kinds.get(dtype) or ("float" if dtype[0] == "f" else "int") + dtype[1:]
        if not hasattr(self.torch, name):
            raise Unusable("torch %s has no %s" % (self.torch.__version__, name))
        return getattr(self.torch, name)

    def on(self, tensor, memory):
        at, uint8 = memory.get(tensor["name"]), self.torch.uint8
        if at is None and 0 not in tensor["shape"]:
            return None
        flat = self.torch.empty(0, dtype=uint8)
        if 0 not in tensor["shape"]:
            flat = self.torch.frombuffer(at.bytes, dtype=uint8, offset=at.first, count=extent(tensor))
        return flat, self.kind(tensor["dtype"]), tensor["shape"], tensor["stride"]

    def laid(self, place, flat=None):
        mine, kind, shape, stride = place
        flat = mine if flat is None else flat[:len(mine)]
        return flat.view(kind).as_strided(shape, stride)

    def lend(self, inputs, outputs):
        """On another device all bytes are copied there, gaps included, and back."""
        places = [p for some in (inputs, outputs) for p in some.values() if p is not None]
        whole = {}  # where several tensors lie on one memory, the longest
        for flat, *_ in places:
            if len(flat) >= len(whole.get(flat.data_ptr(), ())):
                whole[flat.data_ptr()] = flat
        there = {at: flat if self.device is None else flat.to(self.device) for at, flat in whole.items()}

        def give_back():
            for at, flat in there.items() if self.device is not None else ():
                whole[at].copy_(flat)

        fresh = [{name: p if p is None else self.laid(p, there[p[0].data_ptr()]) for name, p in some.items()}
                 for some in (inputs, outputs)]
        return fresh[0], fresh[1], give_back

    def made(self, value):
        return self.torch.as_tensor(value).detach()

    def copied(self, value):
        return value.clone() if isinstance(value, self.torch.Tensor) else value

    def store(self, into, value):
        self.laid(into).copy_(value)

    def is_unsupported(self, error):
        return isinstance(error, RuntimeError) and "not implemented for '" in str(error)


