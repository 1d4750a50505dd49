#!/usr/bin/env python3
"""A complete Segno worker: SEGNO_KEY=segno_… ./worker.py http://127.0.0.1:7070

It runs the functions below, keeps their leases alive, and stops what is cancelled. Python's standard library is enough.
"""
import json, os, socket, sys, threading, time
from urllib import error, request

SERVER = sys.argv[1].rstrip("/")
WORKER = f"python-{socket.gethostname()}-{os.getpid()}"
LEASE_MS = 5_000
AT_ONCE = 4


def word_count(text, _job):
    return len(text.split())


def await_file(path, job):
    """Waits until a file is there: something that takes long. Leaves when the call is cancelled."""
    while not os.path.exists(path) and not job.stop.wait(0.1):
        job.progress = "still waiting"
    return None if job.stop.is_set() else open(path).read()


FUNCTIONS = {"word-count": word_count, "await-file": await_file}


def post(verb, body):
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('SEGNO_KEY', '')}"}
    call = request.Request(f"{SERVER}/v1/work/{verb}", json.dumps(body).encode(), headers)
    with request.urlopen(call, timeout=60) as response:
        return json.loads(response.read() or "null")


class Job:
    def __init__(self, item):
        self.item, self.lease, self.progress = item, item["lease"], None
        self.stop, self.ended = threading.Event(), threading.Event()

    def keep_alive(self):
        while not self.ended.wait(LEASE_MS / 3_000):
            try:
                answer = post("heartbeat", {"lease": self.lease, "extend_ms": LEASE_MS, "progress": self.progress})
                self.lease = answer.get("lease", self.lease)
                lost = answer["action"] == "cancel"
            except error.HTTPError as refusal:
                lost = refusal.code == 409
            except OSError:
                lost = False  # The server is away; the next heartbeat may reach it.
            if lost:
                return self.stop.set()

    def run(self):
        (heart := threading.Thread(target=self.keep_alive, daemon=True)).start()
        try:
            verb, answer = "complete", {"result": FUNCTIONS[self.item["function"]](self.item["input"], self)}
        except Exception as failure:
            verb, answer = "fail", {"message": repr(failure)}
        self.ended.set()
        heart.join()
        if not self.stop.is_set():
            post(verb, {"lease": self.lease, **answer})


def work():
    ask = {"worker": WORKER, "functions": list(FUNCTIONS), "lease_ms": LEASE_MS, "wait_ms": 20_000}
    while True:
        try:
            for item in post("fetch", ask)["items"]:
                Job(item).run()
        except OSError as trouble:
            print(f"{trouble}; trying again", file=sys.stderr)
            time.sleep(1)


for _ in range(AT_ONCE - 1):
    threading.Thread(target=work, daemon=True).start()
work()
