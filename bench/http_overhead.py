#!/usr/bin/env python3
"""Tokens a second through HTTP beside those of the engine alone, with the bundled model, in interleaved rounds.

    ninja -C build sluice engine_bench && bench/http_overhead.py [--rounds N] [--threads N] > records.json
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLUICE, ENGINE = ROOT / "build/sluice", ROOT / "build/bench/engine_bench"
MODEL, INPUT_TOKENS, OUTPUT_TOKENS = "models/tiny", 32, 128
REQUESTS = {1: 40, 64: 256}


def engine_rate(concurrency, threads):
    out = subprocess.run([ENGINE, MODEL, str(concurrency), str(INPUT_TOKENS), str(OUTPUT_TOKENS),
                          str(REQUESTS[concurrency]), str(threads)], cwd=ROOT, check=True, capture_output=True, text=True)
    return float(re.search(r"([0-9.]+) tok/s", out.stdout)[1])


def http_rate(url, concurrency, more):
    out = subprocess.run([SLUICE, "bench", "--serve", url, "--concurrency", str(concurrency), "--requests",
                          str(REQUESTS[concurrency]), "--input-tokens", str(INPUT_TOKENS), "--output-tokens",
                          str(OUTPUT_TOKENS), "--prompt-ids", "--json", *more],
                         cwd=ROOT, check=True, capture_output=True, text=True)
    rates = [record["value"] for record in json.loads(out.stdout) if record["case"].endswith(".output_throughput")]
    if len(rates) != 1:
        sys.exit(f"no output_throughput in {out.stdout}")
    return rates[0]


def start_server(threads):
    """The server, ready, and its address, which it prints."""
    command = [SLUICE, "serve", "--port", "0", *(["--threads", str(threads)] if threads else [])]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if found := re.search(r"listening on (http://\S+)", line):
            threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
            return server, found[1]
    sys.exit("the server ended")


def command_line():
    """What was called, with the processors it was bound to."""
    allowed = sorted(os.sched_getaffinity(0))
    bound = [] if len(allowed) == os.cpu_count() else ["taskset", "-c", ",".join(map(str, allowed))]
    return " ".join([*bound, "bench/http_overhead.py", *sys.argv[1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="of the engine; 0: as many as it chooses")
    options = parser.parse_args()
    server, url = start_server(options.threads)
    rates = {}
    try:
        for round_number in range(options.rounds):
            for concurrency in REQUESTS:
                arms = {"engine": lambda: engine_rate(concurrency, options.threads),
                        "http.streamed": lambda: http_rate(url, concurrency, []),
                        "http.whole": lambda: http_rate(url, concurrency, ["--no-stream"])}
                for name, measure in arms.items():
                    rates.setdefault((name, concurrency), []).append(measure())
                    print(f"round {round_number + 1}: {name} {concurrency}: {rates[name, concurrency][-1]:.0f} tok/s",
                          file=sys.stderr)
    finally:
        server.terminate()
        server.wait(timeout=60)
    version = subprocess.run([SLUICE, "version"], check=True, capture_output=True, text=True).stdout
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    records = [{
        "case": f"{name}.tiny.c{concurrency}.i{INPUT_TOKENS}.o{OUTPUT_TOKENS}",
        "value": round(statistics.median(values), 1), "unit": "tok/s", "runs": [round(value, 1) for value in values],
        "share_of_engine": round(statistics.median(values) / statistics.median(rates["engine", concurrency]), 4),
        "device": cpu[1] if cpu else "unknown", "processors": len(os.sched_getaffinity(0)),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": re.search(r"\((.*?)\)", version)[1], "command": command_line(),
    } for (name, concurrency), values in rates.items()]
    json.dump(records, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
