// ISSUE.md in English.
#include "report/issue_words.h"

namespace fusediff {
namespace {

// The engine writes English: its sentences stand as they are, columns in a few more words.
constexpr SentenceWords kSentences[] = {
    {"as it is", "at its own position"},
    {"first position", "at the first position"},
    {"as the case says", "laid out as in the case"},
    {"{0}; error against the f64 truth {1} ULP ({2}), {3} ULP ({4}); {5}",
     "{0}; error against the f64 truth {1} ULP ({2}), {3} ULP ({4}); {5}"},
    {"{0}; error against the f64 truth {1} ULP ({2}), {3} ULP ({4})",
     "{0}; error against the f64 truth {1} ULP ({2}), {3} ULP ({4})"},
    {"{0} holds {1} stands twice in row {2}, columns {3} and {4}",
     "{0} holds {1} twice in row {2}, in columns {3} and {4}"},
    {"{0} holds row {1} sums to {2}, not to {3} within {4}", "row {1} of {0} sums to {2}, not to {3} within {4}"},
    {"wrote 1 byte behind {0} (guard page)",
     "wrote behind {0}, to byte 1 past its end: a fault on the guard page there"},
    {"wrote {0} bytes behind {1} (guard page)",
     "wrote behind {1}, to byte {0} past its end: a fault on the guard page there"},
    {"read 1 byte behind {0} (guard page)", "read behind {0}, at byte 1 past its end: a fault on the guard page there"},
    {"read {0} bytes behind {1} (guard page)",
     "read behind {1}, at byte {0} past its end: a fault on the guard page there"},
    {"changed {0} behind {1}, the first {2} past its end",
     "changed {0} behind {1}, the first {2} past its end (with writable guard bytes there in place of the page)"},
};

}  // namespace

const IssueWords kEnglishIssue = {
    .classes = {{
        {"does not return within the time cap", "the call did not come back within the time cap",
         "The call returns within the time cap."},
        {"takes more memory than the cap allows", "the call took more memory than the cap allows",
         "The call stays within the memory cap: its demand follows from the sizes of its tensors."},
        {"writes outside {0}", "it wrote outside a buffer",
         "{1} writes only the bytes of its outputs and its workspace. What lies before and behind {0}, and between its "
         "elements where it is strided, keeps its content."},
        {"reads outside {0}", "it read outside a buffer",
         "{1} reads only the bytes of its tensors: the first byte before or behind {0} may belong to somebody else, or "
         "to no mapped page at all."},
        {"crashes", "the call ended in a signal, an exception or an exit",
         "The call returns one of the statuses of fusediff_target.h. No signal, no C++ exception and no exit leaves "
         "it."},
        {"leaves {0} unwritten", "it reported success and left output bytes as they were",
         "The call returns success, so every byte of {0} has been written by it."},
        {"{0} depends on what memory held before the call", "its result depends on what memory held before the call",
         "{0} depends on the inputs alone, whatever outputs and workspace hold before the call."},
        {"modifies its input {0}", "it changed an input that it may only read",
         "{0} is an input: after the call it holds the same bytes as before, also where the outputs are right."},
        {"is not deterministic in {0}", "the same call on a fresh context gives other bits",
         "The same call on a fresh context, with nothing else in flight, gives the same bits of {0} every time, or the "
         "record declares `deterministic: false` and an `agree` that allows for it."},
        {"calls in flight at the same time corrupt {0}", "other calls in flight or before it change the result",
         "{0} has the same bits as when the call runs alone, whatever else is in flight on the same context: the "
         "record "
         "declares that threads may share one."},
        {"refuses a call that its record allows", "it refuses a call that its schema allows",
         "The call obeys every constraint that is declared, so it succeeds; or the limit that it runs into is declared "
         "(in the record: `where`, and in the header or the documentation)."},
        {"accepts a call that its record forbids", "it accepts a call that its schema forbids",
         "The call breaks a declared constraint, so it returns REJECTED before anything is computed or written."},
        {"{0} breaks a rule that holds for every correct result",
         "a rule that holds for every correct output is broken",
         "{0} obeys the rules that the record states for every correct result."},
        {"{0} is not the derivative of the forward", "the backward is not the derivative of the forward",
         "{0} is the derivative of the forward, contracted with the upstream gradients."},
        {"{0} is NaN or infinite where it should be finite, or the reverse",
         "NaN or infinity on one side, where the other side and the truth are finite, or the reverse",
         "{0} is finite where the result in f64, rounded to its dtype, is finite, and only there."},
        {"picks another {0}", "another pick, because the ranks differ by rounding where they are equal or nearly so",
         "Both sides rank by numbers that are equal bit for bit, so they pick the same {0}."},
        {"{0} does not follow from its own ranking", "a pick that no ranking of its own explains",
         "{0} holds the best candidates by the side's own ranks, in order, each once, equals by the tie rule of the "
         "record."},
        {"{0} is wrong by more than rounding explains",
         "the difference is more than rounding explains, or nothing is there to show that it is rounding",
         "{0} is the result of the operator, up to rounding."},
        {"{0} differs by rounding", "the numbers differ, and rounding explains it: no side is outside its bound",
         "{0} has the same bits on both sides, or the record states by how much it may differ (`agree`, with a "
         "derivation)."},
        {"{0} has zeros of the other sign", "only the sign of zero differs",
         "{0} has the same bits on both sides, the signs of zeros included."},
        {"{0} has NaNs of other bits",
         "only payload or sign of NaN differs, which this output makes part of its contract",
         "{0} is moved, not computed (`nan: bits` in the record): NaNs keep their payload and their sign."},
    }},
    .relations = {{
        "when a row is computed alone instead of in its batch",
        "when the rows of the batch stand in another order",
        "when the batch is computed in two calls",
        "when tensors are strided instead of dense",
        "when tensors lie at other addresses modulo 64 bytes",
        "when an output lies on an input (in place)",
        "by the position in the row, for equal elements",
        "when the call is kept on one CPU",
    }},
    .experiments = {{
        "both sides once, on the same input bytes",
        "the same call again and again on one context",
        "one context shared by several threads",
        "one path in two ways that must give the same bits",
        "the backward against difference quotients of the forward",
        "after earlier calls on the same context",
    }},
    .gap = " ",
    .comma = ", ",
    .semicolon = "; ",
    .colon = ": ",
    .expected = "Expected",
    .actual = "Actual",
    .evidence = "Evidence",
    .smallest = "Smallest input",
    .run = "How to run it",
    .ruled_out = "Ruled out",
    .environment = "Environment",
    .reading = "How to read this",
    .title = "{0} ({1}): {2}{3}",
    .condition = " ({0})",
    .versus = "{0} against {1}",
    .title_bytes = "leaves {1} bytes of {0} unwritten",
    .title_error = "{0} is wrong, off by {1} ULP where rounding explains at most {2}",
    .title_deaf = "{0} does not follow {1}",
    .title_tie = "picks another {0}: {1} is off by {2}, which breaks a tie of {3}",
    .title_pick = "picks another {0}, because ranks differ",
    .title_relation = "{0} has other bits {1}",
    .title_relation_damage = "{0} is wrong {1}",
    .title_history = "{0} depends on earlier calls on the same context",
    .title_repeat = "a repeated call on one context gives another {0}",
    .title_rate = "{0} differs from run to run, in {1} of {2} reruns",
    .title_message = "{0}: {1}",
    .title_integer = "{0}, an integer output, differs",
    .row_op = "operator",
    .row_path = "path",
    .row_against = "compared with",
    .row_output = "output or tensor",
    .row_stage = "stage where it begins",
    .row_dtype = "dtype",
    .row_experiment = "what was done",
    .row_class = "class",
    .row_one_path = "the same path, {0} against {1}",
    .stage_of = "{0} ({1})",
    .expect_empty =
        "An empty dimension makes some tensors empty, not this one: a sum over nothing is zero and has to be "
        "stored.",
    .expect_distinct = "Here: the values of a row of {0} are all different.",
    .expect_range = "Here: every value of {0} lies in its declared range.",
    .expect_finite = "Here: {0} is finite where every input is finite.",
    .expect_sums = "Here: each row of {0} has the declared sum.",
    .expect_permutation = "Here: each row of {0} is a permutation of 0 to n - 1.",
    .expect_quotient = "At {0} that is {1} ± {2}, by central differences of the forward in f64.",
    .expect_direction =
        "Along the seeded direction through {0} that is {1} ± {2}, by central differences of the forward in "
        "f64.",
    .expect_tie = "By the {0} of {1} candidates {2} and {3} are exactly equal: the tie rule decides, and picks {3}.",
    .expect_bound =
        "{0} is within {1} ULP of the f64 result, the worst case that a correct path can reach by rounding.",
    .expect_relative =
        "No worst-case bound is stated for {0}: the error of {1} against f64 is to be at most 4 times the "
        "larger of that of {2} and 1 ULP.",
    .expect_reference =
        "No worst-case bound is stated for {0}: both ways are to have at most 4 times the error of the "
        "unfused path, or of 1 ULP, against f64.",
    .expect_integer = "{0} is an integer output and has to be equal.",
    .expect_no_truth =
        "There is no f64 result of {0} to tell rounding by, so it has to have the same bits on both sides.",
    .expect_follow = "It follows from {0}: another value there moves the result.",
    .expect_relation =
        "{0} of {1} has the same bits in both ways ({2}; {3}): both ask for the same mathematical result from the same "
        "elements, and the record declares that this difference does not matter.",
    .expect_history = "{0} has the same bits as on a fresh context, whatever was called on the context before.",
    .expect_repeat =
        "Every call on a context gives the same bits of {0} as one on a fresh context, the first call "
        "included.",
    .expect_inside =
        "{0} depends on the elements of the tensors alone, not on the bytes that lie around them or in the "
        "gaps of a strided tensor.",
    .bytes_unwritten = "{0}: {1} bytes unwritten; in two runs with different fills they keep each one's",
    .bytes_follow = "{0}: {1} bytes change with {2} before the call",
    .bytes_at = " (bytes {0})",
    .memory_output = "what the output buffers held",
    .memory_workspace = "what the workspace held",
    .memory_guard = "the bytes around the tensors and in their gaps",
    .rate_of = "{0}: {1} of {2} reruns on fresh contexts differ from the first run",
    .rate_pinned = ", {0} of the {1} that were pinned to one CPU",
    .shown_in = "the whole experiment showed it in {0} of {1} repetitions",
    .differ_from_alone = "{0}: {1} of {2} calls give other bits than the same call alone",
    .always_alike = "the wrong result is always the same",
    .ways = "in at least {0} different ways",
    .pick_is = "{0}, row {1}, slot {2}: {3} picks {4}, {5} picks {6}",
    .pick_rows = " ({0} rows differ in all)",
    .ranks_tie = "the two {0} are exactly equal on the {1} side",
    .ranks_nan = "the two {0} are both NaN on the {1} side",
    .ranks_apart = "the two {0} are {2} apart on the {1} side",
    .no_ranks = "the ranks of both sides are not to be had: ranked numbers as an output would show more",
    .sum_of = "consequence, sum of {0} in that row: {1} {2}, {3} {4}, difference {5}",
    .value_is = "{0}: {1} {2}, {3} {4}",
    .value_truth = ", in f64 {0}",
    .value_rounds = " (rounded to the dtype: as {0})",
    .value_far = ", {0} apart",
    .gradient_is = "{0}: the difference quotient is {1} ± {2}",
    .place_direction = "{0} along a seeded direction",
    .place_index = "{0} index {1}",
    .opposite = " (of opposite sign)",
    .difference = "{0}: {1} of {2} elements differ",
    .worst_at = ", by at most {0}",
    .only_zero_sign = ", only in the sign of zero",
    .only_nan_bits = ", only in payload or sign of NaN",
    .reproducibility =
        "Neither side is shown to be wrong by this: both errors are of a size that rounding can explain. What it costs "
        "is bitwise reproducibility. To mend it, make the order of the arithmetic, its precision and the points where "
        "intermediate results are rounded the same; to accept it, state `agree` with its derivation in the record.",
    .col_output = "output",
    .col_stage = "stage",
    .col_dtype = "dtype",
    .col_differing = "differing",
    .col_max = "largest distance",
    .col_median = "median",
    .col_error = "error ({0}), ULP",
    .col_bound = "bound, ULP",
    .col_class = "class",
    .col_quantity = "value",
    .col_pick = "at {0}, the pick of {1}",
    .col_gap = "gap of the ranks",
    .col_run = "run",
    .col_calls = "calls",
    .col_wrong = "other bits than alone",
    .col_digests = "different wrong results",
    .col_gradient = "gradient",
    .col_quotient = "difference quotient in f64",
    .col_f64 = "backward in f64",
    .of_total = "{0} of {1}",
    .ulp = "{0} ULP",
    .nan_against = "NaN against a number",
    .exact_tie = "an exact tie",
    .both_nan = "both NaN",
    .apart = "{0} apart",
    .judged = "{0} was judged: {1}.",
    .starts_at =
        "The difference begins in stage {0} ({1}): of the outputs that were compared no earlier stage differs.",
    .equal_outputs = "The same bits on both sides: {0}.",
    .zero_outputs =
        "The same bits on both sides, but zero in every element, so that this input can show nothing there: {0}.",
    .minus = "{0}, {1} minus {2}",
    .empty_bound =
        "A bound as wide as the value itself excludes nothing here (`rounding` in its row does not say that the value "
        "is "
        "right): {0}.",
    .follow_on = "A consequence of the other pick, not a cause: {0}.",
    .influence = "Influence, each input and attribute changed in turn: {0}.",
    .cause = "Cause: {0}.",
    .also = "Also {0}: {1}.",
    .more = "and {0} more, in finding.json",
    .sweep = "Through the forward of {0} itself the quotient at {1} settles as eps falls: {2}.",
    .no_more_outputs = "{0} more outputs differ; they stand in finding.json.",
    .dims = "dims",
    .attrs = "attributes",
    .defaults = "all default",
    .layout = "layout of {0}: {1}",
    .unwanted = "not asked for: {0}",
    .all_of = "all {0}",
    .set_to = "{0} = {1}",
    .block = "rows {0}, columns {1}: {2}",
    .drawn_from = "drawn from {0}",
    .raw_bits = "given element by element in inputs.safetensors",
    .elements = "{0} more in case.json",
    .idle = "does not matter: {0}",
    .flat_places =
        "At another size elements that are set one by one keep their flat index, so they can stand in another row or "
        "column: a neighbouring size that passes need not pass with other values.",
    .as_found = "This is the call as it was found: nothing was taken away, so any part of it may not matter.",
    .stride_is = "strides {0} (elements)",
    .offset_is = "offset {0} elements",
    .at_start = "begins right behind a guard page",
    .in_middle = "away from both guard pages",
    .lies_on = "lies on {0} (in place)",
    .other_calls = "other calls: {0}",
    .threads_are = "{0} threads on one context, {1} calls each",
    .repeats_are = "{0} runs on one context",
    .reset = "does not matter, as it was put back to its default while minimising: {0}",
    .reset_layout = "layout of {0}",
    .reset_input = "optional input {0}",
    .reset_experiment = "experiment {0}",
    .run_repro = "Python, numpy and the library are enough (exit code 1 while the bug is there, 0 when it is gone):",
    .run_repro_file =
        "Python, numpy, the file of the target and what it imports are enough (exit code 1 while the bug "
        "is there, 0 when it is gone):",
    .run_replay = "With fusediff, from the folder of this bundle or its .tar.gz:",
    .replayed =
        "Before it was reported it was run again in a fresh process, from the files of the bundle alone: it came back "
        "{0} of {1} times.",
    .not_chance = "Chance ({0}): the same bits in {1} of {1} reruns on fresh contexts, {2} of them pinned to one CPU.",
    .not_alone = "The call itself: {0}, on fresh contexts, it gave the same bits {1} of {1} times.",
    .not_cause = "{0}: clean in {1} of {1} calls.",
    .not_rounding =
        "Rounding as the explanation ({0}): {1} is off by {2} ULP, the worst case of a correct path is {3} ULP.",
    .not_reference = "A fault of the other side ({0}): its {1} is off by {2} ULP, within the worst case of {3} ULP.",
    .not_beyond =
        "An error larger than rounding can make: {0} is off by {1} and {2} ULP on the two sides, the worst case of a "
        "correct path is {3} ULP.",
    .not_fill =
        "A value that happens to look like the fill: runs with different fills were compared, one kind of memory "
        "changed at a time.",
    .not_quotient =
        "A difference quotient that is itself in doubt: its truncation and rounding are bounded, and the bound is "
        "stated behind ±.",
    .not_memory =
        "Memory errors in these runs: guard bytes and guard pages around every tensor are untouched, and inputs that "
        "no output lies on were compared in full after the call.",
    .not_inputs = "Different inputs: both runs received the same bytes (XXH3-128 of each tensor in finding.json).",
    .nothing_ruled_out = "Nothing beyond what stands above.",
    .env_target = "target",
    .env_against = "compared with",
    .env_system = "system",
    .env_cpu = "CPU",
    .env_features = "CPU features",
    .env_fusediff = "fusediff",
    .env_opened = "opened with",
    .env_unreadable = "environment.json of the bundle cannot be read.",
    .read_head =
        "fusediff runs an operator in two ways that must agree, on the same input bytes and on buffers between guard "
        "pages, and makes the input as small as the finding allows. It compares bits first.",
    .read_ulp =
        "ULP: how many representable numbers of the dtype lie between two values. Errors against f64 are in ULP at the "
        "scale that the operator's bound names.",
    .read_stage =
        "Stage: the order in which the operator computes its outputs. The lowest one that differs is where to look.",
    .read_bound =
        "Bound: worst-case rounding of a correct path against the f64 result, derived, not tuned. Within it a "
        "difference is `rounding`, outside it is `damage`.",
    .read_derivation = "Derivation of the bound of {0}: {1}.",
    .read_fill =
        "Fill: buffers are filled with a known pattern before the call, another one in each run; bytes that keep it or "
        "change with it were not computed from the inputs.",
    .read_context =
        "Context: what `open` of fusediff_target.h returns. \"Alone\" means on a fresh one with nothing else in "
        "flight.",
    .read_gradient =
        "Difference quotient: (f(x + eps) - f(x - eps)) / (2 eps) of the forward in f64, extrapolated over falling "
        "eps; behind ± its own error.",
    .read_relation = "Relation: one path is run in two ways; no other implementation is involved.",
    .read_signature = "Signature, by which it is recognised again: {0}.",
    .sentences = kSentences,
};

}  // namespace fusediff
