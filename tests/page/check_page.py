#!/usr/bin/env python3
"""Holds the page that `make page` built to the program and to its promises, in headless Chromium: check_page.py [PAGE [SNUG]]

Answers: every question of questions.py, asked of the page's planner and of the program; texts and integers must be the same, floats to
1e-12. Speed, size, narrow and wide windows, the keyboard alone, the network, a snapshot of 100 MB: each against its limit below.
Ends with 77 where there is no Chromium or no page. Pictures are kept in the folder that SNUG_PICTURES names, if it does."""

import base64
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import browser
import questions
import snapshot

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FIRST_ANSWER_MS, SLIDER_MS, LEVERS_MS, FIT_MS, WIRE_BYTES = 1500, 60, 500, 5000, 3_000_000
SNAPSHOT_MEGABYTES, SNAPSHOT_MS, SNAPSHOT_BYTES, USABLE_MS = 100, 10_000, 600 * 2**20, 400
FLOAT = 1e-12
DATA = "document.documentElement?.dataset"

SPIN = "import time; w = time.monotonic(); c = time.process_time()\nwhile time.process_time() - c < 0.25: pass\nprint((time.monotonic() - w) / 0.25)"

wrong = []


def hold(what, fine, told=""):
    print(f"{'ok   ' if fine else 'WRONG'} {what}{': ' if told else ''}{told}", flush=True)
    if not fine:
        wrong.append(what)


class Beside:
    """How much slower this machine is than it would be alone, because others compute on it: what two loops take of wall time for each second
    of computing, before and after what is timed. The limits are those of a machine of one's own."""

    def __enter__(self):
        self.factor = self.measured()
        return self

    def __exit__(self, *problem):
        self.factor = max(1.0, (self.factor + self.measured()) / 2)

    @staticmethod
    def measured():
        loops = [subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE, text=True) for _ in range(2)]
        return sum(float(loop.communicate()[0]) for loop in loops) / len(loops)


def hold_time(what, milliseconds, limit, beside, told=""):
    others = f", on a machine {beside.factor:.1f} times as slow as alone" if beside.factor > 1.1 else ""
    hold(what, milliseconds <= limit * beside.factor, f"{told}{milliseconds:.0f} ms of {limit}{others}")


# ---- Answers

def of_program(program, words, files):
    """(exit code, output, messages) of the program, in a directory that holds the files, without a home."""
    with tempfile.TemporaryDirectory() as directory:
        for name, data in files.items():
            pathlib.Path(directory, name).parent.mkdir(exist_ok=True)
            pathlib.Path(directory, name).write_bytes(data)
        environment = {"PATH": "/usr/bin:/bin", "HOME": directory, "LC_ALL": "C"}
        done = subprocess.run([program, *words], cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
        return done.returncode, done.stdout.decode(), done.stderr.decode()


def of_page(chromium, asked):
    """Likewise of the page's planner, by the desks that the page itself uses."""
    sent = [[words, [[name, base64.b64encode(data).decode()] for name, data in files.items()]] for words, files in asked]
    return chromium.run("""(async (asked) => {
      const {Desk} = await import("./desk.js");
      globalThis.module ??= await WebAssembly.compileStreaming(fetch("snug.wasm"));
      globalThis.desk ??= new Desk(globalThis.module);
      const answers = [];
      for (const [words, files] of asked) {
        const given = files.map(([name, data]) => [name, Uint8Array.from(atob(data), (c) => c.charCodeAt(0))]);
        const {exitCode, output, messages} = await globalThis.desk.ask(words, given);
        answers.push([exitCode, output, messages]);
      }
      return answers;
    })(""" + json.dumps(sent) + ")", 300)


def without_clock(text):
    """Searches tell how long they took."""
    return re.sub(r"( in )\d[\d.]* m?s\b", r"\1… s", text)


def difference(a, b, where=""):
    """Where two answers as JSON are not the same, or an empty text."""
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return f"{where}: keys {list(a)} and {list(b)}"
        return next((d for key in a if (d := difference(a[key], b[key], f"{where}.{key}"))), "")
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return f"{where}: {len(a)} and {len(b)} entries"
        return next((d for i, (x, y) in enumerate(zip(a, b)) if (d := difference(x, y, f"{where}[{i}]"))), "")
    if isinstance(a, float) and isinstance(b, float):
        return "" if a == b or abs(a - b) <= FLOAT * max(abs(a), abs(b)) else f"{where}: {a!r} and {b!r}"
    return "" if type(a) is type(b) and a == b else f"{where}: {a!r} and {b!r}"


def without_search_time(words, json_answer):
    if words[0] == "fit":
        json_answer.pop("seconds", None)
        (json_answer.get("pytorch") or {}).pop("seconds", None)
    return json_answer


def compared(words, program, page):
    if program[0] != page[0]:
        return f"exit code {program[0]} and {page[0]}; {program[2]!r} and {page[2]!r}"
    if program[2] != page[2]:
        return f"messages {program[2]!r} and {page[2]!r}"
    if "--json" in words and program[1].startswith("{"):
        return difference(*(without_search_time(words, json.loads(side[1])) for side in (program, page)))
    here, there = without_clock(program[1]).splitlines(), without_clock(page[1]).splitlines()
    return next((f"{a!r} and {b!r}" for a, b in zip(here, there) if a != b), "" if len(here) == len(there) else "one is longer")


def check_answers(chromium, program, shared):
    asked, started = questions.all_questions(shared), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # the program answers on one core while the page does on another
        of_programs = pool.map(lambda one: of_program(program, *one), asked)
        pages = [answer for i in range(0, len(asked), 12) for answer in of_page(chromium, asked[i:i + 12])]
        programs = list(of_programs)
    others = [(words, told) for (words, _), a, b in zip(asked, programs, pages) if (told := compared(words, a, b))]
    for words, told in others[:20]:
        print("      ", *words, "->", told[:300])
    codes = {code: sum(a[0] == code for a in programs) for code in sorted({a[0] for a in programs})}
    equal = sum(list(a) == b for a, b in zip(programs, pages))
    hold("the page answers as the program", not others, f"{len(asked) - len(others)} of {len(asked)} questions (exit codes {codes}; {equal} to the letter) "
         f"in {time.monotonic() - started:.0f} s")


# ---- The page

def number(chromium, name):
    return float(chromium.run(f"{DATA}.{name} ?? 'nan'"))


def loaded(chromium, address, **window):
    chromium.open(address, **window)
    chromium.wait(f"{DATA}.settled", 60)


def check_first_answer(chromium, address):
    times = []
    with Beside() as beside:
        for _ in range(3):
            chromium.open(address)
            chromium.wait(f"{DATA}.firstAnswer")
            times.append(number(chromium, "firstAnswer"))
            chromium.wait(f"{DATA}.settled")
    hold_time("first answer after load, median", sorted(times)[1], FIRST_ANSWER_MS, beside)


# Keys on a slider, one after the other: from the key to the first line and the bars.
def check_sliders(chromium):
    times, moved = [], set()
    with Beside() as beside:
        for name in ("seq", "batch", "rank"):
            chromium.run(f"document.getElementById('{name}').focus()")
            for key in ["ArrowRight"] * 5 + ["ArrowLeft"] * 8 + ["ArrowRight"] * 7:
                before = number(chromium, "answers")
                value = chromium.run(f"document.getElementById('{name}').value")
                chromium.key(key)
                if chromium.run(f"document.getElementById('{name}').value") == value:
                    continue
                chromium.wait(f"{DATA}.answers > {before}")
                times.append(number(chromium, "milliseconds"))
                moved.add(chromium.run("document.querySelector('.memory').dataset.bytes"))
    times.sort()
    hold("sliders move the answer", len(times) > 40 and len(moved) > 12, f"{len(moved)} peaks in {len(times)} moves")
    hold_time("first line and bars while a slider moves", times[int(0.95 * len(times))], SLIDER_MS, beside, f"p50 {times[len(times) // 2]:.0f} ms, p95 ")


def check_levers(chromium):
    times = []
    with Beside() as beside:
        for _ in range(3):
            chromium.run(f"delete {DATA}.leversMilliseconds; document.getElementById('checkpointing').click()")
            chromium.wait(f"{DATA}.leversMilliseconds")
            times.append(number(chromium, "leversMilliseconds"))
    hold_time("levers, median", sorted(times)[1], LEVERS_MS, beside)


def check_fit(chromium, address):
    press = "document.getElementById('fit').click()"
    loaded(chromium, address)
    with Beside() as beside:
        chromium.run(press)
        chromium.wait(f"{DATA}.fitMilliseconds")
    hold_time("fit", number(chromium, "fitMilliseconds"), FIT_MS, beside)
    recipe = chromium.run("document.getElementById('fit-diff').textContent")
    hold("fit gives a recipe", 'model_name_or_path: "meta-llama/Llama-3.1-8B"' in recipe, recipe.splitlines()[0] if recipe else "nothing")
    chromium.run(f"delete {DATA}.fitMilliseconds; {press}")
    time.sleep(0.1)
    chromium.run("document.getElementById('cancel').click()")
    chromium.wait("document.getElementById('fit-text').textContent === 'Cancelled.'")
    chromium.run(press)
    chromium.wait(f"{DATA}.fitMilliseconds")
    hold("fit is cancelled at once, and searches again", True)


def check_recipe_and_link(chromium, address, folder):
    recipe = folder / "run.yaml"
    recipe.write_text("base_model: Qwen/Qwen2.5-7B\nadapter: lora\nlora_r: 24\nlora_alpha: 32\nlora_target_linear: true\nsequence_len: 4096\n"
                      "micro_batch_size: 8\ngradient_accumulation_steps: 2\noptimizer: adamw_torch\nbf16: true\n")
    chromium.drop(recipe)
    chromium.wait("document.getElementById('command').textContent.includes('run.yaml') && document.getElementById('rank-value').textContent === '24'")
    chromium.run(f"delete {DATA}.fitMilliseconds; document.getElementById('fit').click()")
    chromium.wait(f"{DATA}.fitMilliseconds")
    diff = chromium.run("document.getElementById('fit-diff').textContent")
    hold("fit gives a recipe's change as a diff", diff.startswith("--- run.yaml") and "\n-micro_batch_size: 8" in diff)
    chromium.wait("location.hash.includes('recipe')")
    link, peak = chromium.run("location.href"), chromium.run("document.querySelector('.memory').dataset.bytes")
    loaded(chromium, link)
    hold("a link holds the whole question", chromium.run("document.querySelector('.memory').dataset.bytes") == peak and
         chromium.run("document.getElementById('files').textContent.includes('run.yaml')"), f"{len(link)} characters")
    loaded(chromium, address)
    config = folder / "config.json"
    config.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1536,
                                  "num_hidden_layers": 6, "num_attention_heads": 8, "vocab_size": 8192, "max_position_embeddings": 4096}))
    chromium.drop(config)
    chromium.wait("document.getElementById('command').textContent.includes('dropped-model/config.json') && !document.querySelector('#verdicts .over')")
    chromium.run("document.querySelector('#files button').click()")
    chromium.wait("document.getElementById('command').textContent.includes('Llama-3.1-8B')")
    hold("a config.json is the model, until it is taken away", True)
    chromium.run("document.getElementById('paste').value = 'model_name_or_path: Qwen/Qwen2.5-0.5B\\nstage: sft\\nfinetuning_type: lora\\ncutoff_len: 768\\n"
                 "per_device_train_batch_size: 5\\n'; document.getElementById('paste').dispatchEvent(new Event('change'))")
    chromium.wait("document.getElementById('command').textContent.includes('pasted.yaml') && document.getElementById('batch-value').textContent === '5'")
    hold("a pasted recipe sets the sliders", chromium.run("document.getElementById('seq-value').textContent") == "768")
    loaded(chromium, address)
    chromium.run("document.getElementById('model').value = 'LiquidAI/LFM2-350M'; document.getElementById('model').dispatchEvent(new Event('change'))")
    chromium.wait("document.getElementById('verdicts').textContent.includes('held in any case')")
    hold("a model whose step is not modelled has its text alone", chromium.run("document.getElementById('bars').textContent") == "",
         chromium.run("document.getElementById('verdicts').textContent"))
    loaded(chromium, link)
    log = folder / "train.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.20 GiB "
                   "is free. Including non-PyTorch memory, this process has 22.44 GiB memory in use. Of the allocated memory 21.50 GiB is allocated by "
                   "PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated.\n")
    chromium.drop(log)
    chromium.wait("document.getElementById('explanation-text').textContent.includes('cause:')")
    chromium.run("document.getElementById('with-run').click()")
    chromium.wait("document.getElementById('explanation-text').textContent.includes('run.yaml')")
    hold("a log is explained, alone and beside the run", True)


def check_windows(chromium, address):
    folder = os.environ.get("SNUG_PICTURES")
    for width in (360, 768, 1440):
        for dark in (False, True):
            loaded(chromium, address, width=width, dark=dark)
            wide, inner = chromium.run("[document.documentElement.scrollWidth, innerWidth]")
            ground = chromium.run("getComputedStyle(document.body).backgroundColor")
            bright = sum(map(int, re.findall(r"\d+", ground)[:3])) > 380
            hold(f"{width} px, {'dark' if dark else 'light'}: nothing to scroll sideways", wide <= inner and bright != dark, ground)
            if folder:
                chromium.picture(pathlib.Path(folder, f"{width}-{'dark' if dark else 'light'}.png"))


# Tab through the page: every control has its turn, in sight and with a mark; keys operate each kind of it.
def check_keyboard(chromium, address):
    loaded(chromium, address)
    expected = set(chromium.run("""[...document.querySelectorAll('input, select, textarea, button, summary, [tabindex="0"]')]
      .filter((e) => !e.disabled && e.tabIndex >= 0 && e.checkVisibility()).map((e, i) => e.dataset.turn = String(i))"""))
    reached, unmarked = set(), []
    chromium.run("document.activeElement.blur()")
    for _ in range(2 * len(expected) + 4):
        chromium.key("Tab")
        turn, marked = chromium.run("(() => { const e = document.activeElement, s = getComputedStyle(e); "
                                    "return [e.dataset.turn ?? '', s.outlineStyle !== 'none']; })()")
        reached.add(turn)
        if turn and not marked:
            unmarked.append(turn)
    hold("Tab reaches every control, each with a mark", expected <= reached and not unmarked,
         f"{len(expected & reached)} of {len(expected)}, {len(set(unmarked))} without a mark")
    chromium.run(f"delete {DATA}.settled; document.getElementById('checkpointing').focus()")
    chromium.key(" ")
    chromium.wait(f"document.getElementById('checkpointing').checked && {DATA}.settled")
    told = "document.querySelector('#timeline .at').textContent"
    before = chromium.run(f"document.querySelector('#timeline svg').focus(), {told}")
    chromium.key("ArrowLeft")
    chromium.wait(f"{told} !== {json.dumps(before)}", 10)
    chromium.run("document.getElementById('fit').focus()")
    chromium.key("Enter")
    chromium.wait("!document.getElementById('fit-answer').hidden", 10)
    chromium.wait("!document.getElementById('cancel').hidden || !document.getElementById('fit').disabled")
    chromium.run("document.getElementById('model').focus(); document.getElementById('model').select()")
    for letter in "Qwen/Qwen2.5-0.5B":
        chromium.key(letter, text=letter)
    chromium.key("Tab")
    chromium.wait("document.getElementById('command').textContent.includes('Qwen/Qwen2.5-0.5B')")
    chromium.run("document.getElementById('model').focus(); document.getElementById('model').select()")
    for letter in "no-such":
        chromium.key(letter, text=letter)
    chromium.key("Enter")
    chromium.wait("document.getElementById('verdicts').textContent.includes('neither a path nor a model of the catalogue')")
    hold("what is wrong is told in the place of an answer", chromium.run("document.getElementById('bars').textContent") == "")
    hold("keys alone: a model is typed, boxes ticked, the search begun, the drawing walked", True)


def check_snapshot(chromium, address, folder):
    path = folder / "oom.pickle"
    snapshot.write(path, SNAPSHOT_MEGABYTES)
    loaded(chromium, address)
    slowest, beside = 0, Beside().__enter__()
    chromium.drop(path)
    while chromium.run(f"{DATA}.explained") is None:
        before = number(chromium, "answers")
        chromium.run("document.getElementById('seq').focus()")
        chromium.key("ArrowLeft" if chromium.run("document.getElementById('seq').value") != "0" else "ArrowRight")
        chromium.wait(f"{DATA}.answers > {before}")
        slowest = max(slowest, number(chromium, "milliseconds"))
    beside.__exit__()
    took, memory = number(chromium, "explained"), number(chromium, "explainedBytes")
    text = chromium.run("document.getElementById('explanation-text').textContent")
    hold_time(f"a snapshot of {path.stat().st_size / 1e6:.0f} MB", took, SNAPSHOT_MS, beside)
    hold("it is explained", "what held the memory" in text)
    peak = chromium.renderer_peak()
    hold("its memory", memory <= SNAPSHOT_BYTES and peak <= SNAPSHOT_BYTES, f"{memory / 2**20:.0f} MiB of the planner, {peak / 2**20:.0f} MiB of the "
         f"whole tab, of {SNAPSHOT_BYTES / 2**20:.0f}")
    hold_time("the page stays usable meanwhile: slowest answer to a slider", slowest, USABLE_MS, beside)


def check_network(chromium, address):
    strangers = {url for url in chromium.requests() if not url.startswith((address, "data:", "blob:", "about:"))}
    hold("nothing is asked of another host", not strangers, f"{len(chromium.requests())} requests{''.join(' ' + s for s in strangers)}")
    refused = chromium.run("fetch('https://example.org').then(() => 'sent', (error) => 'refused')")
    hold("the page's policy refuses another host", refused == "refused")


def check_size(page):
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in page.rglob("*") if path.is_file()}
    total = sum(sizes.values())
    hold("size over the wire", total <= WIRE_BYTES, f"{total} of {WIRE_BYTES} bytes by gzip -9, snug.wasm {sizes['snug.wasm']}")


def main():
    page = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build-page/page")
    program = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build/snug").resolve()
    if not pathlib.Path(browser.CHROMIUM).exists() or not (page / "snug.wasm").exists():
        print(f"skipped: no {browser.CHROMIUM}, or no page in {page} (make page)")
        return 77
    shared = pathlib.Path(os.environ.get("SNUG_SHARED", ROOT.parent / "shared")) / "data"
    if not shared.exists():
        print(f"skipped: recipes, logs and snapshots of others, which are not in {shared} (SNUG_SHARED)")
        shared = None
    started = time.monotonic()
    check_size(page)
    address, server = browser.serve(page)
    chromium = browser.Browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            check_first_answer(chromium, address + "/index.html")
            check_sliders(chromium)
            check_levers(chromium)
            check_fit(chromium, address + "/index.html")
            check_recipe_and_link(chromium, address, pathlib.Path(folder))
            check_keyboard(chromium, address + "/index.html")
            check_windows(chromium, address + "/index.html")
            check_snapshot(chromium, address + "/index.html", pathlib.Path(folder))
            complaints = chromium.complaints()
            hold("nothing in the console", not complaints, str(complaints[:3]) if complaints else "")
            check_answers(chromium, program, shared)
            check_network(chromium, address)
    finally:
        chromium.close()
        server.shutdown()
    print(f"{len(wrong)} wrong, in {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
