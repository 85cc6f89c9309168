"""Plant faults in a copy of the tree, one at a time; a named test must catch each: `make faults`.

If no test catches a fault, a promise is not checked.
"""

import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from gate import changed, git

ROOT = Path(__file__).resolve().parent.parent
CORE = Path("rust/core/src")
LAYER = Path("python/geomdp")
PROOFS = Path("proofs")
#: Number of trees, each with its own builds: the tests, which take longest, use one processor.
WORKERS = 2
PYTHON = ROOT / ".venv" / "bin" / "python"
PYTEST: list[str | Path] = [PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
#: The tests are known to pass without a fault. A Python test that fails is still run without one.
CHECKED = "--checked"
#: As CHECKED, and only faults that concern the change, for about MINUTES.
GATE = "--gate"
MINUTES = 6
#: Needs the release build; other tests use a faster build with the same draws.
DISASSEMBLY = "scripts/check_instructions.py"
QUICK = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Fault:
    """A change to one place, and the test that must fail for it."""

    name: str
    file: Path
    old: str
    new: str
    test: str


FAULTS = [
    Fault(
        "a threshold is two units too high",
        CORE / "plan/thresholds.rs",
        ".min(largest.clone());",
        ".min(&largest - 2u32) + 2u32;",
        "tests/test_certificate.py",
    ),
    Fault(
        "the floor has half the mass that it needs",
        CORE / "plan/mod.rs",
        "let floor = need.div_ceil(",
        "let floor = (need >> 1u32).div_ceil(",
        "tests/test_certificate.py",
    ),
    Fault(
        "the rate is not slackened for the low digits",
        CORE / "plan/mod.rs",
        "if self.limbs == 1 {",
        "if self.limbs <= 3 {",
        "tests/test_certificate.py",
    ),
    Fault(
        "a lemma is admitted",
        PROOFS / "Boxes.v",
        "Proof. intros N. pose proof (Z.div_mod k r N). lia. Qed.",
        "Proof. Admitted.",
        "scripts/check_proof.py",
    ),
    Fault(
        "thresholds may be two units off",
        PROOFS / "Statement.v",
        "* IZR (2 ^ bits w d)) <= 1.",
        "* IZR (2 ^ bits w d)) <= 2.",
        "scripts/check_proof.py",
    ),
    Fault(
        "the floor may have half the mass that it needs, by the proof",
        PROOFS / "Statement.v",
        "<= g / IZR (2 ^ value_bits pl)",
        "<= 2 * g / IZR (2 ^ value_bits pl)",
        "scripts/check_proof.py",
    ),
    Fault(
        "eta does not count the high digits",
        PROOFS / "Statement.v",
        "h * d * (d + 5) / 2 + 1",
        "d * (d + 5) / 2 + 1",
        "scripts/check_proof.py",
    ),
    Fault(
        "the sign's bit is also a bit of the tie-break",
        PROOFS / "Statement.v",
        "let v := limb shared in",
        "let v := shared mod 2 ^ limb_bits pl in",
        "scripts/check_proof.py",
    ),
    Fault(
        "the top digit is not censored",
        PROOFS / "Statement.v",
        "| _ => if last values 0 <? count top then sum else range pl",
        "| _ => sum",
        "scripts/check_proof.py",
    ),
    Fault(
        "the proved checker accepts a threshold two units too high",
        PROOFS / "Checker.v",
        "((T - 1) * snd den <=? N * fst num)",
        "((T - 2) * snd den <=? N * fst num)",
        "scripts/check_proof.py",
    ),
    Fault(
        "the proved checker accepts half of the floor",
        PROOFS / "Checker.v",
        "<=? 2 * slot * 2 ^ K",
        "<=? 4 * slot * 2 ^ K",
        "scripts/check_proof.py",
    ),
    Fault(
        "an enclosure of exp is rounded inwards",
        PROOFS / "Exp.v",
        "snd i * snd j / one + 1)",
        "snd i * snd j / one)",
        "scripts/check_proof.py",
    ),
    Fault(
        "every release uses the same key",
        CORE / "draw/tape.rs",
        "Ok(key)",
        "Ok(Zeroizing::new([7; 32]))",
        "tests/test_fresh.py",
    ),
    Fault(
        "every tape has the same key",
        CORE / "draw/tape.rs",
        "Ok(key)",
        "Ok(Zeroizing::new([7; 32]))",
        "--test tape",
    ),
    Fault(
        "the tie-break is dropped",
        CORE / "draw/kernel/search.rs",
        "tie.less(last)",
        "tie.less(V::splat(0))",
        "--test kernel",
    ),
    Fault(
        "the tie-break is off by one",
        CORE / "draw/kernel/search.rs",
        "tie.less(last)",
        "tie.less(last.add(V::splat(1)))",
        "--test exhaustive",
    ),
    Fault(
        "a search takes a wrong turn",
        CORE / "draw/kernel/search.rs",
        "less = less.add(less).decrease(below);",
        "less = less.decrease(below);",
        "--test exhaustive",
    ),
    Fault(
        "a search by keys takes a wrong turn",
        CORE / "draw/kernel/search.rs",
        "path = path.step(key, path.look_up(level));",
        "path = path.step(key, zero.look_up(level));",
        "--test exhaustive",
    ),
    Fault(
        "a search by keys trusts the keys",
        CORE / "draw/kernel/search.rs",
        "reached.sub(H::join(path, zero)).decrease(below)",
        "{ let _ = below; reached.sub(H::join(path, zero)) }",
        "--test kernel",
    ),
    Fault(
        "two thresholds of a tree share a key",
        CORE / "draw/kernel/tables.rs",
        "least = key + 1;",
        "least = key;",
        "--lib tables",
    ),
    Fault(
        "the nodes of a tree are one threshold too low",
        CORE / "draw/kernel/tables.rs",
        ".skip(spacing / 2 - 1)",
        ".skip(spacing / 2)",
        "--lib tables",
    ),
    Fault(
        "a search is not told of a threshold",
        CORE / "draw/kernel/tables.rs",
        "(TABLE - node) % TABLE",
        "(TABLE - node / 2) % TABLE",
        "--lib tables",
    ),
    Fault(
        "a function of SQL has no side effects",
        LAYER / "duckdb.py",
        "side_effects=True",
        "side_effects=False",
        "tests/test_frames.py",
    ),
    Fault(
        "counts behind nulls are released",
        LAYER / "_release/columns.py",
        "np.where(missing, dtype.type(0), counts)",
        "counts",
        "tests/test_frames.py",
    ),
    Fault(
        "unsigned counts are clamped at 0 unasked",
        CORE / "mechanism.rs",
        "if self.bounds.is_none() && T::MIN == 0 {",
        "if false {",
        "--test mechanism",
    ),
    Fault(
        "counts behind nulls are put back",
        LAYER / "_release/columns.py",
        "column = column.scatter(missing.arg_true(), None)",
        "column = nw.from_native(counts, series_only=True).zip_with(missing, column)",
        "tests/test_frames.py",
    ),
    Fault(
        "an empty slice of Arrow is handed back",
        LAYER / "_release/columns.py",
        "    counts = memory(array, dtype) if len(array) else np.empty(0, dtype)",
        "    if not len(array):\n        return array\n    counts = memory(array, dtype)",
        "tests/test_frames.py",
    ),
    Fault(
        "other columns of pandas keep the array of the exact counts",
        LAYER / "_release/columns.py",
        "return native.copy()",
        "return native",
        "tests/test_frames.py",
    ),
    Fault(
        "the tape is filled twice",
        CORE / "draw/mod.rs",
        "self.source.fill(words)?;",
        "self.source.fill(words)?; self.source.fill(words)?;",
        "scripts/count_instructions.py",
    ),
    Fault(
        "counts below the lower bound are not clamped",
        CORE / "draw/kernel/mod.rs",
        "V::load(keys).max(base).sub(base)",
        "V::load(keys).sub(base)",
        "--test kernel",
    ),
    Fault(
        "noise below the lower bound wraps",
        CORE / "draw/kernel/mod.rs",
        "V::select(falls, offset, range.sub(offset))",
        "V::select(falls, range, range.sub(offset))",
        "--test kernel",
    ),
    Fault(
        "the floor's slot is ignored",
        CORE / "draw/kernel/mod.rs",
        "V::select(in_floor, value, noisy)",
        "V::select(in_floor, noisy, noisy)",
        "--test exhaustive",
    ),
    Fault(
        "the sign is never drawn",
        CORE / "draw/kernel/mod.rs",
        "shared.and(V::splat(plan.sign_mask))",
        "shared.and(V::splat(0))",
        "--test exhaustive",
    ),
    Fault(
        "noise falls where its number is zero",
        CORE / "draw/kernel/mod.rs",
        "V::select(not_zero, shared.and(V::splat(plan.sign_mask)), zero)",
        "shared.and(V::splat(plan.sign_mask))",
        "--test exhaustive",
    ),
    Fault(
        "noise that rises has digit 0's value as if it fell",
        CORE / "draw/kernel/mod.rs",
        "V::select(not_zero, reached.sub(sign), zero)",
        "V::select(not_zero, reached.sub(one), zero)",
        "--test exhaustive",
    ),
    Fault(
        "a digit has one word however rare its last value is",
        CORE / "plan/thresholds.rs",
        "let low = covered(&next) && next_sum",
        "let low = *words == 1 || next_sum",
        "tests/test_certificate.py",
    ),
    Fault(
        "the error of the draw is taken for ten times smaller",
        CORE / "plan/mod.rs",
        "let eta = high * digits * (digits + 5) / 2 + 1;",
        "let eta = (high * digits * (digits + 5) / 2 + 1) / 10;",
        "--lib",
    ),
    Fault(
        "the privacy map rounds down",
        CORE / "params/privacy.rs",
        "rate.den(), Round::Up",
        "rate.den(), Round::Down",
        "--lib",
    ),
    Fault(
        "the linear sampler's probabilities err on the other side",
        CORE / "reference/linear.rs",
        "to_f64(gap.lo(), &one, Round::Down)",
        "to_f64(gap.hi(), &one, Round::Up)",
        "--test linear",
    ),
    Fault(
        "folding turns one step late",
        CORE / "draw/fold.rs",
        "turn: (self.period - half) / 2,",
        "turn: (self.period - half) / 2 + 1,",
        "--lib",
    ),
    Fault(
        "a remainder may keep a period too much",
        CORE / "draw/fold.rs",
        "x.wrapping_sub(period & ct::mask(ct::borrow(x, period, 0) ^ 1))",
        "x.wrapping_sub(period & 0)",
        "--lib",
    ),
    Fault(
        "a comparison looks at the wrong bit",
        CORE / "draw/ct.rs",
        "barrier(x.wrapping_sub(y) >> 63)",
        "barrier(x.wrapping_sub(y) >> 62)",
        "tests/test_primitives.py",
    ),
    Fault(
        "threads begin at the wrong place of the tape",
        CORE / "draw/mod.rs",
        "(index as u64).checked_mul(plan.words() as u64)",
        "(index as u64 / 2).checked_mul(plan.words() as u64)",
        "tests/test_release.py",
    ),
    Fault(
        "a random source that fails is not noticed",
        CORE / "draw/tape.rs",
        "rng.try_fill_bytes(key.as_mut_slice())\n"
        "        .map_err(|error| Error::Entropy(error.to_string()))?;",
        "let _ = rng.try_fill_bytes(key.as_mut_slice());",
        "tests/test_entropy.py",
    ),
    Fault(
        "secrets stay on the stack",
        CORE / "draw/wipe.rs",
        "zeroize_stack::<STACK>();",
        "let _ = zeroize_stack::<STACK>;",
        "tests/test_entropy.py",
    ),
    Fault(
        "secrets stay in vector registers",
        CORE / "draw/wipe.rs",
        "clear_registers();\n            zeroize",
        "zeroize",
        "tests/test_entropy.py",
    ),
    Fault(
        "a release looks at its key",
        CORE / "draw/tape.rs",
        "Ok(key)",
        "if key[0] == 7 { return key_from(rng); } Ok(key)",
        "scripts/constant_time_wheel.py",
    ),
    Fault(
        "a release looks at a count",
        CORE / "draw/kernel/mod.rs",
        "*key = count.to_key();",
        "*key = count.to_key(); if *key == 7 { println!(); }",
        "scripts/constant_time_wheel.py",
    ),
    Fault(
        "the AVX-512 code looks at a mask",
        CORE / "draw/kernel/avx512.rs",
        "each!(Words: _mm512_mask_blend_epi64, mask, no, yes)",
        "if mask.0 == 0 { return no; } each!(Words: _mm512_mask_blend_epi64, mask, no, yes)",
        "scripts/constant_time.sh msan",
    ),
    Fault(
        "the AVX-512 code looks at a mask, and its instructions show it",
        CORE / "draw/kernel/avx512.rs",
        "each!(Words: _mm512_mask_blend_epi64, mask, no, yes)",
        "if mask.0 == 0 { return no; } each!(Words: _mm512_mask_blend_epi64, mask, no, yes)",
        DISASSEMBLY,
    ),
    Fault(
        "folding divides",
        CORE / "draw/fold.rs",
        "x.wrapping_sub(period & ct::mask(ct::borrow(x, period, 0) ^ 1))",
        "x % period",
        DISASSEMBLY,
    ),
    Fault(
        "blocks of a keyed tape divide",
        CORE / "draw/keyed/draws.rs",
        "(address[1] ^ count.to_key()).to_le()",
        "(address[1] ^ (count.to_key() / (address[0] | 1))).to_le()",
        DISASSEMBLY,
    ),
    Fault(
        "a domain takes any metric",
        LAYER / "measurement/_metrics.py",
        "if metric != partner(domain):",
        "if metric is None:",
        "tests/test_bad_input.py",
    ),
    Fault(
        "losses of float32 are rounded to nearest",
        LAYER / "measurement/_metrics.py",
        "if float(nearest) < loss:",
        "if nearest < loss:",
        "tests/test_measurement.py",
    ),
    Fault(
        "a chain forgets the stability of its first step",
        LAYER / "measurement/_steps.py",
        "_Then(self.stability_map, other.losses),",
        "other.losses,",
        "tests/test_measurement.py",
    ),
    Fault(
        "a composition rounds each loss before it adds them",
        LAYER / "measurement/_steps.py",
        "sum((Fraction(loss) for loss in losses), Fraction())",
        "sum(map(float, losses))",
        "tests/test_measurement.py",
    ),
    Fault(
        "a sum takes its upper bound for its sensitivity",
        LAYER / "measurement/_counting.py",
        "Times(max(map(abs, pair))),",
        "Times(abs(pair[1])),",
        "tests/test_measurement.py",
    ),
    Fault(
        "a sum overflows",
        LAYER / "measurement/_counting.py",
        "np.sum(clamped, dtype=object)",
        "np.sum(clamped)",
        "tests/test_measurement.py",
    ),
    Fault(
        "records below all edges are counted in the first bin",
        LAYER / "measurement/_counting.py",
        "places[places < 0] = n",
        "places[places < 0] = 0",
        "tests/test_measurement.py",
    ),
    Fault(
        "every category takes as much memory as the longest",
        LAYER / "measurement/_counting.py",
        'dtype=object if T.kind == "U" else T)',
        "dtype=T)",
        "tests/test_bad_input.py",
    ),
    Fault(
        "the search of memory stops at a guard",
        Path("tests/preload.c"),
        "done = (done / PAGE + 1) * PAGE, carried = 0;",
        "break;",
        "tests/test_entropy.py",
    ),
    Fault(
        "the search of memory misses what lies across the ends of reads",
        Path("tests/preload.c"),
        "carried = whole < 8 * width - 1 ? whole : 8 * width - 1;",
        "carried = 0;",
        "tests/test_entropy.py",
    ),
    Fault(
        "OpenDP is told half of the loss",
        LAYER / "compat/opendp.py",
        "decimals.up(loss(self.mechanism, exact))",
        "decimals.up(loss(self.mechanism, exact / 2))",
        "tests/compat/test_opendp.py",
    ),
    Fault(
        "what diffprivlib passes for no seed is refused",
        LAYER / "compat/diffprivlib.py",
        "random_state is None or random_state is np.random.mtrand._rand",
        "random_state is None",
        "tests/compat/test_diffprivlib.py",
    ),
    Fault(
        "the promise that OpenDP wants stays given",
        LAYER / "compat/opendp.py",
        "if not given:",
        "if given is None:",
        "tests/compat/test_opendp.py",
    ),
    Fault(
        "an overlapping out is not copied",
        LAYER / "_release/arrays.py",
        "out is counts or not np.may_share_memory(flat, target) or _same(flat, target)",
        "True",
        "tests/test_api_properties.py",
    ),
    Fault(
        "out is written in the other order",
        LAYER / "_release/arrays.py",
        "if counts.flags.c_contiguous == out.flags.c_contiguous else None",
        "if True else None",
        "tests/test_api_properties.py",
    ),
    Fault(
        "the byte order is lost",
        LAYER / "_release/arrays.py",
        "return own.byteswap(inplace=True).view(counts.dtype)",
        "return own.view(counts.dtype)",
        "tests/test_api_properties.py",
    ),
    Fault(
        "calls share a working array",
        LAYER / "_release/arrays.py",
        'own = np.array(counts, dtype=native, order="C", subok=False).view(native)',
        'own = vars(np).setdefault(f"_own{counts.shape}", np.empty(counts.shape, native)); '
        "own[...] = counts",
        "tests/test_threads.py",
    ),
    Fault(
        "a write to out can be interrupted",
        LAYER / "_release/arrays.py",
        "noise(flat, target, kind, False)",
        "noise(flat, target, kind, True)",
        "tests/test_threads.py",
    ),
    Fault(
        "noise is made in the caller's counts",
        LAYER / "_release/arrays.py",
        "noise(counts, result, known, True)",
        "noise(counts, counts, known, True); result[...] = counts",
        "tests/test_threads.py",
    ),
    Fault(
        "arrays have one key",
        LAYER / "_release/mechanism.py",
        "self._core.release_into(source, target, interruptible, most)",
        "from geomdp import _core; "
        "_core.release_not_private(self._core, bytes(32), source, target, most)",
        "tests/test_threads.py",
    ),
    Fault(
        "bounds at halves are taken for whole ones",
        LAYER / "_analysis/moments.py",
        "f(0 if half_below else 1)",
        "f(1)",
        "tests/test_moments.py",
    ),
    Fault(
        "the bias cancels far from the bounds",
        LAYER / "_analysis/moments.py",
        "bias = (low - high) / mass",
        "bias = (up - down) / mass",
        "tests/test_moments.py",
    ),
    Fault(
        "the note's accuracy is rounded down",
        LAYER / "_analysis/decimals.py",
        "least, most = math.ceil(value - wrong), math.ceil(value + wrong)",
        "least, most = math.floor(value - wrong), math.floor(value + wrong)",
        "tests/compat/test_smartnoise.py",
    ),
    Fault(
        "a table of counts is sorted by them",
        LAYER / "frames.py",
        "native = frame.rename(",
        "native = frame.sort('n').rename(",
        "tests/test_frames.py::test_count_keeps_order_of_levels",
    ),
    Fault(
        "a table with margins has the sensitivity of one without",
        LAYER / "frames.py",
        "name, 2 ** len(totals))",
        "name, 1)",
        "tests/test_frames.py::test_sensitivity_is_the_change_by_one_record",
    ),
    Fault(
        "a table of exact counts can be pickled",
        LAYER / "frames.py",
        "    def __reduce__(self) -> NoReturn:",
        "    def _reduce(self) -> NoReturn:",
        "tests/test_frames.py::test_tables_show_and_release_no_exact_count",
    ),
    Fault(
        "cells with more records are drawn more often",
        LAYER / "frames.py",
        'then(nw.col("two"))',
        'then(nw.col("one"))',
        "tests/test_frames.py::test_cells_and_their_records_are_drawn_uniformly",
    ),
    Fault(
        "an alpha above one half is taken without a warning",
        LAYER / "accuracy.py",
        "if level > Fraction(1, 2):",
        "if level > 1:",
        "tests/test_accuracy.py::test_confidence_as_alpha_warns",
    ),
    Fault(
        "the accuracy is that of one side",
        LAYER / "accuracy.py",
        "least = tails.least(1 / scale, alpha, n) if scale else 0",
        "least = tails.least(1 / scale, 2 * alpha, n) if scale else 0",
        "tests/test_accuracy.py",
    ),
    Fault(
        "a least epsilon is rounded down",
        LAYER / "_analysis/tails.py",
        "return r * (1 + SAFE)",
        "return r * (1 - SAFE)",
        "tests/test_accuracy.py::test_inverses_round_ties_to_the_safe_side",
    ),
    Fault(
        "several counts at once have the accuracy of one",
        LAYER / "accuracy.py",
        "return _worst(mechanism, dtype, tails.share(level, n)) if n else 0",
        "return _worst(mechanism, dtype, level) if n else 0",
        "tests/test_accuracy.py::test_simultaneous_accuracy",
    ),
    Fault(
        "the accuracy of a sum is that of one side",
        LAYER / "_analysis/sums.py",
        "target = decimals.of(level) / 2 * (1 - SAFE)",
        "target = decimals.of(level) * (1 - SAFE)",
        "tests/test_sums.py::test_sum_accuracy_is_the_least_integer",
    ),
    Fault(
        "a sum takes a noisy count at a bound for one inside",
        LAYER / "accuracy.py",
        "if not any(x == (least if w > 0 else most) for w, x in pairs):",
        "if pairs:",
        "tests/test_sums.py::test_coverage_of_sums_of_many_counts_at_a_bound",
    ),
    Fault(
        "each end of a ratio takes the whole alpha",
        LAYER / "accuracy.py",
        "half = _ideal_level(level, sampled) / 2",
        "half = min(_ideal_level(level, sampled), Fraction(1, 2))",
        "tests/test_sums.py::test_coverage_of_ratios_over_all_tapes",
    ),
    Fault(
        "the accuracy of a release forgets the floor",
        LAYER / "_analysis/tails.py",
        "tail = ((level - floor) / sides - eta) / (1 + delta)",
        "tail = (level / sides - eta) / (1 + delta)",
        "tests/test_accuracy.py",
    ),
    Fault(
        "distances from the center are rounded before they are subtracted",
        LAYER / "distribution.py",
        "np.subtract(greater.astype(np.uint64), lesser.astype(np.uint64))",
        "np.subtract(greater.astype(np.float64), lesser.astype(np.float64))",
        "tests/test_distribution.py::test_releases_are_accurate",
    ),
    Fault(
        "the calibrated epsilon is one float too large",
        LAYER / "rejection.py",
        "bisect.bisect_left(floats, True, key=is_too_much) - 1]",
        "bisect.bisect_left(floats, True, key=is_too_much)]",
        "tests/test_rejection.py",
    ),
    Fault(
        "a remap forgets the prior",
        LAYER / "remap.py",
        "logs = np.log(_prior(prior, outputs))",
        "logs = np.log(_prior(prior, outputs) > 0)",
        "tests/test_remap.py",
    ),
    Fault(
        "two inputs with different labels are combined by place",
        LAYER / "_release/labels.py",
        "if labels.keys != found[first].keys:",
        "if False:",
        "tests/test_inputs.py",
    ),
    Fault(
        "the rounding of a table forgets its margins",
        LAYER / "consistency.py",
        "rows = np.arange(len(least))",
        "rows = np.arange(1)",
        "tests/test_consistency.py",
    ),
    Fault(
        "the command replaces what has appeared meanwhile",
        LAYER / "cli.py",
        "os.link(part, path)",
        "os.replace(part, path)",
        "tests/test_cli.py",
    ),
    Fault(
        "a stray quote is taken for text",
        LAYER / "_files/delimited.py",
        """_STRAY = re.compile(r'"|""",
        """_STRAY = re.compile(r'""",
        "tests/test_cli.py::test_invalid_table_raises",
    ),
    Fault(
        "a count that has changed keeps its noise",
        CORE / "draw/keyed/draws.rs",
        "(address[1] ^ count.to_key()).to_le()",
        "(address[1] ^ count.to_key() & 0).to_le()",
        "--test keyed",
    ),
    Fault(
        "two columns share their noise",
        CORE / "draw/keyed/mod.rs",
        "limits.as_flattened(), name]",
        "limits.as_flattened(), &name[..0]]",
        "--test keyed",
    ),
    Fault(
        "ids are taken in any order",
        CORE / "draw/keyed/mod.rs",
        "&[kind, &column.to_be_bytes()]",
        "&[kind, &(column * 0).to_be_bytes()]",
        "--test keyed",
    ),
    Fault(
        "the blocks of a draw are the same",
        CORE / "draw/keyed/draws.rs",
        "half(2 * index).concat(half(2 * index + 1))",
        "half(2 * index * 0).concat(half(1))",
        "--test keyed",
    ),
    Fault(
        "a negative id is the large one of its bits",
        CORE / "draw/keyed/address.rs",
        "[low ^ high & negative[0], high & negative[1]]",
        "[low, high & negative[1] & 0]",
        "--test keyed",
    ),
    Fault(
        "the last columns of ids may be left out",
        CORE / "draw/keyed/address.rs",
        "if self.columns < self.keys.len() {",
        "if false {",
        "--test keyed",
    ),
    Fault(
        "a null is the id that an empty string is",
        CORE / "draw/keyed/address.rs",
        "id.map_or(**null, |id| pair(cmac.before_last(id).to_be_bytes()))",
        "pair(cmac.before_last(id.unwrap_or_default()).to_be_bytes())",
        "--test keyed",
    ),
    Fault(
        "a byte of a short id is lost",
        CORE / "draw/keyed/cmac.rs",
        "byte(len / 2)",
        "byte(0)",
        "--test keyed",
    ),
    Fault(
        "an array is resized during a release",
        Path("rust/python/src/arrays.rs"),
        "keep.extend(PyWeakrefReference::new(&array).map(Bound::unbind));",
        "keep.extend(None);",
        "tests/test_release.py",
    ),
    Fault(
        "a pickle names a private module",
        LAYER / "__init__.py",
        "    _kind.__module__ = __name__",
        "    pass",
        "tests/test_pickles.py",
    ),
    Fault(
        "offsets of other data pass the check",
        Path("rust/python/src/keyed.rs"),
        "!offsets.is_sorted() || first < 0",
        "first < 0",
        "tests/test_distributed.py::test_core_refuses_offsets_of_other_data",
    ),
    Fault(
        "a keyed tape that is too short passes",
        CORE / "draw/keyed/draws.rs",
        "&mut self.tape[start..start + self.words];",
        "self.tape.get_mut(start..start + self.words).unwrap_or_default();",
        "--lib keyed",
    ),
    Fault(
        "what ids add stays for other counts",
        CORE / "draw/keyed/address.rs",
        "if first {",
        "if false {",
        "--test keyed",
    ),
    Fault(
        "a piece has the ids of the first",
        Path("rust/python/src/keyed.rs"),
        "(start..).step_by(CHUNK)",
        "std::iter::repeat(start)",
        "tests/test_distributed.py",
    ),
    Fault(
        "a chunk begins with the ids of the first",
        LAYER / "distributed.py",
        "start += array.size",
        "start += 0",
        "tests/test_distributed.py",
    ),
    Fault(
        "a batch has its columns where the first has them",
        LAYER / "distributed.py",
        " or not batch.schema.equals(schema, check_metadata=True)",
        "",
        "tests/test_distributed.py",
    ),
    Fault(
        "a batch goes by its own names for columns",
        LAYER / "distributed.py",
        "schema.names if names is None else names",
        "schema.names",
        "tests/test_distributed.py",
    ),
    Fault(
        "the kernel is not the one that runs",
        Path("rust/python/src/lib.rs"),
        'format!("{:?}", Backend::best())',
        'format!("{:?}", Backend::Portable)',
        "tests/test_import.py::test_kernel_names_the_back_end_and_the_features_that_decide",
    ),
    Fault(
        "a part of a release has the ids of the first",
        Path("rust/python/src/lib.rs"),
        "next = first + part.len();",
        "let _ = &mut next;",
        "tests/test_distributed.py",
    ),
    Fault(
        "a key that has released a table takes parts of another",
        LAYER / "distributed.py",
        "if parts is not None and not (parts and part):",
        "if parts is not None and not part:",
        "tests/test_distributed.py::test_key_releases_a_name_once",
    ),
    Fault(
        "a key forgets which names it has released",
        LAYER / "distributed.py",
        "self._parts.update(dict.fromkeys(names, part))",
        "pass",
        "tests/test_distributed.py::test_columns_are_released_once_and_together",
    ),
    Fault(
        "two threads release a name at once",
        LAYER / "distributed.py",
        "            self._check(names, part)",
        "            pass",
        "tests/test_distributed.py::test_only_one_of_two_threads_releases",
    ),
    Fault(
        "a copy of a key releases whole tables",
        LAYER / "distributed.py",
        "copied=True",
        "copied=False",
        "tests/test_distributed.py::test_keys_pickle_and_show_nothing",
    ),
    Fault(
        "ids that repeat are found where all of them do",
        LAYER / "distributed.py",
        "return bool(same.any())",
        "return bool(same.all())",
        "tests/test_distributed.py::test_repeated_ids_raise",
    ),
    Fault(
        "a time is the same id in any unit",
        LAYER / "distributed.py",
        '(str(kind).encode(), b" ")',
        '(b"time", b" ")',
        "tests/test_distributed.py::test_different_ids_have_different_noise",
    ),
    Fault(
        "a slice of strings has the bytes of the whole",
        Path("rust/python/src/keyed.rs"),
        "self.data.read(first as usize, &mut data);",
        "self.data.read(0, &mut data);",
        "tests/test_distributed.py",
    ),
    Fault(
        "a release key is forgotten instead of wiped",
        Path("rust/python/src/keyed.rs"),
        "*self.inner.lock().unwrap_or_else(PoisonError::into_inner) = None;",
        "let mut key = self.inner.lock().unwrap_or_else(PoisonError::into_inner); "
        "std::mem::forget(key.take());",
        "tests/test_entropy.py",
    ),
    Fault(
        "bins of unequal width show their counts",
        LAYER / "plot.py",
        "drawn / widths if unequal else drawn",
        "drawn",
        "tests/test_plot.py::test_unequal_bins_show_counts_per_unit",
    ),
    Fault(
        "a histogram to publish has no legend",
        LAYER / "plot.py",
        "if place or len(",
        "if len(",
        "tests/test_plot.py::test_publishable_histogram_has_a_legend",
    ),
    Fault(
        "mass at bounds flattens the rest of a plot",
        LAYER / "plot.py",
        "_STEEP = 20",
        "_STEEP = 20**9",
        "tests/test_plot.py::test_mass_at_bounds_does_not_flatten_the_rest",
    ),
    Fault(
        "names overlap in a plot",
        LAYER / "plot.py",
        "step = math.ceil(2.2 *",
        "step = math.ceil(1e-9 *",
        "tests/test_plot.py::test_texts_fit_and_do_not_overlap",
    ),
    Fault(
        "a page is not in the site",
        Path("mkdocs.yml"),
        "      - Bounds: bounds.md",
        "",
        "tests/test_site.py",
    ),
    Fault(
        "a module is not in the reference",
        Path("docs/api/plot.md"),
        "::: geomdp.plot",
        "",
        "tests/test_site.py",
    ),
    Fault(
        "ids that are not aligned are handed on",
        LAYER / "distributed.py",
        "return items if items.flags.aligned else items.copy()",
        "return items",
        "tests/test_distributed.py",
    ),
    Fault(
        "a chunk of an array begins at place 0",
        LAYER / "dask.py",
        "np.arange(start, stop)",
        "np.arange(stop - start)",
        "tests/clusters/test_dask.py::test_noise_is_independent_of_chunks",
    ),
    Fault(
        "releases share the names of their tasks",
        LAYER / "dask.py",
        "return self.name",
        "return ''",
        "tests/clusters/test_dask.py::test_releases_are_independent",
    ),
    Fault(
        "ids are compared in each partition alone",
        LAYER / "dask.py",
        "rows = rows.shuffle(on=ids, ignore_index=True)",
        "pass",
        "tests/clusters/test_dask.py::test_repeated_ids_raise",
    ),
    Fault(
        "ids of Dask have the type of their partition",
        LAYER / "dask.py",
        "if part[name].dtype != dtype:",
        "if False:",
        "tests/clusters/test_dask.py::test_ids_in_other_units_between_partitions",
    ),
    Fault(
        "a task of Dask draws a key of its own",
        LAYER / "dask.py",
        "key: ReleaseKey = pickle.loads(stored)",
        "key = ReleaseKey()",
        "tests/clusters/test_dask.py::test_killed_worker",
    ),
    Fault(
        "wiping leaves the key with the scheduler",
        LAYER / "dask.py",
        "self._variable.set(None)",
        "pass",
        "tests/clusters/test_dask.py::test_wiping_removes_key_from_scheduler",
    ),
    Fault(
        "a task of Spark draws a key of its own",
        LAYER / "spark.py",
        "key = held.value",
        "key = ReleaseKey()",
        "tests/clusters/test_spark.py::test_repeated_tasks_give_equal_noise",
    ),
    Fault(
        "a plan of Spark may have expressions that are not listed",
        LAYER / "_engines/spark_plan.py",
        "if name not in EXPRESSIONS:",
        "if name not in EXPRESSIONS and not each.deterministic():",
        "tests/clusters/test_spark.py::test_unstable_plans_raise",
    ),
    Fault(
        "some of the columns that were grouped by are enough for ids",
        LAYER / "_engines/spark_plan.py",
        "return all(\n",
        "return any(\n",
        "tests/clusters/test_spark.py::test_ids_unique_by_plan_are_not_compared",
    ),
    Fault(
        "wiping leaves the key on the driver",
        LAYER / "spark.py",
        "broadcast.destroy, blocking",
        "broadcast.unpersist, blocking",
        "tests/clusters/test_spark.py::test_wiped_release_raises",
    ),
    Fault(
        "a task of Ray draws a key of its own",
        LAYER / "ray.py",
        "key: ReleaseKey = ray.get(keeper.key.remote())",
        "key = ReleaseKey()",
        "tests/clusters/test_ray.py::test_killed_worker",
    ),
    Fault(
        "ids of Ray have the type of their block",
        LAYER / "ray.py",
        "if _plain(ids.type) != kind:",
        "if False:",
        "tests/clusters/test_ray.py::test_noise_is_independent_of_block_types",
    ),
    Fault(
        "wiping leaves the key with its actor",
        LAYER / "ray.py",
        "end.callback(_wipe, keeper)",
        "end.callback(lambda: None)",
        "tests/clusters/test_ray.py::test_wiped_release_raises",
    ),
    Fault(
        "the sum of losses is rounded to the nearest float",
        LAYER / "_analysis/decimals.py",
        "return nearest if exact >= value else math.nextafter(nearest, math.inf)",
        "return nearest",
        "tests/test_accounting.py",
    ),
    Fault(
        "a budget forgets what was spent",
        LAYER / "accounting.py",
        'self._groups = self._within(self._groups + more, "this release would raise")',
        'self._within(self._groups + more, "this release would raise")',
        "tests/test_accounting.py",
    ),
    Fault(
        "a planned release is used twice",
        LAYER / "accounting.py",
        "self._plan = self._plan - Counter([min(enough)])",
        "self._plan - Counter([min(enough)])",
        "tests/test_accounting.py::test_a_plan_allows_more_releases_in_any_order",
    ),
    Fault(
        "a change by several is no larger loss than by one",
        LAYER / "_analysis/composition.py",
        "return [((n * distance - 2 * k) * rate, w)",
        "return [((n - 2 * k) * rate, w)",
        "tests/test_accounting.py::test_loss_distribution_is_an_upper_bound_within_its_error",
    ),
]


@cache
def installed_core() -> Path:
    """Return the compiled module of the installed package."""
    run = [PYTHON, "-c", "import geomdp._core; print(geomdp._core.__file__)"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def install(tree: Path, site: Path, environment: dict[str, str]) -> None:
    run: list[str | Path] = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*run, "--target", site, "."], cwd=tree, env=environment, check=True)


def failure(tree: Path, test: str, built: bool = False) -> str | None:
    """Return the test that fails on this tree, if any; raise if the tree does not build.

    If `built`, the Rust code is that of the installed package.
    """
    environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target" / "faults" / tree.name)}
    run: list[str | Path]
    if test.startswith("--"):
        run = ["cargo", "test", "--quiet", "--locked", "-p", "geomdp-core", *test.split()]
        subprocess.run([*run, "--no-run"], cwd=tree, env=environment, check=True)
    elif test.endswith(" msan"):
        run = ["bash", *test.split()]
    elif test == "scripts/count_instructions.py":
        run = [PYTHON, test]
    else:
        site = tree / "site"
        shutil.rmtree(site, ignore_errors=True)
        if built:
            shutil.copytree(tree / LAYER, site / "geomdp")
            shutil.copy(installed_core(), site / "geomdp")
        else:
            install(tree, site, environment | ({} if test == DISASSEMBLY else QUICK))
        environment |= {"PYTHONPATH": str(site), "COLUMNS": "1000"}
        run = [PYTHON, test] if test.startswith("scripts/") else [*PYTEST, test]
    done = subprocess.run(
        run, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    if run[:-1] != PYTEST:
        return test
    name = re.search(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if done.returncode != 1 or not name:
        raise RuntimeError(f"{test} did not run:\n{done.stdout}{done.stderr}")
    return name[1]


def catches(tree: Path, fault: Fault) -> bool:
    """Return whether the fault's test fails with the fault in this tree, and passes without."""
    file = tree / fault.file
    text = file.read_text()
    file.write_text(text.replace(fault.old, fault.new))
    test = failure(tree, fault.test, built=not fault.file.is_relative_to("rust"))
    file.write_text(text)
    word = "caught" if test else "MISSED"
    if test and "::" in test:
        # With the package unchanged.
        again = subprocess.run([*PYTEST, test], cwd=ROOT, capture_output=True, check=False)
        word = "FAILS WITHOUT IT" if again.returncode else word
    print(f"{word:>7}  {fault.name}: {test or fault.test}", flush=True)
    return word == "caught"


def of_the_change() -> list[Fault]:
    """Return the faults in files that the change touches, and a rotating tenth of the others."""
    files, turn = changed(), int(git("rev-list", "--count", "HEAD"))
    touched = [fault for fault in FAULTS if files is None or str(fault.file) in files]
    # If there are too many, each change begins with different ones.
    random.Random(turn).shuffle(touched)
    others = [fault for fault in FAULTS if fault not in touched]
    return touched + others[turn % 10 :: 10]


def main(names: list[str], checked: bool, gate: bool) -> int:
    """Plant all faults, or those with one of these words in their names.

    First run their tests without a fault, unless `checked` says that they pass.
    """
    end = time.monotonic() + 60 * MINUTES
    for fault in FAULTS:
        if (ROOT / fault.file).read_text().count(fault.old) != 1:
            print(f"{fault.name}: its line is not in {fault.file} once")
            return 1
    faults = [fault for fault in FAULTS if not names or any(name in fault.name for name in names)]
    if gate:
        faults = of_the_change()
    # For Python test files, only the test that failed is run again.
    known = ("tests/", "--", "scripts/") if gate else ("tests/", "--") if checked else "tests/"
    tests = sorted({fault.test for fault in faults if not fault.test.startswith(known)})
    trees: queue.SimpleQueue[Path] = queue.SimpleQueue()

    def with_tree(run: Callable[[Path, T], R]) -> Callable[[T], R]:
        def in_turn(item: T) -> R:
            tree = trees.get()
            try:
                return run(tree, item)
            finally:
                trees.put(tree)

        return in_turn

    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(WORKERS) as pool:
        ignore = shutil.ignore_patterns(".git", ".venv", "target", "dist", "*.so", "__pycache__")
        for number in range(WORKERS):
            tree = Path(directory) / str(number)
            # With new timestamps, so that Cargo does not reuse builds of other sources.
            shutil.copytree(ROOT, tree, ignore=ignore, copy_function=shutil.copy)
            trees.put(tree)
        for test in filter(None, pool.map(with_tree(failure), tests)):
            print(f"{test} fails without any fault")
            return 1

        def in_time(tree: Path, fault: Fault) -> bool | None:
            return None if gate and time.monotonic() > end else catches(tree, fault)

        found = list(pool.map(with_tree(in_time), faults))
    caught = [each for each in found if each is not None]
    print(f"{sum(caught)} of {len(caught)} faults caught")
    if left := len(found) - len(caught):
        print(f"{left} faults are left for `make nightly`")
    return 0 if caught and all(caught) else 1


if __name__ == "__main__":
    words = sys.argv[1:]
    options = {CHECKED, GATE} & {*words}
    names = [word for word in words if word not in options]
    sys.exit(main(names, bool(options), GATE in options))
