#!/usr/bin/env python3
"""Writes usage records in line protocol, one per line: `bench/usage_lines.py 100000 > usage.lp`; `--tariffs` writes the
tariffs that price them. All lines are distinct, so that the received ones can be counted.
"""

import argparse
import random
import sys
import time

TENANTS = 50
HOUR_NS = 3_600_000_000_000
LINES_A_PIECE = 20_000

MODELS = ("small", "medium", "large", "reasoning")
REGIONS = ("eu-central", "eu-west", "us-east")

# Every meter has a price: by hour, by tiers, or one price. A run of a million records crosses tier limits.
TARIFFS = """\
[[tariff]]
name = "input tokens"
tenants = "*"
meter = "tokens.input"
per = 1_000_000
period = "month"
tiers = [
  { up_to = 2_000_000, price = "0.15" },
  { up_to = 20_000_000, price = "0.12" },
  { price = "0.10" },
]

[[tariff]]
name = "output tokens"
tenants = "*"
meter = "tokens.output"
per = 1_000_000
period = "month"
tiers = [
  { up_to = 1_000_000, price = "0.60" },
  { up_to = 10_000_000, price = "0.50" },
  { price = "0.40" },
]

[[tariff]]
name = "output tokens, agreed"
tenants = ["tenant-07", "tenant-21"]
meter = "tokens.output"
per = 1_000_000
price = "0.35"

[[tariff]]
name = "cached tokens"
tenants = "*"
meter = "tokens.cached"
per = 1_000_000
price = "0.02"

[[tariff]]
name = "gpu"
tenants = "*"
meter = "gpu.seconds"
currency = "EUR"
time_zone = "Europe/Berlin"
price = "0.0004"

[[tariff.window]]
name = "working hours"
days = "weekdays"
from = "07:00"
to = "20:00"
price = "0.0007"

[[tariff]]
name = "storage"
tenants = "*"
meter = "storage.gb_hours"
price = "0.000031"

[[tariff]]
name = "egress"
tenants = "*"
meter = "egress.gb"
time_zone = "America/New_York"
price = "0.05"

[[tariff.window]]
name = "night"
from = "22:00"
to = "06:00"
price = "0.02"

[[tariff]]
name = "requests"
tenants = "*"
meter = "requests"
per = 1000
price = "0.004"

[[tariff]]
name = "embeddings"
tenants = "*"
meter = "embeddings.vectors"
per = 1000
price = "0.0125"
"""


# === what a meter's line looks like ===


def tokens(field, most):
    return lambda draw, labels: f"tokens,{labels} {field}={int(draw() ** 3 * most) + 1}i"


def gpu(draw, labels):
    return f"gpu,{labels} seconds={draw() * 30:.3f}"


def storage(draw, labels):
    return f"storage,{labels} gb_hours={draw() * 400:.6f}"


def egress(draw, labels):
    return f"egress,{labels} gb={draw() * 2:.9f}"


def requests(draw, labels):
    return f"requests,{labels} value={int(draw() * 9) + 1}i"


def embeddings(draw, labels):
    return f"embeddings,{labels} vectors={int(draw() * 512) + 1}i"


# The most frequent kinds occur twice.
METERS = [
    *(tokens("input", 8_000), tokens("output", 2_000)) * 2,
    tokens("cached", 4_000),
    *(gpu, storage, egress, requests, embeddings),
]


def label_sets():
    """Returns the tags of lines by frequency: a quarter has only the tenant."""
    sets = []
    for tenant in (f"tenant=tenant-{number:02}" for number in range(TENANTS)):
        sets += [tenant] * (len(MODELS) * len(REGIONS) // 2)
        sets += [f"{tenant},model={model},region={region}" for model in MODELS for region in REGIONS]
        sets += [f"{tenant},model={model}" for model in MODELS for _ in REGIONS[1:]]
    return sets


def lines(count, seed=1, now_ns=None):
    """Yields `count` lines ordered by time over the last hour. The same seed gives the same quantities."""
    random_of = random.Random(seed)
    draw, choice = random_of.random, random_of.choice
    sets, meters = label_sets(), METERS
    step_ns = max(HOUR_NS // max(count, 1), 1)
    first_ns = (now_ns or time.time_ns()) - HOUR_NS
    for number in range(count):
        yield f"{choice(meters)(draw, choice(sets))} {first_ns + number * step_ns}\n"


def write_lines(out, count, seed=1):
    """Writes lines to a binary file in chunks."""
    piece = []
    for line in lines(count, seed):
        piece.append(line)
        if len(piece) == LINES_A_PIECE:
            out.write("".join(piece).encode())
            piece.clear()
    out.write("".join(piece).encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tariffs", action="store_true", help="write the tariffs instead")
    options = parser.parse_args()
    try:
        if options.tariffs:
            sys.stdout.write(TARIFFS)
        else:
            write_lines(sys.stdout.buffer, options.count, options.seed)
    except BrokenPipeError:
        sys.stderr.close()  # A reader that stops early, such as `head`, is not a failure.
    return 0


if __name__ == "__main__":
    sys.exit(main())
