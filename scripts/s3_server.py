"""moto's server for `clouds.sh`: `s3_server.py PORT` serves S3, `s3_server.py --prepare BUCKET` makes a user and a bucket.

Requests are handled one after the other: moto looks whether an object exists and puts it in two steps, so that of two puts
if absent at the same time both would succeed. A service that honours the condition decides in one step.
"""

import os
import sys
import threading

# Requests without a valid signature that are accepted: those of `prepare`.
os.environ.setdefault("INITIAL_NO_AUTH_ACTION_COUNT", "4")


class OneByOne:
    def __init__(self, application):
        self.application = application
        self.lock = threading.Lock()

    def __call__(self, environment, start):
        with self.lock:
            answer = self.application(environment, start)
            try:
                return [b"".join(answer)]
            finally:
                getattr(answer, "close", lambda: None)()


def serve(port):
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    # Connections are kept, as those of every cloud.
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    application = OneByOne(DomainDispatcherApplication(create_backend_app))
    make_server("127.0.0.1", port, application, threaded=True).serve_forever()


def prepare(bucket):
    import boto3

    unsigned = {"aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": "us-east-1"}
    iam = boto3.client("iam", **unsigned)
    iam.create_user(UserName="segno")
    key = iam.create_access_key(UserName="segno")["AccessKey"]
    rights = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'
    iam.put_user_policy(UserName="segno", PolicyName="s3", PolicyDocument=rights)
    boto3.client("s3", **unsigned).create_bucket(Bucket=bucket)
    print(key["AccessKeyId"], key["SecretAccessKey"])


if sys.argv[1] == "--prepare":
    prepare(sys.argv[2])
else:
    serve(int(sys.argv[1]))
