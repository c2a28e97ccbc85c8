"""Wrote signature-vectors.jsonl, with botocore 1.43.11: `python3 signature-vectors.py > signature-vectors.jsonl`.

No test runs this. It is kept so that anybody can see that the vectors come from an implementation which is not ours.
"""

import datetime
import json
import random
import urllib.parse

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

chance = random.Random(20260504)
letters = "abzAZ019-_.~ !\"#$%&'()*+,:;<=>?@[]^`{|}\\\u00fc\u00df\u20ac\U0001f4e6"


def text(most, signs=letters):
    return "".join(chance.choice(signs) for _ in range(chance.randint(1, most)))


def name():
    segments = [text(12) for _ in range(chance.randint(1, 4))]
    return "/".join("x" + segment if segment in (".", "..") else segment for segment in segments)


def case():
    is_path_style = chance.random() < 0.5
    bucket = chance.choice(["examplebucket", "layers.example", "b-1"])
    origin = chance.choice(["https://s3.eu-central-1.amazonaws.com", "http://127.0.0.1:9000", "https://store.example:8443"])
    if not is_path_style and "127" in origin:
        origin = "http://localhost:9000"
    base = chance.choice(["", "/base", "/a b/c"])
    scheme, host = origin.split("://")
    path = base + (f"/{bucket}/" if is_path_style else "/")
    return {
        "endpoint": origin + base,
        "bucket": bucket,
        "isPathStyle": is_path_style,
        "region": chance.choice(["us-east-1", "eu-central-1"]),
        "accessKeyId": "AKIA" + text(16, "ABCDEFGHIJKLMNOP234567"),
        "secretAccessKey": text(40, "abcXYZ019/+"),
        "sessionToken": text(120, "abcXYZ019/+=") if chance.random() < 0.5 else None,
        "timeMs": chance.randint(1_400_000_000, 2_000_000_000) * 1000,
        "name": name(),
    }, f"{scheme}://{host if is_path_style else bucket + '.' + host}", path


def at(milliseconds):
    moment = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc)
    botocore.auth.get_current_datetime = lambda *_, **__: moment


def url_of(origin, path, key):
    return origin + urllib.parse.quote(path + key, safe="/~")


def header_case():
    given, origin, path = case()
    given["kind"] = "headers"
    given["method"] = chance.choice(["GET", "HEAD", "PUT", "POST", "DELETE"])
    given["query"] = {text(8): text(10) if chance.random() < 0.7 else "" for _ in range(chance.randint(0, 4))}
    given["headers"] = {f"x-amz-meta-{n}": text(12, letters[:16]).strip() or "v" for n in range(chance.randint(0, 3))}
    given["body"] = text(60)
    at(given["timeMs"])
    keys = Credentials(given["accessKeyId"], given["secretAccessKey"], given["sessionToken"])
    request = AWSRequest(
        given["method"], url_of(origin, path, given["name"]), given["headers"], given["body"].encode(), given["query"]
    )
    botocore.auth.S3SigV4Auth(keys, "s3", given["region"]).add_auth(request)
    return {**given, "expected": request.headers["Authorization"]}


def presigned_case():
    given, origin, path = case()
    given["kind"] = "presigned"
    given["lifetimeSeconds"] = chance.randint(1, 604_800)
    at(given["timeMs"])
    keys = Credentials(given["accessKeyId"], given["secretAccessKey"], given["sessionToken"])
    request = AWSRequest("GET", url_of(origin, path, given["name"]))
    botocore.auth.S3SigV4QueryAuth(keys, "s3", given["region"], given["lifetimeSeconds"]).add_auth(request)
    return {**given, "expected": request.url}


for _ in range(80):
    print(json.dumps(header_case(), ensure_ascii=False))
for _ in range(40):
    print(json.dumps(presigned_case(), ensure_ascii=False))
