# ---- what is looked for: bytes that were there before the call -----------------------------------------------------


def look(target, against, say, args):
    """Each call again with other bytes in the outputs, in the workspace, and around the tensors, one at a time. A byte
    that holds the fill of its output both times was not written; one that changes with any other fill was read from
    where nobody wrote."""
    there = False
    for library, plan in accused_calls(target, against):
        runs = {which: [outputs_alone_filled(library, plan, which) for _ in range(2)]
                for which in ((), ("output",), ("workspace",), ("guard",))}
        for t in plan["outputs"]:
            name = t["name"]
            if not t["wanted"] or "on" in t:
                continue
            bits = {which: [run[name].view(np.uint8) for run in pair] for which, pair in runs.items()}
            total = len(bits[()][0])
            kept = (bits[()][0] == FILLS["output"][0]) & (bits[("output",)][0] == FILLS["output"][1])
            if np.any(kept):
                say("%s %d/%d bytes unwritten: %s" % (name, np.sum(kept), total, spans(kept)))
                there = there or (FINDING["class"] == "unwritten" and name in FINDING["filled"])
            for which in (("output",), ("workspace",), ("guard",)):
                steady = (bits[()][0] == bits[()][1]) & (bits[which][0] == bits[which][1])
                follows = steady & (bits[()][0] != bits[which][0]) & ~kept
                if np.any(follows):
                    say("%s %d/%d bytes follow the %s fill: %s" % (
                        name, np.sum(follows), total, which[0], spans(follows)))
                    is_it = FINDING["class"] == ("overread" if which[0] == "guard" else "dirty")
                    there = there or (is_it and name in FINDING["filled"])
    if not there:
        say("no byte of %s depends on what memory held before the call" % ", ".join(FINDING["filled"]))
    return there


def outputs_alone_filled(library, plan, which):
    return outputs_alone(library, plan, second=which)


def spans(flags):
    """The first few ranges of set flags."""
    at = np.flatnonzero(flags)
    cuts = np.flatnonzero(np.diff(at) > 1)
    ends = list(zip(np.r_[at[0], at[cuts + 1]], np.r_[at[cuts], at[-1]]))
    return " ".join("%d..%d" % end for end in ends[:6]) + (" ..." if len(ends) > 6 else "")


