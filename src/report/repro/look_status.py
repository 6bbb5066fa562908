# ---- what is looked for: the schema and the operator disagree on what is legal -------------------------------------


def look(target, against, say, args):
    for library, plan in accused_calls(target, against)[:1]:
        call = run_alone(library, plan)
        what = "%s, path %s, ended in %s" % (plan["op"], plan["path"], call.error or "OK")
        call.close()
        if call.status == UNSUPPORTED:
            raise Unusable(what + ": the library does not offer this call")
        if FINDING["class"] == "accepted_illegal":
            say(what + "; the schema forbids this call, so it must be REJECTED")
            return call.status != REJECTED
        say(what + "; the schema allows this call, so it must be OK")
        return call.status != OK


