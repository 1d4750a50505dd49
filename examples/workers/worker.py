#!/usr/bin/env python3
"""A complete Segno worker: SEGNO_KEY=segno_… ./worker.py http://127.0.0.1:7070 [POOL]

It runs the functions below, keeps their leases alive, and stops what is cancelled. Python's standard library is enough."""
import json, os, socket, sys, threading, time
from urllib import error, request

SERVER, POOL = sys.argv[1].rstrip("/"), {"pool": name for name in sys.argv[2:3]}
WORKER = f"python-{socket.gethostname()}-{os.getpid()}"
LEASE_MS, AT_ONCE = 5_000, 4


def await_file(path, job):
    """Waits until a file is there: something that takes long. Leaves when the call is cancelled."""
    while not os.path.exists(path) and not job.stop.wait(0.1):
        job.progress = "still waiting"
    return None if job.stop.is_set() else open(path).read()


FUNCTIONS = {"word-count": lambda text, _job: len(text.split()), "await-file": await_file}


def post(verb, body):
    """Repeats what the server does not answer, with growing pauses: by its lease an answer counts once."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('SEGNO_KEY', '')}"}
    call, pause = request.Request(f"{SERVER}/v1/work/{verb}", json.dumps(body).encode(), headers), 0.1
    while True:
        try:
            with request.urlopen(call, timeout=60) as response:
                return json.loads(response.read() or "null")
        except Exception as trouble:
            if getattr(trouble, "code", 500) < 500:
                raise
            print(f"{call.full_url}: {trouble}; trying again", file=sys.stderr)
        time.sleep(pause := min(2 * pause, 5))


class Job:
    def __init__(self, item):
        self.item, self.lease, self.progress = item, item["lease"], None
        self.stop, self.ended = threading.Event(), threading.Event()

    def keep_alive(self):
        while not self.ended.wait(LEASE_MS / 3_000):
            try:
                answer = post("heartbeat", {"lease": self.lease, "extend_ms": LEASE_MS, "progress": self.progress})
                self.lease, lost = answer.get("lease", self.lease), answer["action"] == "cancel"
            except error.HTTPError as refusal:
                lost = refusal.code == 409
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


def work(others=AT_ONCE - 1):
    """Runs calls for ever, one after the other, here and in as many other threads."""
    for _ in range(others):
        threading.Thread(target=work, args=[0], daemon=True).start()
    ask = {"worker": WORKER, "functions": list(FUNCTIONS), "lease_ms": LEASE_MS, "wait_ms": 20_000, **POOL}
    while True:
        try:
            for item in post("fetch", ask)["items"]:
                Job(item).run()
        except error.HTTPError as refusal:
            print(f"{refusal}: {refusal.read().decode()}", file=sys.stderr)
            time.sleep(1)


if __name__ == "__main__":
    work()
