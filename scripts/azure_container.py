"""Makes a container for `clouds.sh`: `azure_container.py ENDPOINT CONTAINER`, with the key of the account in SEGNO_AZURE_KEY."""

import base64
import email.utils
import hashlib
import hmac
import os
import sys
import urllib.parse
import urllib.request

endpoint, container = sys.argv[1:]
account = endpoint.rsplit("/", 1)[1]
path = urllib.parse.urlsplit(endpoint).path
headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
signed = "PUT\n" + "\n" * 11 + "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
signed += f"/{account}{path}/{container}\nrestype:container"
digest = hmac.digest(base64.b64decode(os.environ["SEGNO_AZURE_KEY"]), signed.encode(), hashlib.sha256)
headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(digest).decode()}"
request = urllib.request.Request(f"{endpoint}/{container}?restype=container", method="PUT", headers=headers)
with urllib.request.urlopen(request) as answer:
    assert answer.status == 201, answer.status
