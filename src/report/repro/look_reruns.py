# ---- what is looked for: one path that disagrees with itself -------------------------------------------------------


def look(target, against, say, args):
    """The same call again and again, each time on a fresh context with nothing else in flight, every other time kept on
    one CPU: until it differs, and then a while longer to say how often."""
    library, plan = accused_calls(target, against)[0]
    first = outputs_alone(library, plan, pinned=False)
    ends = time.monotonic() + args.seconds
    runs, differing, shown = [0, 0], [0, 0], False
    while time.monotonic() < ends and sum(runs) < (args.runs or 10**9):
        pinned = sum(runs) % 2
        again = outputs_alone(library, plan, pinned=bool(pinned))
        runs[pinned] += 1
        wanted = [t for t in plan["outputs"] if t["wanted"]]
        found = [t for t in wanted if np.any(other_bits(t["dtype"], first[t["name"]], again[t["name"]]))]
        differing[pinned] += bool(found)
        for t in found if not shown else []:
            a, b = first[t["name"]], again[t["name"]]
            where = np.flatnonzero(other_bits(t["dtype"], a, b))
            say("%s: %d of %d elements differ from the first run, at most %s; first at index %d: %s, then %s" % (
                t["name"], len(where), len(a), ulp_words(int(np.max(ulps(t["dtype"], a, b)))), where[0],
                show(t["dtype"], a[where[0]]), show(t["dtype"], b[where[0]])))
            ends, shown = min(ends, time.monotonic() + 2), True
    say("path %s differs from its first run in %d of %d reruns (%d of %d kept on one CPU); recorded: %s" % (
        plan["path"], sum(differing), sum(runs), differing[1], runs[1], FINDING["rate"]))
    return shown


