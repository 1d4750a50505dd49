#!/usr/bin/env python3
"""The functions of examples/runbooks/mailboxes.yaml: ./mailboxes.py http://127.0.0.1:7070 mail

It plays the mail system of docs/guide/migration.md: mailboxes are copied in two parts, and two of them make trouble.
"""
import threading

import worker

COPIED = {}  # How much of each mailbox has been copied, in percent.
TROUBLE = {  # What goes wrong, and how often before it does not any more.
    ("move-mailbox", "mallory"): ["the mailbox is locked by a backup"] * 2,
    ("switch-mail", "grace"): ["the directory does not answer"],
}
LOCK = threading.Lock()


def create_user(params, _job):
    return {"UserId": "user-" + params["Address"].split("@")[0]}


def delete_user(params, _job):
    with LOCK:
        COPIED.pop(params["Mailbox"], None)
    return {"Deleted": params["UserId"]}


def move_mailbox(params, _job):
    """Copies half of a mailbox for each call. Until it is complete, Segno calls again after the interval of `poll`."""
    fail_if_in_trouble("move-mailbox", params["Mailbox"])
    with LOCK:
        percent = COPIED[params["Mailbox"]] = COPIED.get(params["Mailbox"], 0) + 50
    if percent < 100:
        return {"complete": False, "percent": percent}
    return {"complete": True, "data": {"percent": percent}}


def switch_mail(params, _job):
    fail_if_in_trouble("switch-mail", params["Mailbox"])
    return {"Delivers": params["UserId"]}


def fail_if_in_trouble(function, mailbox):
    with LOCK:
        reasons = TROUBLE.get((function, mailbox))
        if reasons:
            raise RuntimeError(reasons.pop())


worker.FUNCTIONS = {
    "create-user": create_user,
    "delete-user": delete_user,
    "move-mailbox": move_mailbox,
    "switch-mail": switch_mail,
}
worker.work()
