"""Runs /app/solution.py on the private tests and writes 1 or 0 to /logs/verifier/reward.txt.

The program runs as `nobody` where that is possible, the answers are readable by root only, and outputs are compared
here: nothing that the program says of itself counts.
"""

import collections
import json
import os
import pathlib
import re
import resource
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOLUTION = os.environ.get("RLEF_SOLUTION", "/app/solution.py")
REWARD = pathlib.Path(os.environ.get("RLEF_REWARD", "/logs/verifier/reward.txt"))
MOST_OUTPUT = 64 << 20
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,18})?")
WHOLE = re.compile(rb"[+-]?\d+")
BLANKS = b" \t\n\r\x0b\x0c"


def lines(text):
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def filled(text):
    return [tokens for tokens in (line.split() for line in lines(text)) if tokens]


def exactly(number):
    """Sign, digits and power of ten: the same where two numbers have the same value."""
    sign = number.startswith(b"-")
    mantissa, _, exponent = number.lstrip(b"+-").lower().partition(b"e")
    whole, _, fraction = mantissa.partition(b".")
    digits = whole + fraction
    power = int(exponent or 0) + len(whole) - (len(digits) - len(digits.lstrip(b"0")))
    digits = digits.strip(b"0")
    return (sign, digits, power) if digits else (False, b"", 0)


def near(expected, got, abs_, rel, integers_exact=False):
    if not (NUMBER.fullmatch(expected) and NUMBER.fullmatch(got)):
        return False
    if integers_exact and WHOLE.fullmatch(expected) and WHOLE.fullmatch(got):
        abs_ = rel = 0.0
    a, b = float(expected), float(got)
    tolerance = max(abs_, rel * abs(a))
    spacing = max(abs(a), abs(b)) * 2.0**-52
    if all(x not in (float("inf"), float("-inf")) for x in (a, b, tolerance)) and tolerance > 2 * spacing:
        return abs(a - b) <= tolerance + spacing
    return exactly(expected) == exactly(got)


def compare(checker, expected, got):
    kind = checker["kind"]
    case = checker.get("case_sensitive", True)
    fold = (lambda token: token) if case else (lambda token: token.lower())
    if kind == "exact":
        return expected == got
    if kind == "lines":
        cut = lambda text: [line.rstrip(BLANKS) for line in lines(text.rstrip(BLANKS))]
        return cut(expected) == cut(got)
    if kind == "any_order":
        count = lambda text: collections.Counter(b" ".join(map(fold, tokens)) for tokens in filled(text))
        return count(expected) == count(got)
    if kind == "float":
        numbers, space = {"abs": checker.get("abs", 0.0), "rel": checker.get("rel", 0.0)}, "lines"
    else:
        numbers, space = checker.get("numbers"), checker.get("white_space", "lines")

    def same(a, b):
        if fold(a) == fold(b):
            return True
        return numbers is not None and near(
            a, b, numbers.get("abs", 0.0), numbers.get("rel", 0.0), numbers.get("integers_exact", False)
        )

    def all_same(a, b):
        return len(a) == len(b) and all(map(same, a, b))

    if space == "any":
        return all_same(expected.split(), got.split())
    if space == "exact":
        gaps = lambda text: re.findall(rb"[ \t\n\r\x0b\x0c]+", text)
        starts = lambda text: text[:1].strip(BLANKS) == b""
        same_gaps = gaps(expected) == gaps(got) and starts(expected) == starts(got)
        return same_gaps and all_same(expected.split(), got.split())
    a, b = filled(expected), filled(got)
    return len(a) == len(b) and all(map(all_same, a, b))


def limits(config):
    def apply():
        seconds = int(config["time_limit_s"]) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        size = config["memory_limit_mb"] << 20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))

    return apply


def passes(config, source, answer):
    as_nobody = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with open("/dev/shm/output" if os.path.isdir("/dev/shm") else "/tmp/output", "w+b") as output:
        with open(source, "rb") as stdin:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            try:
                code = subprocess.run(
                    [sys.executable, "-I", SOLUTION],
                    stdin=stdin,
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                    timeout=config["time_limit_s"] * 3 + 2,
                    preexec_fn=limits(config),
                    **as_nobody,
                ).returncode
            except subprocess.TimeoutExpired:
                return False
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if code != 0 or used > config["time_limit_s"]:
            return False
        output.seek(0)
        return compare(config["checker"], answer.read_bytes(), output.read())


def main():
    tests = HERE / "private"
    if os.geteuid() == 0:
        os.chmod(HERE, 0o700)
    config = json.loads((HERE / "config.json").read_text())
    sources = sorted(tests.glob("*.in"), key=lambda path: int(path.stem))
    passed = bool(sources) and all(passes(config, path, path.with_suffix(".out")) for path in sources)
    REWARD.parent.mkdir(parents=True, exist_ok=True)
    REWARD.write_text("1\n" if passed else "0\n")


if __name__ == "__main__":
    main()
