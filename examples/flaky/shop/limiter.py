"""Refuses a customer's fourth order in one window of time. Windows are cut from the wall clock."""

import hashlib
import time

WINDOW_SECONDS = 0.05
ORDERS_PER_WINDOW = 3


class Limiter:
    def __init__(self):
        self.seen = {}

    def allow(self, customer):
        window = int(time.time() / WINDOW_SECONDS)
        self.seen[customer, window] = self.seen.get((customer, window), 0) + 1
        return self.seen[customer, window] <= ORDERS_PER_WINDOW


def sign(order):
    """A receipt's signature; slow on purpose, as signatures are."""
    return hashlib.pbkdf2_hmac("sha256", order.encode(), b"corner shop", 4_000).hex()
