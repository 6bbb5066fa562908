# ---- what is looked for: a gradient that is not the derivative -----------------------------------------------------


def look(target, against, say, args):
    """Element by element against the difference quotient of the forward, else against the f64 backward. The bug is
    there while the gradient is at least half as far away as it was."""
    side = "against" if FINDING["accused"] == "against" and CALLS["against"] else "target"
    library, plan = accused_calls(target, against)[0]
    mine = outputs_alone(library, plan)
    there, asked = False, 0
    for sweep in FINDING["sweeps"]:
        name, dtype, at = sweep["output"], dtype_of(plan, sweep["output"]), sweep["index"]
        was = sweep[side] if sweep[side] is not None else sweep["truth"]
        if at < 0 or name not in mine or was is None:
            continue
        now, asked = float(values(dtype, mine[name])[at]), asked + 1
        say("%s[%d]: %s, difference quotient %.9g (error at most %.1e), recorded gradient %.9g" % (
            name, at, show(dtype, mine[name][at]), sweep["quotient"], sweep["error"], was))
        far = abs(was - sweep["quotient"])
        there = there or not abs(now - sweep["quotient"]) < 0.5 * far
    if asked:
        return there
    name = FINDING["output"]  # a direction through all elements was seen: the truth says the same by element
    dtype, wrong = dtype_of(plan, name), unpack(side + "/" + name, OUTPUTS, "outputs.safetensors")
    if "truth/" + name not in RECORDED_OUTPUTS:
        say("%s: %s as recorded" % (name, "the same bits" if np.array_equal(mine[name], wrong) else "other bits"))
        return bool(np.array_equal(mine[name], wrong))
    truth = values("f64", unpack("truth/" + name, OUTPUTS, "outputs.safetensors"))
    now, was = (float(np.linalg.norm(values(dtype, bits) - truth)) for bits in (mine[name], wrong))
    say("%s: distance from the f64 backward %.6g, recorded %.6g" % (name, now, was))
    if was == 0:  # the f64 backward is as wrong
        return bool(np.array_equal(mine[name], wrong))
    return not now < 0.5 * was


