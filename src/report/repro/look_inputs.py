# ---- what is looked for: inputs that the call changes --------------------------------------------------------------


def look(target, against, say, args):
    there = False
    for library, plan in accused_calls(target, against):
        call = run_alone(library, plan)
        for t in plan["inputs"]:
            covered = any(o["wanted"] and o.get("on") == t["name"] for o in plan["outputs"])
            if t["name"] not in call.memory or covered:
                continue
            now, sent = call.memory[t["name"]].view(t).reshape(-1), call.sent[t["name"]].reshape(-1)
            where = np.flatnonzero(now != sent)
            if len(where) == 0:
                continue
            at = where[0]
            say("%s: %d of %d elements of the input changed; first at index %d: sent %s, afterwards %s" % (
                t["name"], len(where), len(now), at, show(t["dtype"], sent[at]), show(t["dtype"], now[at])))
            there = there or t["name"] == FINDING["output"]
        call.close()
    if not there:
        say("%s holds after the call what was sent" % FINDING["output"])
    return there


