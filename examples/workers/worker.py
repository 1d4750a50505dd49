#!/usr/bin/env python3
"""A complete Segno worker: SEGNO_KEY=segno_… ./worker.py http://127.0.0.1:7070 [POOL]

It runs the functions below, keeps their leases alive, and stops what is cancelled. Python's standard library is enough."""
import itertools, json, os, socket, sys, threading, time
from urllib import request

SERVER, POOL = sys.argv[1].rstrip("/"), {"pool": name for name in sys.argv[2:3]}
WORKER = f"python-{socket.gethostname()}-{os.getpid()}"
LEASE_MS, AT_ONCE, JOBS = 5_000, 4, set()  # JOBS has those that run now
NUMBERS = itertools.count(time.time_ns() // 1_000_000)  # an exchange that is repeated keeps its number


def await_file(path, job):
    """Waits until a file is there: something that takes long. Leaves when the call is cancelled."""
    while not os.path.exists(path) and not job.stop.wait(0.1):
        job.progress = "still waiting"
    return None if job.stop.is_set() else open(path).read()


FUNCTIONS = {"word-count": lambda text, _job: len(text.split()), "await-file": await_file}


def exchange(answers, **fetch):
    """Answers calls and gets the next ones. What the server does not answer is repeated, with growing pauses."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('SEGNO_KEY', '')}"}
    body = {"worker": WORKER, "number": next(NUMBERS), "answers": answers, **fetch}
    call, pause = request.Request(f"{SERVER}/v1/work/exchange", json.dumps(body).encode(), headers), 0.1
    while True:
        try:
            with request.urlopen(call, timeout=60) as response:
                return json.load(response)
        except Exception as trouble:
            print(f"{call.full_url}: {trouble} {getattr(trouble, 'read', bytes)().decode()}; trying again", file=sys.stderr)
            if getattr(trouble, "code", 500) < 500:
                return time.sleep(1) or {"outcomes": [], "items": []}
        time.sleep(pause := min(2 * pause, 5))


class Job:
    def __init__(self, item):
        self.item, self.lease, self.progress, self.stop = item, item["lease"], None, threading.Event()

    def run(self):
        JOBS.add(self)
        try:
            verb, answer = "complete", {"result": FUNCTIONS[self.item["function"]](self.item["input"], self)}
        except Exception as failure:
            verb, answer = "fail", {"message": repr(failure)}
        JOBS.discard(self)
        return [] if self.stop.is_set() else [{verb: {"lease": self.lease, **answer}}]


def keep_alive():
    """Extends the leases of all jobs that run, in one exchange, and stops those whose answers are not wanted any more."""
    while time.sleep(LEASE_MS / 3_000) is None:
        beats = {job: {"lease": job.lease, "extend_ms": LEASE_MS, "progress": job.progress} for job in list(JOBS)}
        outcomes = exchange([{"heartbeat": beat} for beat in beats.values()])["outcomes"] if beats else []
        for job, outcome in zip(beats, outcomes):
            job.lease = outcome.get("lease", job.lease)
            if outcome["status"] == "cancel" or outcome.get("problem", {}).get("status") == 409:
                job.stop.set()


def run_calls():
    answers, functions = [], list(FUNCTIONS)  # with a pool: those of it that this worker has
    while True:
        got = exchange(answers, functions=functions, max_items=1, lease_ms=LEASE_MS, wait_ms=20_000, **POOL)
        answers = [answer for item in got["items"] for answer in Job(item).run()]


def work():
    for task in [keep_alive] + [run_calls] * (AT_ONCE - 1):
        threading.Thread(target=task, daemon=True).start()
    run_calls()


if __name__ == "__main__":
    work()
