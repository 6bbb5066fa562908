# ---- one call ------------------------------------------------------------------------------------------------------


class Call:
    """A recorded call, ready to be made on one context any number of times. middle: tensors that are to lie away from
    the closed pages. After run(): status, error, outputs, and what was damaged."""

    def __init__(self, library, context, plan, middle=(), guard=NO_ACCESS):
        self.library, self.context, self.plan, self.guard, self.middle = library, context, plan, guard, middle
        self.memory, self.workspace, self.right = {}, None, None
        for at, tensor in enumerate(plan["inputs"]):
            above = [o for o in plan["outputs"] if o["wanted"] and o.get("on") == tensor["name"]]  # lies on this input
            self.place(tensor, tensor["present"], above)
        for tensor in plan["outputs"]:
            if tensor["wanted"] and tensor.get("on") in self.memory:
                self.memory[tensor["name"]] = self.memory[tensor["on"]]
            else:
                self.place(tensor, tensor["wanted"], [])
        self.sent = {t["name"]: unpack(t["stored"], INPUTS, "inputs.safetensors").reshape(t["shape"])
                     for t in plan["inputs"] if t["present"]}
        self.prepared = library.prepared(plan, self.memory)

    def place(self, tensor, wanted, above):
        size = max([extent(t) for t in [tensor] + above])
        if not wanted or size == 0:
            return
        align = max([t["align"] for t in [tensor] + above])
        middle = tensor["name"] in self.middle or "middle" in [t["place"] for t in above]
        place = "middle" if middle else tensor["place"]
        offset = tensor["offset"] * raw_type(tensor["dtype"]).itemsize
        self.memory[tensor["name"]] = Memory(self.library, self.context, size, align, place, offset, self.guard)

    def fill(self, second=()):
        """Memory as it is before a call. second: of which memory to use the second fill."""
        fill = {name: FILLS[name][name in second] for name in FILLS}
        self.guard_fill = fill["guard"]
        for memory in self.memory.values():
            memory.bytes.fill(fill["guard"])
        if self.workspace:
            self.workspace.bytes.fill(fill["guard"])
            self.workspace.bytes[self.workspace.first:self.workspace.first + self.workspace.size] = fill["workspace"]
        for t in self.plan["outputs"]:
            if t["name"] in self.memory and t.get("on") not in self.memory:
                self.memory[t["name"]].view(t)[...] = filled(t["dtype"], fill["output"])
        for t in self.plan["inputs"]:
            if t["name"] in self.memory:
                self.memory[t["name"]].view(t)[...] = self.sent[t["name"]]

    def all_memory(self):
        return list({id(m): m for m in list(self.memory.values()) + [self.workspace] if m}.values())

    def run(self, second=()):
        """Both stages of the call, as fusediff makes them."""
        self.status, needed = OK, 0
        if self.library.asks_workspace:
            self.prepared.workspace, self.prepared.workspace_size = None, 0
            self.status, needed = self.library.workspace_bytes(self.context, self.prepared)
        needed = needed if self.status == OK else 0
        if self.workspace and self.workspace.size != needed:
            self.workspace = self.workspace.free()
        if needed and not self.workspace:
            place = "middle" if "workspace" in self.middle else "end"
            self.workspace = Memory(self.library, self.context, needed, 64, place, 0, self.guard)
        self.fill(second)
        for memory in self.all_memory():
            memory.send()
        if self.status == OK:
            self.prepared.workspace, self.prepared.workspace_size = self.workspace.address if needed else None, needed
            self.status = self.library.run(self.context, self.prepared)
        self.error = self.library.why(self.status) if self.status != OK else ""
        for memory in self.all_memory():
            memory.fetch()
        return self

    def again(self):
        """The same call as fast as possible: without new fills where none are needed, so that calls of several threads
        follow each other closely."""
        if self.library.owns_memory or any("on" in t for t in self.plan["outputs"]):
            return self.run()
        if self.library.asks_workspace:
            self.library.workspace_bytes(self.context, self.prepared)
        self.status = self.library.run(self.context, self.prepared)

    def gave_other_bytes(self, right):
        """Whether any output is other than `right`, {name: elements}; compared as bytes."""
        if self.right is None:
            self.right = []
            for t in self.plan["outputs"]:
                if t["name"] in self.memory:
                    memory = self.memory[t["name"]]
                    copy = memory.bytes.copy()
                    memory.view(t, copy)[...] = right[t["name"]].reshape(t["shape"])
                    span = slice(memory.first, memory.first + extent(t))
                    self.right.append((memory.bytes[span], copy[span].tobytes()))
        return any(now.tobytes() != then for now, then in self.right)

    def outputs(self):
        """Copies of the elements of every wanted output, flat raw bits."""
        found = {}
        for t in self.plan["outputs"]:
            if t["wanted"]:
                found[t["name"]] = np.zeros(0, raw_type(t["dtype"]))  # no elements, no memory
                if t["name"] in self.memory:
                    found[t["name"]] = self.memory[t["name"]].view(t).reshape(-1).copy()
        return found

    def must_succeed(self):
        if self.status == UNSUPPORTED:
            raise Unusable("%s does not offer %s, path %s, for this call: %s" % (
                self.library.path, self.plan["op"], self.plan["path"], self.error))
        if self.status != OK:
            raise Unusable("%s: %s, path %s, ended in %s: without its outputs there is nothing to compare" % (
                self.library.path, self.plan["op"], self.plan["path"], self.error))
        return self

    def free(self):
        self.right = None
        for memory in self.all_memory():
            memory.free()

    def close(self):
        self.free()
        self.library.close(self.context)


def dtype_of(plan, output):
    return next(t["dtype"] for t in plan["outputs"] + plan["inputs"] if t["name"] == output)


def run_alone(library, plan, second=(), pinned=None, **how):
    """The call on a fresh context with nothing else in flight."""
    cpus = os.sched_getaffinity(0)
    if plan["pinned"] if pinned is None else pinned:
        os.sched_setaffinity(0, {min(cpus)})
    try:
        call = Call(library, library.open(), plan, **how)
        return call.run(second)
    finally:
        os.sched_setaffinity(0, cpus)


def outputs_alone(library, plan, **how):
    call = run_alone(library, plan, **how).must_succeed()
    outputs = call.outputs()
    call.close()
    return outputs


