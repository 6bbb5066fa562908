# ---- what is looked for: memory beside the tensors that is touched, and calls that do not come back ----------------


def look(target, against, say, args):
    """In a process of its own: makes the calls, then looks at the bytes around the tensors."""
    access = READ_ONLY if args.how == "read_only" else NO_ACCESS
    middle = [FINDING["output"]] if args.how == "middle" else []
    there = False
    if EXPERIMENT["kind"] in ("threads", "repeat", "history"):
        alone = [outputs_alone(target, plan) for plan in CALLS["target"]]
        for seed in range(args.runs or 20):
            together(target, seed, 0.25, alone)
    for library, plan in accused_calls(target, against):
        call = run_alone(library, plan, middle=middle, guard=access)
        if call.status not in STATUS:
            say("%s, path %s: returned %d, which is no status" % (plan["op"], plan["path"], call.status))
            there = there or FINDING["class"] == "crash"
        for memory in call.all_memory():
            there = say_overruns(say, call, memory) or there
        call.close()
    if not there:
        say("the calls come back, and every byte beside their tensors is as it was")
    return there


def say_overruns(say, call, memory):
    """Bytes in the pages of a tensor that are not its elements must hold the guard fill still."""
    around = memory.bytes.copy()
    names = [name for name, m in call.memory.items() if m is memory] or ["workspace"]
    for t in call.plan["inputs"] + call.plan["outputs"]:
        if t["name"] in names:
            memory.view(t, around)[...] = filled(t["dtype"], call.guard_fill)
    if names == ["workspace"]:
        around[memory.first:memory.first + memory.size] = call.guard_fill
    where, ends = np.flatnonzero(around != call.guard_fill), memory.first + memory.size
    for what, hit in (("before", where[where < memory.first]), ("behind", where[where >= ends]),
                      ("in the gaps of", where[(where >= memory.first) & (where < ends)])):
        if len(hit):
            far = {"before": memory.first - hit[-1], "behind": hit[0] - ends + 1}.get(what, hit[0] - memory.first)
            say("%d bytes %s %s changed, the first %d bytes away" % (len(hit), what, names[-1], far))
    return len(where) > 0 and FINDING["class"] == "overrun"


def decide(args, say):
    """The same calls in three processes: as recorded, with the tensor away from the closed pages, and with those pages
    open for reading."""
    plain = in_own_process(args, say)
    if plain is not None:
        return plain
    if FINDING["class"] in ("crash", "hang"):
        return True
    beside = FINDING["output"]
    say("again, with %s in the middle of its pages:" % beside)
    if in_own_process(args, say, "middle") is not None:
        say("the call comes back: it is memory beside %s that it touches" % beside)
    say("again, with the pages beside the tensors open for reading:")
    if in_own_process(args, say, "read_only") is None:
        say("what it does there is a write")
    else:
        say("the call comes back: what it does there is a read")
    return True


