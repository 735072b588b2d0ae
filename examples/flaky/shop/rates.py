"""A service that answers exchange rates over HTTP and sheds load at random, and the client that tries three times."""

import http.server
import random
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

TRIES = 3
SHED = 0.45


class Rates(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        busy = random.random() < SHED
        self.send_response(503 if busy else 200)
        self.end_headers()
        self.wfile.write(b"" if busy else b"1.0842")

    def log_message(self, *words):
        pass


@contextmanager
def serve():
    """The address of a service that runs in a thread for as long as the block lasts."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Rates)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fetch(address):
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(TRIES):
        try:
            with direct.open(address) as answer:
                return float(answer.read())
        except urllib.error.HTTPError as error:
            refusal = f"{error.code} at {error.headers['Date']}"
    raise ConnectionError(f"no rate in {TRIES} tries; the last answer was {refusal}")
