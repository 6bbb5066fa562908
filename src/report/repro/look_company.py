# ---- what is looked for: another result beside other calls, or after them, than alone ------------------------------


def look(target, against, say, args):
    """Until it shows, and then a little longer to say how often. A race may need many tries."""
    alone = [outputs_alone(target, plan) for plan in CALLS["target"]]
    threads = EXPERIMENT["kind"] == "threads"
    most = args.runs or (10**9 if threads else 100)
    ends = time.monotonic() + args.seconds
    tries = calls = wrong_calls = wrong_tries = 0
    cpus, results = os.sched_getaffinity(0), set()
    while time.monotonic() < ends and tries < most:
        # In turn: on all CPUs, where calls overlap, and on one, where threads that wake interrupt others.
        os.sched_setaffinity(0, {min(cpus)} if threads and tries % 2 else cpus)
        total = together(target, tries, 0.25, alone, sleepy=tries % 4 in (1, 2))
        tries += 1
        wrong = []
        for n, tally in enumerate(total if threads else total[:1]):
            calls += tally.calls
            wrong += [(n, status, outputs) for status, outputs in tally.wrong if is_wrong(n, status, outputs, alone[n])]
        if wrong and not results:
            say_wrong(say, *wrong[0], alone[wrong[0][0]])
            ends = min(ends, time.monotonic() + 2)
        wrong_calls, wrong_tries = wrong_calls + len(wrong), wrong_tries + bool(wrong)
        results.update((n, status) + tuple(o.tobytes() for o in outputs.values()) for n, status, outputs in wrong)
    os.sched_setaffinity(0, cpus)
    say("%d of %d calls gave other bits than alone, in %d of %d tries, %d different wrong results; recorded: %s" % (
        wrong_calls, calls, wrong_tries, tries, len(results), FINDING["rate"]))
    if threads and not results:
        say("it did not show in these tries, which does not prove that it cannot")
    return bool(results)


def is_wrong(n, status, outputs, alone):
    wanted = [t for t in CALLS["target"][n]["outputs"] if t["wanted"]]
    return status != OK or any(np.any(other_bits(t["dtype"], outputs[t["name"]], alone[t["name"]])) for t in wanted)


def say_wrong(say, n, status, outputs, alone):
    who = "the case" if n == 0 else "call %d beside it (%s)" % (n, CALLS["target"][n]["op"])
    if status != OK:
        return say("%s ended in %s; alone it succeeds" % (who, STATUS.get(status, status)))
    for t in CALLS["target"][n]["outputs"]:
        if not t["wanted"]:
            continue
        a, b = outputs[t["name"]], alone[t["name"]]
        where = np.flatnonzero(other_bits(t["dtype"], a, b))
        if len(where):
            say("%s: %s differs in %d of %d elements, at most %s; first at index %d: %s, alone %s" % (
                who, t["name"], len(where), len(a), ulp_words(int(np.max(ulps(t["dtype"], a, b)))), where[0],
                show(t["dtype"], a[where[0]]), show(t["dtype"], b[where[0]])))


