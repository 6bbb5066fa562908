"""One call of a function of a Python target, from the message that asks for it to the outputs that lie where they belong."""
import struct

from fusediff_errors import Misused


def value_of(attr):
    """A float comes as its bits."""
    return struct.unpack("<d", struct.pack("<Q", attr["f64"]))[0] if isinstance(attr, dict) else attr


class Call:
    """Ready to be made any number of times."""

    def __init__(self, function, message, arrays, bools):
        self.function, self.arrays = function, arrays
        attrs = {name: value_of(value) for name, value in message["attrs"].items()}
        attrs.update({name: bool(attrs[name]) for name in bools if name in attrs})
        inputs, outputs = message["inputs"], message["outputs"]
        wrong = function.unknown([t["name"] for t in inputs] + list(attrs))
        if wrong:
            raise Misused(wrong)
        views = {t["name"]: arrays.view(t) for t in inputs}
        self.inputs = {name: view for name, view in views.items() if function.takes(name)}
        self.attrs = {name: value for name, value in attrs.items() if function.takes(name)}
        self.outputs = {t["name"]: arrays.view(t) for t in outputs}
        self.lent_outputs = self.outputs if function.takes_out else {}
        self.wanted = {t["name"]: (tuple(t["shape"]), t["dtype"]) for t in outputs}
        places = {t["at"] for t in inputs if "at" in t}
        # What a function returns may be a view of an input that another output is about to be written over.
        self.is_tangled = len(outputs) > 1 and any(t.get("at") in places for t in outputs)

    def run(self, context):
        function = self.function
        arguments, out, give_back = self.arrays.lend(self.inputs, self.lent_outputs)
        arguments.update(self.attrs)
        if function.takes_context:
            arguments["context"] = context
        if function.takes_out:
            arguments["out"] = out
        result = function.function(**arguments)
        if give_back is not None:
            give_back()
        if result is not None or not function.takes_out:
            self.store(result)

    def store(self, result):
        arrays = self.arrays
        values = {name: value for name, value in self.named(result).items() if value is not None}
        if self.is_tangled:
            values = {name: arrays.kept(value) for name, value in values.items()}
        for name, value in values.items():
            what = "%s: the %s that it returned" % (self.function.path, name)
            arrays.store(what, self.outputs[name], value, *self.wanted[name])

    def named(self, result):
        names, path = list(self.wanted), self.function.path
        if isinstance(result, dict):
            for name in result:
                if name not in self.wanted:
                    raise Misused("%s returned %s, which is no output; these are %s" % (path, name, ", ".join(names)))
            return result
        if isinstance(result, (tuple, list)):
            if len(result) != len(names):
                raise Misused("%s returned %d values for %d outputs (%s); None stands for one that is not given" % (
                    path, len(result), len(names), ", ".join(names)))
            return dict(zip(names, result))
        if len(names) != 1:
            raise Misused("%s returned %s for %d outputs (%s); a tuple or a dict is right" % (
                path, "nothing" if result is None else "one value", len(names), ", ".join(names)))
        if result is None:
            raise Misused("%s returned None: an array for %s is right, or a parameter `out` to write into" % (
                path, names[0]))
        return {names[0]: result}
