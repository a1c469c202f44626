"""Tables and target verdicts of the task measurements."""

import statistics
from dataclasses import dataclass, field

from harness import spread

DURABLE_MIN = 5_000
CELERY_MIN = 10
MESSAGES_MAX = 5
SATURATED_MIN = 97
BURST_MAX = 1.3
# Maximum wait in virtual time by executors and load: mean and 99th percentile.
WAITS_MAX = {(3, 0.8): (34, 180), (30, 0.95): (34, None)}
PATHS = {
    "in-process": "tidegate, executor in the process",
    "by-http": "tidegate, a worker by HTTP",
    "celery": "Celery on Redis",
    "celery-durable": "Celery, acks_late, Redis syncs every write",
}


@dataclass
class Findings:
    submitted: list = field(default_factory=list)
    done: dict = field(default_factory=dict)
    simulated: dict = field(default_factory=dict)
    real: dict = field(default_factory=dict)
    seed: dict = field(default_factory=dict)
    messages: object = None
    bursts: list = field(default_factory=list)
    saturation: object = None
    overshoot: list = field(default_factory=list)

    def ratios(self, name):
        """Ratios to Celery within the same round."""
        return [ours / theirs for ours, theirs in zip(self.done[name], self.done["celery"], strict=True)]


# === tables ===


def submissions_table(findings):
    if findings.submitted:
        cells = [[getattr(each, name) for each in findings.submitted] for name in ("rate", "p50_ms", "p99_ms", "cpu_us")]
        rate, p50, p99, cpu = (spread(values, digits) for values, digits in zip(cells, (0, 1, 1, 0), strict=True))
        yield "| durable submissions/s, 64 clients | p50 ms | p99 ms | CPU µs each |"
        yield "|---|---|---|---|"
        yield f"| {rate} | {p50} | {p99} | {cpu} |"
        yield ""


def paths_table(findings):
    if findings.done:
        yield "| no-op tasks through the whole path, 3 slots | tasks/s | × Celery |"
        yield "|---|---|---|"
        for name in [name for name in PATHS if name in findings.done]:
            times = spread(findings.ratios(name), 1) if "celery" in findings.done else "–"
            yield f"| {PATHS[name]} | {spread(findings.done[name], 0)} | {times} |"
        yield ""


def simulated_table(findings):
    yield "| virtual time: executors | load | placement | wasted | messages | mean ms | p99 ms | goodput % | saturated % | recovery | tasks |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for row in findings.simulated.values():
        yield f"| {' | '.join(row)} |"
    yield ""


def real_table(findings):
    if findings.real:
        yield "| real processes | tasks | wasted | messages | mean ms | p99 ms | goodput % | submitted late by, p99 ms | machine busy % |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for (executors, load), it in findings.real.items():
            said = f"{findings.messages.a_task:.2f}" if executors == 3 and findings.messages else "–"
            cells = [f"{it.wasted:.2f}", said, f"{it.mean_ms:.1f}", f"{it.p99_ms:.0f}", "100"]
            cells += [f"{it.late_ms:.1f}", f"{it.machine_busy_percent:.0f}"]
            yield f"| {executors} × {executors}, {load:.0%}, pull | {it.tasks} | {' | '.join(cells)} |"
        for (executors, load), it in findings.seed.items():
            cells = [f"{it.refused / max(len(it.waits_ms), 1):.2f}", f"{it.messages:.2f}"]
            mean, p99 = (f"{statistics.mean(it.waits_ms):.1f}", f"{it.p99_ms:.0f}") if it.waits_ms else ("–", "–")
            cells += [mean, p99, f"{100 * it.goodput:.0f}", "–", "–"]
            yield f"| {executors} × {executors}, {load:.0%}, design document's loop | {it.arrived} | {' | '.join(cells)} |"
        yield ""


def real_lines(findings):
    if findings.messages:
        each = ", ".join(f"{path} {count:.2f}" for path, count in sorted(findings.messages.requests.items()))
        yield f"- requests per task, each with its reply: {each}"
    if findings.saturation:
        held, worked = 100 * findings.saturation.held, 100 * findings.saturation.worked
        yield f"- 3 real executors with a full queue: slots occupied {held:.1f} % and working {worked:.1f} % of the time"
    if findings.bursts:
        yield f"- a burst of one second's work on 3 real executors: {spread(findings.bursts, 2)} × the theory"
    if findings.overshoot:
        middle, most = (statistics.median(values) for values in zip(*findings.overshoot, strict=True))
        yield f"- the machine's part: a sleep of 50 ms took {middle:.2f} ms longer (median), {most:.1f} ms at most"
    yield ""


# === targets ===


def submission_verdicts(findings):
    if findings.submitted:
        rates = [each.rate for each in findings.submitted]
        yield f"durable submissions/s ≥ {DURABLE_MIN}: {spread(rates, 0)}", statistics.median(rates) >= DURABLE_MIN


def path_verdicts(findings):
    if "celery" in findings.done and "in-process" in findings.done:
        ratios = findings.ratios("in-process")
        text = f"no-op tasks, executor in the process / Celery ≥ {CELERY_MIN}: {spread(ratios, 1)}"
        yield text, statistics.median(ratios) >= CELERY_MIN


def simulated_verdicts(findings):
    for (executors, load), (mean_max, p99_max) in WAITS_MAX.items():
        row = findings.simulated[executors, load, "pull"]
        wasted, said, mean, p99, _, saturated, recovery = map(number, row[3:10])
        where = f"virtual time, {executors} × {executors} at {load:.0%}"
        yield f"{where}, wasted submissions = 0: {wasted:.2f}", wasted == 0
        yield f"{where}, messages per task ≤ {MESSAGES_MAX}: {said:.1f}", said <= MESSAGES_MAX
        yield f"{where}, mean wait ≤ {mean_max} ms: {mean:.1f}", mean <= mean_max
        if p99_max:
            yield f"{where}, p99 wait ≤ {p99_max} ms: {p99:.1f}", p99 <= p99_max
        yield f"{where}, saturated ≥ {SATURATED_MIN} %: {saturated:.1f}", saturated >= SATURATED_MIN
        yield f"{where}, burst ≤ {BURST_MAX} × the theory: {recovery:.2f}", recovery <= BURST_MAX


def real_verdicts(findings):
    """Judges messages and refusals of real processes; waits depend on other load of the machine and are not judged."""
    for (executors, load), it in findings.real.items():
        where = f"real processes, {executors} × {executors} at {load:.0%}"
        yield f"{where}, wasted submissions = 0: {it.wasted:.3f}", it.wasted == 0
    if findings.messages:
        said = findings.messages.a_task
        yield f"real processes, messages per task ≤ {MESSAGES_MAX}: {said:.2f}", said <= MESSAGES_MAX


def number(cell):
    """Returns a cell of the simulation's table as a number; `-` is infinity."""
    return float("inf") if cell == "-" else float(cell)


def tables(findings):
    """Returns all tables without the verdicts."""
    for part in (submissions_table, paths_table, simulated_table, real_table, real_lines):
        yield from part(findings)


def judge(findings):
    """Returns one line per target, and the missed targets."""
    lines, missed = [], []
    for verdicts in (submission_verdicts, path_verdicts, simulated_verdicts, real_verdicts):
        for text, holds in verdicts(findings):
            lines.append(f"- {text}: {'holds' if holds else 'MISSED'}")
            if not holds:
                missed.append(text)
    return lines, missed
