"""Keeps orders in a database, under random identifiers, and shows them a page at a time."""

import sqlite3
import uuid

PAGE = 7


class Ledger:
    def __init__(self):
        self.rows = sqlite3.connect(":memory:")
        self.rows.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, fruit TEXT) WITHOUT ROWID")

    def place(self, fruit):
        self.rows.execute("INSERT INTO orders VALUES (?, ?)", (str(uuid.uuid4()), fruit))

    def first_page(self):
        # No ORDER BY: the database answers in the order of the identifiers, which are random.
        return [fruit for (fruit,) in self.rows.execute("SELECT fruit FROM orders LIMIT ?", (PAGE,))]
