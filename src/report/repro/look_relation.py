# ---- what is looked for: two ways to compute the same, which must give the same bits -------------------------------


def look(target, against, say, args):
    runs = [outputs_alone(target, plan) for plan in CALLS["target"]]
    there = False
    for same in SAME:
        name, (first, second) = same["output"], same["calls"]
        dtype = dtype_of(CALLS["target"][first], name)
        picks = [elements(same["elements"][i], len(runs[run][name])) for i, run in enumerate((first, second))]
        a, b = runs[first][name][picks[0]], runs[second][name][picks[1]]
        where = np.flatnonzero(other_bits(dtype, a, b))
        if len(where) == 0:
            say("%s: all %d elements that must be equal are" % (name, len(a)))
            continue
        apart = ulps(dtype, a, b)
        say("%s (%s): %d of %d elements differ, at most %s" % (
            name, dtype, len(where), len(a), ulp_words(int(np.max(apart[where])))))
        for label, at in [("first", where[0]), ("worst", where[np.argmax(apart[where])])][:1 + (len(where) > 1)]:
            say("  %s: %s %s at index %d, %s %s at index %d" % (
                label, NAMES[0], show(dtype, a[at]), picks[0][at], NAMES[1], show(dtype, b[at]), picks[1][at]))
        there = there or name == FINDING["output"]
    return there


def elements(runs, count):
    """Indexes from runs [first, step, count]; none: all elements."""
    if not runs:
        return np.arange(count)
    return np.concatenate([first + step * np.arange(n) for first, step, n in runs])


