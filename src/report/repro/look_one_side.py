# ---- what is looked for: an output that is wrong whatever the other side gives -------------------------------------


def look(target, against, say, args):
    """Its rule where it is known, else whether it has the same wrong bits as were recorded."""
    name, there = FINDING["output"], False
    for library, plan in accused_calls(target, against):
        if not any(t["name"] == name and t["wanted"] for t in plan["outputs"]):
            continue
        bits = outputs_alone(library, plan)[name]
        if FINDING["rule"]:
            there = breaks_rule(say, plan, bits) or there
            continue
        wrong = unpack(FINDING["accused"] + "/" + name, OUTPUTS, "outputs.safetensors")
        same = bool(np.array_equal(bits, wrong))
        say("%s: %s bits as recorded" % (name, "the same wrong" if same else "not the wrong"))
        there = there or same
    return there


def breaks_rule(say, plan, bits):
    """Every correct output obeys it, whatever the other side gives."""
    rule, dtype = FINDING["rule"], dtype_of(plan, FINDING["output"])
    x = values(dtype, bits)
    shape = next(t["shape"] for t in plan["outputs"] if t["name"] == FINDING["output"])
    rows = x.reshape(-1, shape[-1] if shape else 1)
    kind = rule["kind"]
    if kind == "distinct":  # empty slots apart: where values stood twice when this was found
        a, b = (rows[rule["row"]][c] for c in rule["twice"])
        broken = a == b and a >= 0
        say("row %d, columns %d and %d: %d and %d" % (rule["row"], rule["twice"][0], rule["twice"][1], a, b))
    elif kind == "range":
        broken = bool(np.any((rows[rule["row"]] < rule["low"]) | (rows[rule["row"]] > rule["high"])))
        say("row %d: %s, legal %g..%g" % (rule["row"], rows[rule["row"]][:16].tolist(), rule["low"], rule["high"]))
    elif kind == "finite":
        broken = not np.all(np.isfinite(x))
        say("%d of %d elements are not finite; every input is" % (np.sum(~np.isfinite(x)), len(x)))
    elif kind == "row_sums":
        total = float(np.sum(rows[rule["row"]]))
        broken = not abs(total - rule["sum"]) <= rule["within"]
        say("row %d sums to %.6g, not to %g within %g" % (rule["row"], total, rule["sum"], rule["within"]))
    else:
        broken = sorted(rows[rule["row"]].tolist()) != list(range(rows.shape[1]))
        say("row %d: %s" % (rule["row"], rows[rule["row"]][:16].tolist()))
    say("the rule of %s (%s) is %s" % (FINDING["output"], kind, "broken" if broken else "kept"))
    return bool(broken)


