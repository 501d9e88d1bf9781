#!/usr/bin/env python3
"""ZeRO-3 over a slow link: two_hosts.py [--rate 1gbit] [--batch N] [--steps N] [--strategies …] [--break-link] [SNUG]

Two network namespaces stand for two hosts; the link between them is shaped to the rate. A rank on each trains a model of
SmolLM2-135M's shape in full, with one thread and weights, gradients and states shared out. Beside the time of a step: what it takes
to compute (two runs of one rank each at the same time, so that both cores are as busy), and what its bytes take on the link as a
plain socket fills it. A step that hides one behind the other takes the longer of the two.

--break-link instead takes the link away in the middle of a run and tells when the rank on either side ends, and what is said.

Needs root, Open MPI and `ip`; says so and ends with 0 where it may not make namespaces."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOSTS = {"snug-a": "10.77.0.1", "snug-b": "10.77.0.2"}
MODEL = "HuggingFaceTB/SmolLM2-135M"
GOAL = 1.15
STRATEGIES = {"zero3": ["--zero-stage", 3], "zero3-without-overlap": ["--zero-stage", 3, "--overlap-comm", "false"],
              "zero2": ["--zero-stage", 2], "zero1": ["--zero-stage", 1], "ddp": []}
SEND = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], 5999)); block = bytes(1 << 20)
for _ in range(int(sys.argv[2])): s.sendall(block)
s.shutdown(socket.SHUT_WR); s.recv(1)
"""
RECEIVE = """
import socket, sys, time
l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); l.bind((sys.argv[1], 5999)); l.listen(); print("ready", flush=True)
c, _ = l.accept(); begin = time.time(); n = 0
while b := c.recv(1 << 20): n += len(b)
print(n / (time.time() - begin)); c.send(b"x")
"""


def run(*words, **options):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, **options).stdout


def inside(host, *words):
    return ["ip", "netns", "exec", host, *[str(w) for w in words]]


def take_down():
    for host in HOSTS:
        subprocess.run(["ip", "netns", "del", host], capture_output=True)


def set_up(rate):
    take_down()
    for host in HOSTS:
        run("ip", "netns", "add", host)
    run("ip", "link", "add", "va", "netns", "snug-a", "type", "veth", "peer", "name", "vb", "netns", "snug-b")
    for host, address in HOSTS.items():
        device = "v" + host[-1]
        run("ip", "-n", host, "addr", "add", address + "/24", "dev", device)
        run("ip", "-n", host, "link", "set", device, "up")
        run("ip", "-n", host, "link", "set", "lo", "up")
        run(*inside(host, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"))


def link_bytes_per_second(mebibytes=64):
    receiver = subprocess.Popen(inside("snug-b", sys.executable, "-c", RECEIVE, HOSTS["snug-b"]), stdout=subprocess.PIPE, text=True)
    receiver.stdout.readline()
    run(*inside("snug-a", sys.executable, "-c", SEND, HOSTS["snug-b"], mebibytes))
    return float(receiver.communicate()[0])


def words(asked, model, data, output, more=()):
    return [asked.snug, "train", model, "--data", data, "--method", "full", "--seq", 512, "--batch", asked.batch, "--threads", 1,
            "--max-steps", asked.steps, "--save-strategy", "no", "--overwrite-output-dir", "--output-dir", output, *more]


def seconds_of_steps(output):
    lines = [json.loads(line) for line in open(output / "metrics.jsonl")]
    rates = [line["tokens_per_second"] for line in lines if "learning_rate" in line][1:]  # the first touches everything
    return lines[-1]["summary"], rates


def mpirun_words(directory, command):
    agent = directory / "agent"
    agent.write_text('#!/bin/sh\nhost=$1; shift\nexec ip netns exec snug-b unshare --uts sh -c "hostname snug-b; $*"\n')
    agent.chmod(0o755)
    hosts = directory / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{a} {h}\n" for h, a in HOSTS.items()))
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_WAIT_POLICY="passive")
    net = "10.77.0.0/24"
    settings = ["--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "btl", "tcp,self", "--mca",
                "btl_tcp_if_include", net, "--mca", "oob_tcp_if_include", net, "--bind-to", "none", "-H", "snug-a:1,snug-b:1", "-n", "2"]
    start = f"mount --bind {hosts} /etc/hosts; hostname snug-a; exec mpirun \"$@\""
    return inside("snug-a", "unshare", "--uts", "--mount", "sh", "-c", start, "sh", *settings, *command), environment


def mpirun(directory, command):
    words, environment = mpirun_words(directory, command)
    return run(*words, env=environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=2, help="rows of 512 tokens that a rank takes")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--break-link", action="store_true")
    parser.add_argument("snug", nargs="?", default=str(ROOT / "build/snug"))
    asked = parser.parse_args()
    missing = [tool for tool in ("ip", "tc", "mpirun", "unshare") if shutil.which(tool) is None]
    try:
        if missing:
            raise OSError(f"{', '.join(missing)}: not installed")
        set_up(asked.rate)
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"SKIPPED: two hosts cannot be made here: {getattr(problem, 'stderr', None) or problem}")
        return
    try:
        with tempfile.TemporaryDirectory() as name:
            (break_link if asked.break_link else measure)(asked, pathlib.Path(name))
    finally:
        take_down()


def prepare(asked, directory, named):
    model, data = directory / "model", directory / "rows.jsonl"
    run(asked.snug, "init", named, "--output-dir", model)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(ROOT / "demo/model" / file, model / file)
    data.write_text("".join(json.dumps({"text": "the quick brown fox jumps over the lazy dog " * 60}) + "\n" for _ in range(400)))
    return model, data


def ranks_in(host):  # what has ended has no program any more
    inside_it = run("ip", "netns", "pids", host).split()
    return [id for id in inside_it if os.path.exists(f"/proc/{id}/exe") and os.readlink(f"/proc/{id}/exe").endswith("/snug")]


def break_link(asked, directory):
    model, data = prepare(asked, directory, ROOT / "demo/model")
    output, told = directory / "together", directory / "told"
    asked.steps = 100_000
    command, environment = mpirun_words(directory, words(asked, model, data, output, ["--zero-stage", 3, "--seq", 64]))
    with open(told, "w") as file:
        launcher = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        metrics = output / "metrics.jsonl"
        while launcher.poll() is None and not (metrics.exists() and len(metrics.read_text().splitlines()) > 3):
            time.sleep(0.1)
        run("ip", "-n", "snug-a", "link", "set", "va", "down")
        begin, ended = time.time(), {}
        while len(ended) < 2 and time.time() - begin < 60:
            for host in HOSTS:
                if host not in ended and not ranks_in(host):
                    ended[host] = time.time() - begin
            time.sleep(0.1)
        for host in HOSTS:  # what of the launcher waits for the other side
            for id in run("ip", "netns", "pids", host).split():
                subprocess.run(["kill", "-9", id], capture_output=True)
        launcher.wait()
    print("ranks ended after " + " and ".join(f"{ended.get(host, 999):.1f} s" for host in HOSTS))
    print("\n".join(line for line in told.read_text().splitlines() if line.startswith("snug: ")))


def measure(asked, directory):
    model, data = prepare(asked, directory, MODEL)
    link = link_bytes_per_second()
    alone = [directory / "alone-1", directory / "alone-2"]
    for process in [subprocess.Popen([str(w) for w in words(asked, model, data, output)], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL) for output in alone]:
        process.wait()
    tokens = asked.batch * 512
    compute = max(tokens / (sum(rates) / len(rates)) for _, rates in map(seconds_of_steps, alone))
    print(f"link {link / 1e6:.0f} MB/s, computing alone {compute:.2f} s a step\n")
    print(f"{'':24} {'step':>8} {'sent':>9} {'on the link':>12} {'of the longer':>14} {'measured of planned':>20}")
    for name in asked.strategies:
        output = directory / "together"
        mpirun(directory, words(asked, model, data, output, STRATEGIES[name]))
        summary, rates = seconds_of_steps(output)
        step = 2 * tokens / (sum(rates) / len(rates))
        sent = summary["rank_sent_bytes"][0] / summary["steps"]
        longer = max(compute, sent / link)
        share = max(summary["rank_peak_bytes"]) / summary["planned_peak_bytes"]
        print(f"{name:24} {step:6.2f} s {sent / 1e6:6.0f} MB {sent / link:10.2f} s {step / longer:13.2f}x {100 * share:18.1f} %", flush=True)
    print(f"\nto reach: ZeRO 3 at most {GOAL} of the longer of computing and sending")


if __name__ == "__main__":
    main()
